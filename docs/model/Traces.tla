------------------------------- MODULE Traces -------------------------------
(* Whether what real processes did to a store is a history of the model.

   A trace is what the store showed after each call that changed it, and by whom the call was ("by": a process of a lake
   may be several of the model, one for each of its works). The model takes steps that
   the store does not show (looks, locks, heartbeats) as it likes. "soft": the call is one of several that the model takes
   in one step, so the model need not show it. "died": it is no call, the process died, and the store shows nothing new. *)
EXTENDS Commit, Sequences

CONSTANT Traces

VARIABLES
    tr,     \* which trace
    at      \* how many of its calls have been made

\* The instants of the active timeline in their order, each with its files and whether the metadata table knows them.
Rank(t) == Cardinality({u \in Times : u <= t})
Shown ==
    [n \in 1 .. Cardinality(Times) |->
        LET t == CHOOSE u \in Times : Rank(u) = n
        IN [act |-> inst[t].act, st |-> inst[t].st, logs |-> {l[2] : l \in {m \in logs : m[1] = t}},
            bases |-> {b.g : b \in {c \in bases : c.t = t}}, told |-> t \in DOMAIN mdt]]
\* Log files of instants that are not there: rolled back, and never archived.
Stray == Cardinality({l \in logs : l[1] \notin Times /\ l[1] \notin DOMAIN old})
Ended == at = Len(Traces[tr])

TraceInit == Init /\ tr \in 1 .. Len(Traces) /\ at = 0
\* A death is seen, unless UnseenDeaths says that the traces do not tell it.
UnseenDeaths == FALSE
Hidden ==
    /\ ~Ended
    /\ \/ \E p \in Procs : Step(p) \/ Expire(p) \/ Lapse(p) \/ (UnseenDeaths /\ Die(p))
       \/ Arrive
    /\ Shown' = Shown /\ Stray' = Stray
    /\ UNCHANGED <<tr, at>>
Seen ==
    \E n \in at + 1 .. Len(Traces[tr]) :
    /\ \A k \in at + 1 .. n - 1 : Traces[tr][k].soft
    /\ ~Traces[tr][n].died
    /\ \E p \in Traces[tr][n].by : Step(p)
    /\ Shown' = Traces[tr][n].shows /\ Stray' = Traces[tr][n].stray
    /\ at' = n /\ UNCHANGED tr
\* Between two works a process leaves nothing behind.
Died ==
    \E n \in at + 1 .. Len(Traces[tr]) :
    /\ \A k \in at + 1 .. n - 1 : Traces[tr][k].soft
    /\ Traces[tr][n].died
    /\ \E p \in Traces[tr][n].by : Die(p) \/ (ps[p].pc \in Atomic /\ UNCHANGED vars)
    /\ Shown' = Shown /\ Stray' = Stray
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
