------------------------------ MODULE FileLock ------------------------------
(* The lock of a table on local disk or HDFS: a file that is created exclusively, touched by its holder, and deleted.

   A dead lock is deleted only under a claim, a second file of a name that is made of the dead lock: two processes that
   find the same lock dead must not delete one another's new one. Time goes in ticks. *)
EXTENDS Naturals, Integers, FiniteSets, TLC

CONSTANTS
    Procs, Ahead,   \* processes, and how far the clock of each is ahead
    Validity,       \* how long others wait for a holder that is silent
    Margin,         \* how long a completing call may take
    Steals,         \* how often somebody else deletes the lock, as Hudi's writers may
    End,            \* the last tick
    Off

VARIABLES file, claims, now, ps, steals, ids
vars == <<file, claims, now, ps, steals, ids>>
On(guard) == guard \notin Off
None == [own |-> "", id |-> 0, beat |-> 0]

Age(p) == now - ps[p].since
Set(p, more) == ps' = [ps EXCEPT ![p] = more @@ @]
Ours(p) == file.own = p /\ file.id = ps[p].id

Init ==
    /\ file = None /\ claims = {} /\ now = 0 /\ steals = Steals /\ ids = 0
    /\ ps = [p \in Procs |-> [pc |-> "idle", since |-> 0, id |-> 0, seen |-> None, from |-> 0]]

Create(p) ==
    /\ ps[p].pc = "idle" /\ (file = None \/ ~On("lock"))
    /\ file' = [own |-> p, id |-> ids + 1, beat |-> now]
    /\ ids' = ids + 1
    /\ Set(p, [pc |-> "held", since |-> now, id |-> ids + 1])
    /\ UNCHANGED <<claims, now, steals>>
\* A lock that is there is watched; "seen" has its bytes and its time of change.
Watch(p) ==
    /\ ps[p].pc = "idle" /\ file # None
    /\ LET from == IF ps[p].seen = file THEN ps[p].from ELSE now
           dead == now + Ahead[p] > file.beat + Validity /\ now - from >= Validity
       IN Set(p, [pc |-> IF dead THEN "claim" ELSE "idle", seen |-> file, from |-> from])
    /\ UNCHANGED <<file, claims, now, steals, ids>>
Claim(p) ==
    /\ ps[p].pc = "claim"
    /\ IF ps[p].seen \in claims
       THEN Set(p, [pc |-> "idle"]) /\ UNCHANGED claims
       ELSE claims' = claims \cup {ps[p].seen} /\ Set(p, [pc |-> "again", from |-> now])
    /\ UNCHANGED <<file, now, steals, ids>>
\* Under the claim: is it the dead lock still?
Again(p) ==
    /\ ps[p].pc = "again"
    /\ Set(p, [pc |-> IF (file = ps[p].seen /\ 2 * (now - ps[p].from) < Validity) \/ ~On("lock-takeover") THEN "delete" ELSE "unclaim"])
    /\ UNCHANGED <<file, claims, now, steals, ids>>
Delete(p) ==
    /\ ps[p].pc = "delete"
    /\ file' = None
    /\ Set(p, [pc |-> "unclaim"])
    /\ UNCHANGED <<claims, now, steals, ids>>
Unclaim(p) ==
    /\ ps[p].pc = "unclaim"
    /\ claims' = claims \ {ps[p].seen}
    /\ Set(p, [pc |-> "idle"])
    /\ UNCHANGED <<file, now, steals, ids>>
Touch(p) ==
    /\ ps[p].pc = "held" /\ Age(p) <= Validity - (IF On("renewal-margin") THEN Margin ELSE 0)
    /\ IF Ours(p)
       THEN file' = [file EXCEPT !.beat = now] /\ Set(p, [since |-> now])
       ELSE UNCHANGED file /\ Set(p, [pc |-> "idle"])
    /\ UNCHANGED <<claims, now, steals, ids>>
Check(p) ==
    /\ ps[p].pc = "held"
    /\ Set(p, [pc |-> IF Age(p) <= Validity - Margin - 1 /\ (Ours(p) \/ ~On("lock-lost")) THEN "sure" ELSE "idle",
               from |-> now])
    /\ UNCHANGED <<file, claims, now, steals, ids>>
Complete(p) ==
    /\ ps[p].pc = "sure"
    /\ file' = IF Ours(p) THEN None ELSE file
    /\ Set(p, [pc |-> "idle"])
    /\ UNCHANGED <<claims, now, steals, ids>>
\* Not assumed: between another's last look and what it does then.
Steal ==
    /\ steals > 0 /\ file # None /\ \A p \in Procs : ps[p].pc \notin {"sure", "delete"}
    /\ file' = None
    /\ steals' = steals - 1
    /\ UNCHANGED <<claims, now, ps, ids>>
\* A completing call takes no longer than the margin, and nobody sleeps within the deletion of a dead lock.
Tick ==
    /\ now < End
    /\ \A p \in Procs : (ps[p].pc = "sure" => now < ps[p].from + Margin) /\ ps[p].pc # "delete"
    /\ now' = now + 1
    /\ UNCHANGED <<file, claims, ps, steals, ids>>

Next ==
    \/ \E p \in Procs : \/ Create(p) \/ Watch(p) \/ Claim(p) \/ Again(p) \/ Delete(p) \/ Unclaim(p) \/ Touch(p)
                        \/ Check(p) \/ Complete(p)
    \/ Steal \/ Tick
Spec == Init /\ [][Next]_vars

OneCompletes == Cardinality({p \in Procs : ps[p].pc = "sure"}) <= 1
Bounded == ids <= 3
=============================================================================
