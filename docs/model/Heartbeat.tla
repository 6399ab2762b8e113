------------------------------ MODULE Heartbeat ------------------------------
(* The heartbeat of an instant: a file that its writer touches, and that another process replaces when it takes the
   instant over. The clocks of the two may be apart, so that a living writer is taken for dead. Time goes in ticks. *)
EXTENDS Naturals, Integers, FiniteSets, TLC

CONSTANTS
    Procs,      \* the first writer, and those who may take the instant over
    Ahead,      \* how far the clock is ahead by which each judges
    Timeout,    \* how long a silent writer counts as alive
    End,        \* the last tick
    Off

VARIABLES file, now, ps, dead
vars == <<file, now, ps, dead>>
On(guard) == guard \notin Off

Init ==
    /\ now = 0
    /\ file = [own |-> "w", beat |-> 0]
    /\ ps = [p \in Procs |-> IF p = "w" THEN [owns |-> TRUE, last |-> 0] ELSE [owns |-> FALSE, last |-> 0]]
    /\ dead = [p \in Procs |-> -1]
Alive(p) == dead[p] = -1
Lost(p) == now - ps[p].last > Timeout

Beat(p) ==
    /\ Alive(p) /\ ps[p].owns
    /\ IF Lost(p) \/ (file.own # p /\ On("heartbeat-foreign"))
       THEN ps' = [ps EXCEPT ![p].owns = FALSE] /\ UNCHANGED file
       ELSE /\ file' = [file EXCEPT !.beat = now]
            /\ ps' = [ps EXCEPT ![p].last = now]
    /\ UNCHANGED <<now, dead>>
TakeOver(p) ==
    /\ Alive(p) /\ ~ps[p].owns /\ now + Ahead[p] - file.beat > Timeout
    /\ file' = [own |-> p, beat |-> now]
    /\ ps' = [ps EXCEPT ![p] = [owns |-> TRUE, last |-> now]]
    /\ UNCHANGED <<now, dead>>
Die(p) ==
    /\ Alive(p)
    /\ dead' = [dead EXCEPT ![p] = now]
    /\ UNCHANGED <<file, now, ps>>
Tick == now < End /\ now' = now + 1 /\ UNCHANGED <<file, ps, dead>>

Next == (\E p \in Procs : Beat(p) \/ TakeOver(p) \/ Die(p)) \/ Tick
Spec == Init /\ [][Next]_vars

\* What a dead process has taken falls silent.
TheDeadAreSilent == \A p \in Procs : file.own = p /\ ~Alive(p) => file.beat <= dead[p]
=============================================================================
