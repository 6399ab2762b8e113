----------------------------- MODULE StorageLock -----------------------------
(* The lock of a table on an object store: one file, replaced only in the version that was read.

   The file says until when it is valid, by its holder's clock, which may be hours apart from others'. So a lock that
   has expired is taken over only by a process that has seen it unchanged for the whole validity. Time goes in ticks;
   every process counts them alike, whatever its clock shows. *)
EXTENDS Naturals, Integers, FiniteSets, TLC

CONSTANTS
    Procs, Ahead,   \* processes, and how far the clock of each is ahead
    Validity,       \* how long others wait for a holder that is silent
    Margin,         \* how long a completing call may take
    Steals,         \* how often somebody else frees the lock, as Hudi's writers may
    End,            \* the last tick
    Off

VARIABLES file, now, ps, steals
vars == <<file, now, ps, steals>>
On(guard) == guard \notin Off

Clock(p) == now + Ahead[p]
Age(p) == now - ps[p].since
Set(p, more) == ps' = [ps EXCEPT ![p] = more @@ @]
Ours(p) == file.own = p /\ ~file.free
Content(p) == [own |-> p, free |-> FALSE, until |-> Clock(p) + Validity, ver |-> file.ver + 1]

Init ==
    /\ file = [own |-> "", free |-> TRUE, until |-> 0, ver |-> 0]
    /\ now = 0 /\ steals = Steals
    /\ ps = [p \in Procs |-> [pc |-> "idle", since |-> 0, ver |-> 0, seen |-> -1, from |-> 0]]

\* The lock is looked at; it is taken if it is free, or silent for long enough.
Read(p) ==
    /\ ps[p].pc = "idle"
    /\ LET from == IF ps[p].seen = file.ver THEN ps[p].from ELSE now
           held == ~file.free /\ ~(Clock(p) > file.until /\ now - from >= Validity)
           taken == held /\ On("storage-lock")
       IN Set(p, [pc |-> IF taken THEN "idle" ELSE "write", seen |-> file.ver, from |-> from, since |-> now,
                  ver |-> file.ver])
    /\ UNCHANGED <<file, now, steals>>
Write(p) ==
    /\ ps[p].pc = "write"
    /\ IF file.ver = ps[p].ver
       THEN file' = Content(p) /\ Set(p, [pc |-> "held", ver |-> file.ver + 1])
       ELSE UNCHANGED file /\ Set(p, [pc |-> "idle"])
    /\ UNCHANGED <<now, steals>>
Renew(p) ==
    /\ ps[p].pc = "held" /\ Age(p) <= Validity
    /\ IF file.ver = ps[p].ver \/ Ours(p) \/ ~On("storage-lock-version")
       THEN file' = Content(p) /\ Set(p, [since |-> now, ver |-> file.ver + 1])
       ELSE UNCHANGED file /\ Set(p, [pc |-> "idle"])
    /\ UNCHANGED <<now, steals>>
\* Immediately before a completing call.
Check(p) ==
    /\ ps[p].pc = "held"
    /\ Set(p, [pc |-> IF Age(p) <= Validity - Margin - 1 /\ (Ours(p) \/ ~On("lock-lost")) THEN "sure" ELSE "idle",
               from |-> now])
    /\ UNCHANGED <<file, now, steals>>
Complete(p) ==
    /\ ps[p].pc = "sure"
    /\ IF Ours(p) THEN file' = [file EXCEPT !.free = TRUE, !.ver = @ + 1] ELSE UNCHANGED file
    /\ Set(p, [pc |-> "idle"])
    /\ UNCHANGED <<now, steals>>
\* Not assumed: between another's last look and its completing call.
Steal ==
    /\ steals > 0 /\ ~file.free /\ \A p \in Procs : ps[p].pc # "sure"
    /\ file' = [file EXCEPT !.free = TRUE, !.ver = @ + 1]
    /\ steals' = steals - 1
    /\ UNCHANGED <<now, ps>>
\* A completing call takes no longer than the margin.
Tick ==
    /\ now < End /\ \A p \in Procs : ps[p].pc = "sure" => now < ps[p].from + Margin
    /\ now' = now + 1
    /\ UNCHANGED <<file, ps, steals>>

Next == (\E p \in Procs : Read(p) \/ Write(p) \/ Renew(p) \/ Check(p) \/ Complete(p)) \/ Steal \/ Tick
Spec == Init /\ [][Next]_vars

OneCompletes == Cardinality({p \in Procs : ps[p].pc = "sure"}) <= 1
\* A file of a living holder is replaced by nobody.
Bounded == file.ver <= 6
=============================================================================
