------------------------------- MODULE Traces -------------------------------
(* Whether what real processes did to a store is a history of the model.

   A trace is what the store showed after each call that changed it, and by whom the call was ("by": a process of a lake
   may be several of the model, one for each of its works). The model takes steps that
   the store does not show (looks, locks, heartbeats) as it likes. "soft": the call is one of several that the model takes
   in one step, so the model need not show it. "room": how many instants that are requested later come between the new
   one and the one before it. "died": it is no call, the process died, and the store shows nothing new. *)
EXTENDS Commit, Sequences

\* Set once by the module with the traces: TLC would make a constant of them anew for each look at it.
Traces == TLCGet(1)

VARIABLES
    tr,     \* which trace
    at      \* how many of its calls have been made

\* The instants of the active timeline, each with its files and whether the metadata table knows them.
Instants ==
    [t \in Times |->
        [act |-> inst[t].act, st |-> inst[t].st, logs |-> {l[2] : l \in {m \in logs : m[1] = t}},
         bases |-> {b.g : b \in {c \in bases : c.t = t}}, told |-> t \in DOMAIN mdt]]
\* Whether they are these in their order.
Rank(t) == Cardinality({u \in Times : u <= t})
Show(shows) == Cardinality(Times) = Len(shows) /\ \A t \in Times : Instants[t] = shows[Rank(t)]
\* Log files of instants that are not there: rolled back, and never archived.
Stray == Cardinality({l \in logs : l[1] \notin Times /\ l[1] \notin DOMAIN old})
Ended == at = Len(Traces[tr])

TraceInit == Init /\ tr \in 1 .. Len(Traces) /\ at = 0
\* A death is seen, unless UnseenDeaths says that the traces do not tell it.
UnseenDeaths == FALSE
\* Whether a process may take a step now. The works of a lake come one after the other: while one is under way, no other
\* process of the model has begun anything.
MayAct(p) == TRUE
InTurn(p) == \A q \in Procs \ {p} : ps[q].pc \in Atomic \ {"out"}
Hidden ==
    /\ ~Ended
    /\ \/ \E p \in {q \in Procs : MayAct(q)} : Step(p) \/ Expire(p) \/ Lapse(p) \/ (UnseenDeaths /\ Die(p))
       \/ Arrive
    /\ Instants' = Instants /\ Stray' = Stray
    /\ UNCHANGED <<tr, at>>
\* The calls that may be the next one.
Coming == {n \in at + 1 .. Len(Traces[tr]) : \A k \in at + 1 .. n - 1 : Traces[tr][k].soft}
Rooms == {Traces[tr][n].room : n \in Coming}
Seen ==
    \E n \in Coming :
    /\ ~Traces[tr][n].died
    /\ \E call \in {Traces[tr][n]} :
       /\ \E p \in {q \in call.by : MayAct(q)} : Step(p)
       /\ Show(call.shows)' /\ Stray' = call.stray
    /\ at' = n /\ UNCHANGED tr
\* Between two works a process leaves nothing behind.
Died ==
    \E n \in Coming :
    /\ Traces[tr][n].died
    /\ \E p \in Traces[tr][n].by : Die(p) \/ (ps[p].pc \in Atomic /\ UNCHANGED vars)
    /\ Instants' = Instants /\ Stray' = Stray
    /\ at' = n /\ UNCHANGED tr
TraceSpec == TraceInit /\ [][Hidden \/ Seen \/ Died]_<<vars, tr, at>>

\* A real batch writes some of the file groups, its files come in any order, and a service's one by one. It may find that
\* it has nothing to write. A process whose storage fails gives up what it has begun, and may go on.
AnyChoices(p) == SUBSET Wants[p]
OneByOne(S) == {{b} : b \in S}
AnyOf(S) == S
Yes == TRUE
OrGoesOn == {"start", "idle"}

\* How far each trace is a history of the model, for who reads what TLC prints.
Told == PrintT(<<"reached", tr, at>>)
=============================================================================
