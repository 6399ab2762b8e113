------------------------------- MODULE Commit -------------------------------
(* How binlake's writers and table services change a table that they share.

   A step is one call that changes the store, or one look at it with what is decided by it. Between two steps of a
   process anything may happen: another one goes on, it dies, its lock lapses, its heartbeat expires, and what a dead
   process has sent is carried out.

   Times of instants are numbers: commits of rows begin at even ones, everything else happens at odd ones. "Off" is the
   set of guards that are switched off. README.md says what is modelled, and what is not. *)
EXTENDS Naturals, FiniteSets, TLC

CONSTANTS
    Procs,      \* processes
    Role,       \* what each does: "writer", "compactor", "clusterer", "mover", "cleaner", "archiver" or "restorer"
    Groups,     \* groups of rows, each in a partition of its own, and first in the file group of its number
    Wants,      \* the file groups that a process's commits write
    Adds,       \* writers whose last commit adds a column
    Rounds,     \* how often each does its work
    Policy,     \* which commits conflict: "queue", any two; "row", those that write one file group
    Indexed,    \* whether the table has a metadata table
    Apart,      \* whether a clock may be behind others
    Eager,      \* processes without heartbeats: they take all that others have pending for dead writers'
    Foreign,    \* processes as Hudi's: they add columns without a look at what was requested since, their plans give way
                \* to nobody, and their clusterings are left to them
    Margin,     \* whether a completing call is carried out before its lock lapses
    Mortal,     \* processes that may die
    Sleepy,     \* processes that may pause, so that others take them for dead
    LateCalls,  \* which calls may be carried out late: "file", "done"
    Crashes, Lapses, Expiries, Lates, \* how often these happen
    MaxTime,    \* histories are followed up to this time
    Off

VARIABLES
    inst,       \* the active timeline: requested time -> instant
    old,        \* the history: requested time -> completion time
    logs,       \* log files, <<instant, file group>>
    bases,      \* base files: their instant, file group, and the commits whose rows they hold
    marks,      \* markers, <<instant, file group>>
    fly,        \* calls of dead processes that may still be carried out
    mdt,        \* completed entries of the metadata table: instant -> files that it adds and deletes
    listed,     \* whether the table's properties list the metadata table
    lock,       \* who holds the lock at the store
    ps,         \* processes
    note,       \* of each commit of rows: who, which batch, which file groups, upon what, columns, positions
    good,       \* commits that have completed and were not restored away
    rolled,     \* commits that were rolled back
    passed,     \* of these, what archival has moved the beginning of the timeline past
    told,       \* what writers were told: <<who, batch, "done" or "failed">>
    left,       \* how often what may happen can happen still
    flags       \* what must not happen, and has

vars == <<inst, old, logs, bases, marks, fly, mdt, listed, lock, ps, note, good, rolled, passed, told, left, flags>>

On(guard) == guard \notin Off
Free == "free"
Max(S) == IF S = {} THEN 0 ELSE CHOOSE n \in S : \A m \in S : m <= n
Min(S) == CHOOSE n \in S : \A m \in S : n <= m
Without(f, gone) == [t \in DOMAIN f \ gone |-> f[t]]
With(f, t, v) == [u \in DOMAIN f \cup {t} |-> IF u = t THEN v ELSE f[u]]
Nothing == [t \in {} |-> 0]

\* What a batch writes of that; the files that one step makes of several; the order of a commit's files. Traces of real
\* runs have finer ones.
Choices(p) == {Wants[p]}
Together(S) == {S}
FirstOf(S) == {CHOOSE g \in S : TRUE}
\* Whether a writer may take its commit back for reasons of its own, and where a process is after an error.
GivesUp == FALSE
AfterError == {"start"}

-----------------------------------------------------------------------------
(* The timeline, and what readers see. *)

Times == DOMAIN inst
Writes == {t \in Times : inst[t].act \in {"write", "comp", "clus"}}
Done(t) == t \in Times /\ inst[t].st = "done"
Pending == {t \in Times : inst[t].st # "done"}
Of(act) == {t \in Times : inst[t].act = act}
Rollbacks == Of("roll") \cap Pending
Restores == Of("rest") \cap Pending
Latest == Max(Times \cup {inst[t].ct : t \in Times} \cup DOMAIN old \cup {old[t] : t \in DOMAIN old})
First == IF Writes = {} THEN 999 ELSE Min(Writes)

\* A rollback is final as soon as it is inflight, though its process may have died.
IsFinal(r) == inst[r].act = "roll" /\ inst[r].st # "req"
\* A completed file that appeared after the rollback of its commit. Writers ignore it.
Late == {t \in Of("write") \cup Of("clus") : Done(t) /\ \E r \in Times : IsFinal(r) /\ inst[r].tgt = t}
Committed == {t \in Of("write") : Done(t)} \ Late

\* Whether readers count the files of an instant: it completed, or it is older than the active timeline.
Counts(t) == ~On("uncommitted-files") \/ Done(t) \/ (Writes # {} /\ t < First)
\* A replacecommit puts the rows of a file group into a new one. Which file groups there may be of some rows:
Turned == \E p \in Procs : Role[p] \in {"clusterer", "mover"}
Places == Groups \cup (IF Turned THEN UNION {{g + 10, g + 20} : g \in Groups} ELSE {})
Home(q) == q % 10
Replacing == {t \in Of("clus") : Done(t)} \ Late
ReplacedBy(t) == {o.g : o \in inst[t].x}
Gone == UNION {ReplacedBy(t) : t \in Replacing}
CT(t) == IF Done(t) THEN inst[t].ct ELSE IF t \in DOMAIN old THEN old[t] ELSE t

\* The commits whose rows a reader finds in a file group: those of its newest base file, and of the log files that
\* completed since it was scheduled.
Top(B, g) == Max({b.t : b \in {c \in B : c.g = g /\ Counts(c.t)}})
Rows(B, g, t) == UNION {b.con : b \in {c \in B : c.g = g /\ c.t = t}}
Newer(L, g, t) == {l[1] : l \in {m \in L : m[2] = g /\ Counts(m[1]) /\ CT(m[1]) >= t}}
View(L, B, g) == Rows(B, g, Top(B, g)) \cup Newer(L, g, Top(B, g))
\* Of all file groups of these rows that were not replaced.
Living(gone, g) == {q \in Places \ gone : Home(q) = g}
Seen_(L, B, gone, g) == UNION {View(L, B, q) : q \in Living(gone, g)}
IsOnce(L, B, gone, g) == \A q, r \in Living(gone, g) : q # r => View(L, B, q) \cap View(L, B, r) = {}
\* Where commits write these rows.
Where(g) ==
    LET there == {q \in Living(Gone, g) : \E f \in logs \cup {<<b.t, b.g>> : b \in bases} : f[2] = q /\ Counts(f[1])}
    IN IF there = {} THEN Max(Living(Gone, g) \cap {g}) ELSE Max(there)
Expected(g) == {t \in good : g \in note[t].grp}

\* Entries of the metadata table count unless their instant is pending in the table's timeline.
Entries == {t \in DOMAIN mdt : t \notin Pending}
Listed == UNION {mdt[t].add : t \in Entries} \ UNION {mdt[t].del : t \in Entries}
ListedLogs == {<<f[2], f[3]>> : f \in {e \in Listed : e[1] = "log"}}
ListedBases == {b \in bases : <<"base", b.t, b.g>> \in Listed}
IsThere(f) == IF f[1] = "log" THEN <<f[2], f[3]>> \in logs ELSE \E b \in bases : b.t = f[2] /\ b.g = f[3]

\* Under "queue" the empty commit of a rollback conflicts, too, but not with a commit of who rolled back.
Conflict(a, b) ==
    \/ Policy = "queue" /\ ~(note[a].n = 0 /\ note[a].w = note[b].w)
    \/ note[a].grp \cap note[b].grp # {}

\* What the newest commit says: positions by writer, and the columns of the write that was requested last.
Recorded ==
    LET all == {t \in Committed \cup (DOMAIN old \cap DOMAIN note) : note[t].pos # Nothing}
    IN IF all = {} THEN [p \in Procs |-> 0] ELSE note[CHOOSE t \in all : \A u \in all : CT(u) <= CT(t)].pos
Columns(until) ==
    LET all == {t \in Writes \cup (DOMAIN old \cap DOMAIN note) : ~(t \in Pending) /\ t <= until /\ note[t].named}
    IN IF all = {} THEN {} ELSE note[Max(all)].cols

-----------------------------------------------------------------------------
(* Times: a process never takes one at or before one that it knows. Its clock may be behind that of others. Not assumed:
   that it takes the very time of an instant that was rolled back since it looked. *)

Next2(n, parity) == IF (n + 1) % 2 = parity THEN n + 1 ELSE n + 2
RECURSIVE Unused(_, _)
Unused(n, parity) ==
    LET t == Next2(n, parity)
    IN IF (t \in Times /\ On("create-if-absent") /\ ~(parity = 0 /\ inst[t].act = "clus")) \/ t \in rolled \/ \E r \in Rollbacks : inst[r].tgt = t
       THEN Unused(t, parity) ELSE t
\* How many begins a clock may be ahead of all others.
Ahead == IF Apart THEN {0, 1} ELSE {0}
NewTimes(p, parity) ==
    IF On("monotonic-instants")
    THEN UNION {{Unused(u + 2 * n, parity) :
                    u \in {Latest} \cup (IF Apart THEN {ps[p].obs} \cup {t \in Times : t > ps[p].obs} ELSE {})} : n \in Ahead}
    ELSE {t \in 1 .. Latest + 2 : t % 2 = parity /\ t \notin Times}
\* A service knows under the lock all that was done under it. What others have begun since its look it may not know.
ServiceTimes(parity) ==
    LET begun == {t \in Of("write") : inst[t].st # "done"}
        known == Max((Times \ begun) \cup {inst[t].ct : t \in Times} \cup DOMAIN old \cup {old[t] : t \in DOMAIN old})
    IN {Unused(Latest + 2 * n, parity) : n \in Ahead}
       \cup (IF Apart THEN {Unused(u, parity) : u \in {known} \cup {t \in begun : t > known}} ELSE {})
EndTimes(p) ==
    IF On("monotonic-instants")
    THEN (IF Apart THEN {Next2(ps[p].obs, 1)} ELSE {}) \cup {Next2(Latest, 1)}
    ELSE {t \in 1 .. Latest + 2 : t % 2 = 1}

\* rq: whether its requested file is there. A rollback deletes it; the writer may create its inflight file afterwards.
Instant(act, p, st) ==
    [act |-> act, st |-> st, own |-> p, hb |-> TRUE, ct |-> 0, x |-> {}, tgt |-> 0, rq |-> TRUE]
Of_(p, b, grp, see) ==
    [w |-> p, n |-> b, grp |-> grp, see |-> see, cols |-> {}, pos |-> Nothing, named |-> FALSE, pl |-> grp]

Set(p, pc) == ps' = [ps EXCEPT ![p].pc = pc]
Go(p, pc, more) == ps' = [ps EXCEPT ![p] = more @@ [@ EXCEPT !.pc = pc]]
Known == {<<t, inst[t].st>> : t \in Of("rest")}
Holds(p) == lock = p
CanLock == lock = Free \/ ~On("lock")
Release(p) == lock' = IF Holds(p) THEN Free ELSE lock
\* After a round: the process rests, or works again.
Rest(p) == [n |-> ps[p].n + 1, t |-> 0, r |-> 0, b |-> 0, c |-> 0, obs |-> 0, see |-> {}, rs |-> {}, todo |-> {}, lost |-> FALSE]
Again(p) == [t |-> 0, r |-> 0, b |-> 0, c |-> 0, obs |-> 0, see |-> {}, rs |-> {}, todo |-> {}, lost |-> FALSE]
Busy(p) == ps[p].n < Rounds[p]

-----------------------------------------------------------------------------
(* Every process first rolls back what dead writers left, under the lock. *)

Abandoned(p, t) == ~inst[t].hb \/ ~On("heartbeat-respect") \/ (p \in Eager /\ inst[t].own # p)
\* A plan that nobody executes stays, and one that Hudi executes is left to Hudi.
MayGo(c) == inst[c].st = "inf" /\ inst[c].own \notin Foreign /\ On("dead-clustering")
\* Which instants it takes back: after a conflict its own one, else those of dead writers. A process that is to complete
\* an instant leaves those that are requested alone: nobody has sent a completing call of them.
Completes(p) == ps[p].pc \in {"writing", "t-written", "clearing"}
Targets(p) ==
    IF ps[p].pc = "aborting" THEN {ps[p].t} \cap Pending
    ELSE {t \in ((Of("write") \cup {c \in Of("clus") : MayGo(c)}) \cap Pending) \ {ps[p].t} :
             Abandoned(p, t) /\ (Completes(p) => inst[t].st = "inf")}

Enter(p) ==
    /\ ps[p].pc = "start" /\ CanLock
    /\ inst' = Without(inst, Late)
    /\ IF Late = {} /\ Rollbacks = {} /\ Targets(p) = {}
       THEN Go(p, "idle", Again(p)) /\ UNCHANGED lock
       ELSE Go(p, "roll", [obs |-> Latest]) /\ lock' = p
    /\ flags' = flags \cup (IF \E c \in Of("clus") : inst[c].st = "inf" /\ ~inst[c].hb /\ inst[c].own \notin Foreign
                                  /\ c \notin Targets(p) /\ ps[p].pc = "start"
                            THEN {"a dead clustering stays"} ELSE {})
    /\ UNCHANGED <<old, logs, bases, marks, fly, mdt, listed, note, good, rolled, passed, told, left>>

\* The files that a rollback deletes: those that markers name, and others of their partitions; without markers all.
FilesOf(t) ==
    LET marked == {m[2] : m \in {n \in marks : n[1] = t}}
        where == IF marked = {} THEN Places ELSE marked
    IN {<<t, g>> : g \in marked} \cup {l \in logs : l[1] = t /\ l[2] \in where}

\* A pending rollback is continued. Its commit may have completed when it was planned; then it is forgotten, unless it
\* has begun to delete.
RollContinue(p) ==
    /\ ps[p].pc = "roll" /\ Rollbacks # {}
    /\ LET r == Min(Rollbacks)
           t == inst[r].tgt
       IN IF Done(t) /\ inst[r].st = "req"
          THEN inst' = Without(inst, {r}) /\ UNCHANGED ps
          ELSE /\ inst' = IF Done(t) THEN Without(inst, {t}) ELSE inst
               /\ Go(p, "r-inflight", [r |-> r, back |-> ps[p].pc])
    /\ UNCHANGED <<old, logs, bases, marks, fly, mdt, listed, lock, note, good, rolled, passed, told, left, flags>>

\* Before a commit others' pending rollbacks stay as they are: what is pending of a target is taken back once more.
RollRequest(p) ==
    /\ ps[p].pc \in {"aborting", "clearing"} \/ (ps[p].pc = "roll" /\ Rollbacks = {})
    /\ Targets(p) # {}
    /\ \E r \in NewTimes(p, 1) :
       LET t == Min(Targets(p)) IN
       /\ inst' = With(inst, r, [Instant("roll", p, "req") EXCEPT !.tgt = t, !.x = FilesOf(t)])
       /\ Go(p, "r-inflight", [r |-> r, back |-> ps[p].pc])
       /\ flags' = flags \cup (IF {l \in logs : l[1] = t} \subseteq FilesOf(t) THEN {} ELSE {"a rollback misses a file"})
                         \cup (IF inst[t].hb /\ inst[t].own # p /\ p \notin Eager
                               THEN {"a living writer's instant is rolled back"} ELSE {})
    /\ UNCHANGED <<old, logs, bases, marks, fly, mdt, listed, lock, note, good, rolled, passed, told, left>>

\* A commit that completes after it was chosen is noticed: the timeline is looked at again.
RollInflight(p) ==
    /\ ps[p].pc = "r-inflight"
    /\ LET r == ps[p].r IN
       IF r \notin Times \/ (On("rollback-completed") /\ Done(inst[r].tgt))
       THEN Set(p, "out") /\ UNCHANGED <<inst, rolled>>
       ELSE /\ inst' = [inst EXCEPT ![r].st = IF @ = "done" THEN @ ELSE "inf"]
            /\ rolled' = rolled \cup {inst[r].tgt}
            /\ Set(p, "r-undo")
    /\ UNCHANGED <<old, logs, bases, marks, fly, mdt, listed, lock, note, good, passed, told, left, flags>>

\* The metadata table forgets the files. If the commit would be the table's first one, an empty one is made before it.
IsFirst(t) == DOMAIN old = {} /\ \A u \in Writes : Done(u) => u > t
RollUndo(p) ==
    /\ ps[p].pc = "r-undo"
    /\ LET t == inst[ps[p].r].tgt
           free == {u \in 1 .. t - 1 : u % 2 = 1 /\ u \notin Times}
           f == Max(free)
       IN /\ mdt' = Without(mdt, {t})
          /\ IF IsFirst(t) /\ On("first-commit") /\ free # {}
             THEN /\ inst' = With(inst, f, [Instant("write", p, "done") EXCEPT !.ct = Next2(Latest, 1), !.hb = FALSE])
                  /\ note' = With(note, f, Of_(p, 0, {}, {}))
             ELSE UNCHANGED <<inst, note>>
    /\ Set(p, "r-files")
    /\ UNCHANGED <<old, logs, bases, marks, fly, listed, lock, good, rolled, passed, told, left, flags>>

RollFiles(p) ==
    /\ ps[p].pc = "r-files"
    /\ logs' = IF On("rollback-files") THEN logs \ inst[ps[p].r].x ELSE logs
    /\ bases' = {b \in bases : b.t # inst[ps[p].r].tgt}
    /\ flags' = flags \cup (IF logs' \cap inst[ps[p].r].x # {} THEN {"a rollback left a file"} ELSE {})
    /\ Set(p, "r-instant")
    /\ UNCHANGED <<inst, old, marks, fly, mdt, listed, lock, note, good, rolled, passed, told, left>>

\* Its inflight file, then its requested file.
RollInstant(p) ==
    /\ ps[p].pc = "r-instant"
    /\ LET t == inst[ps[p].r].tgt IN
       IF t \in Pending /\ inst[t].st = "inf"
       THEN inst' = [inst EXCEPT ![t].st = "req"] /\ UNCHANGED ps
       ELSE inst' = (IF t \in Pending THEN Without(inst, {t}) ELSE inst) /\ Set(p, "r-done")
    /\ UNCHANGED <<old, logs, bases, marks, fly, mdt, listed, lock, note, good, rolled, passed, told, left, flags>>

RollDone(p) ==
    /\ ps[p].pc = "r-done"
    /\ LET r == ps[p].r
           t == inst[r].tgt
       IN IF On("fence") /\ ~Holds(p)
          THEN Set(p, "out") /\ UNCHANGED <<inst, marks, lock>>
          ELSE /\ inst' = [inst EXCEPT ![r].st = "done", ![r].ct = Next2(Latest, 1)]
               /\ marks' = {m \in marks : m[1] # t}
               /\ IF ps[p].back = "aborting"
                  THEN Release(p) /\ Go(p, "idle", IF Role[p] = "writer" THEN Again(p) ELSE Rest(p))
                  ELSE UNCHANGED lock /\ Set(p, ps[p].back)
    /\ UNCHANGED <<old, logs, bases, fly, mdt, listed, note, good, rolled, passed, told, left, flags>>

RollEnd(p) ==
    /\ ps[p].pc = "roll" /\ Rollbacks = {} /\ Targets(p) = {}
    /\ Release(p)
    /\ Go(p, "idle", Again(p))
    /\ UNCHANGED <<inst, old, logs, bases, marks, fly, mdt, listed, note, good, rolled, passed, told, left, flags>>

\* It has lost the lock or its instant, or does not know what became of it: it ends, and the next process begins.
Out(p) ==
    /\ ps[p].pc = "out"
    /\ Release(p)
    /\ \E pc \in AfterError : Go(p, pc, Again(p))
    /\ inst' = [t \in Times |-> [inst[t] EXCEPT !.hb = @ /\ inst[t].own # p]]
    /\ UNCHANGED <<old, logs, bases, marks, fly, mdt, listed, note, good, rolled, passed, told, left, flags>>

Roll(p) ==
    \/ Enter(p) \/ RollContinue(p) \/ RollRequest(p) \/ RollInflight(p) \/ RollUndo(p)
    \/ RollFiles(p) \/ RollInstant(p) \/ RollDone(p) \/ RollEnd(p) \/ Out(p)

-----------------------------------------------------------------------------
(* A writer. *)

\* The batch after the recorded position. A source delivers what was read last once more; it is dropped.
Batch(p) == IF On("dedupe") \/ Recorded[p] = 0 THEN Recorded[p] + 1 ELSE Recorded[p]

Look(p) ==
    /\ Role[p] = "writer" /\ ps[p].pc = "idle" /\ Busy(p)
    /\ On("foreign-action") => Restores = {}
    /\ \E grp \in Choices(p) :
       Go(p, "looked", [obs |-> Latest, see |-> Committed \cup Replacing \cup DOMAIN old, rs |-> Known, b |-> Batch(p),
                        all |-> Recorded, todo |-> {Where(g) : g \in grp}])
    /\ UNCHANGED <<inst, old, logs, bases, marks, fly, mdt, listed, lock, note, good, rolled, passed, told, left,
                   flags>>

Request(p) ==
    /\ ps[p].pc = "looked"
    /\ \E t \in NewTimes(p, 0) :
       IF t \in Times /\ inst[t].act = "clus"
       THEN flags' = flags \cup {"two instants have one time"} /\ Set(p, "out") /\ UNCHANGED <<inst, note>>
       ELSE /\ inst' = With(inst, t, Instant("write", p, "req"))
            /\ note' = With(note, t, [Of_(p, ps[p].b, {Home(q) : q \in ps[p].todo}, ps[p].see) EXCEPT !.pl = ps[p].todo])
            /\ Go(p, IF Policy = "row" THEN "requested" ELSE "checked", [t |-> t])
            /\ UNCHANGED flags
    /\ UNCHANGED <<old, logs, bases, marks, fly, mdt, listed, lock, good, rolled, passed, told, left>>

\* Replacecommits that have completed since the look, and moved what the commit writes.
Relaid(p) ==
    {u \in Replacing \ ps[p].see : Role[inst[u].own] = "mover" \/ ReplacedBy(u) \cap note[ps[p].t].pl # {}}

\* The first check, against what has completed since the look, and what living writers have begun.
Check(p) ==
    /\ ps[p].pc = "requested"
    /\ LET t == ps[p].t
           newer == {u \in Committed \ ps[p].see : Conflict(u, t)}
           before == {u \in (Of("write") \cap Pending) \ {t} :
                         Conflict(u, t) /\ inst[u].hb /\ (inst[u].st = "inf" \/ u < t)}
       IN IF (newer \cup Relaid(p) # {} /\ On("check-completed")) \/ ~Known \subseteq ps[p].rs
          THEN inst' = Without(inst, {t}) /\ Go(p, "idle", Again(p))
          ELSE (On("check-pending") => before = {}) /\ Set(p, "checked") /\ UNCHANGED inst
    /\ UNCHANGED <<old, logs, bases, marks, fly, mdt, listed, lock, note, good, rolled, passed, told, left, flags>>

Inflight(p) ==
    /\ ps[p].pc = "checked"
    /\ LET t == ps[p].t
           mine == IF t \in Times THEN inst[t] ELSE [Instant("write", p, "inf") EXCEPT !.hb = FALSE, !.rq = FALSE]
           vain == {u \in Committed \ ps[p].see : Conflict(u, t)}
           both == {u \in Of("write") \ {t} : inst[u].st = "inf" /\ inst[u].hb /\ Conflict(u, t)}
       IN /\ inst' = With(inst, t, [mine EXCEPT !.st = IF @ = "done" THEN @ ELSE "inf"])
          /\ flags' = flags \cup (IF Policy = "row" /\ mine.hb /\ vain # {} THEN {"a commit is begun in vain"} ELSE {})
                            \cup (IF Policy = "row" /\ mine.hb /\ both # {} THEN {"two write at once"} ELSE {})
    /\ Set(p, "writing")
    /\ UNCHANGED <<old, logs, bases, marks, fly, mdt, listed, lock, note, good, rolled, passed, told, left>>

\* A marker, then its file.
Marker(p) ==
    /\ ps[p].pc = "writing" /\ ps[p].todo # {} /\ ps[p].t \notin passed
    /\ \E g \in FirstOf(ps[p].todo) :
       LET it == <<ps[p].t, g>> IN
       /\ IF On("marker") THEN it \notin marks ELSE it \in logs
       /\ marks' = marks \cup {it}
       /\ ps' = [ps EXCEPT ![p].todo = IF On("marker") THEN @ ELSE @ \ {g}]
    /\ UNCHANGED <<inst, old, logs, bases, fly, mdt, listed, lock, note, good, rolled, passed, told, left, flags>>
File(p) ==
    /\ ps[p].pc = "writing" /\ ps[p].todo # {} /\ ps[p].t \notin passed
    /\ \E g \in FirstOf(ps[p].todo) :
       LET it == <<ps[p].t, g>> IN
       /\ IF On("marker") THEN it \in marks ELSE it \notin logs
       /\ logs' = logs \cup {it}
       /\ ps' = [ps EXCEPT ![p].todo = IF On("marker") THEN @ \ {g} ELSE @]
    /\ UNCHANGED <<inst, old, bases, marks, fly, mdt, listed, lock, note, good, rolled, passed, told, left, flags>>

\* Nobody has rolled it back.
IsOurs(t) == t \in Times /\ inst[t].rq /\ inst[t].st # "req"
\* Or has begun to: a rollback whose process may have died.
TakenBack(t) == \E r \in Rollbacks : IsFinal(r) /\ inst[r].tgt = t
\* Under the lock: the heartbeat, the instant, the second check, the columns, the positions of all writers.
Take(p) ==
    /\ ps[p].pc = "writing" /\ ps[p].todo = {} /\ CanLock
    /\ On("dead-first") => Targets(p) = {}
    /\ LET t == ps[p].t
           lost == \/ On("heartbeat-check") /\ ps[p].lost
                   \/ On("inflight-check") /\ ~IsOurs(t)
                   \/ On("completion-check") /\ Done(t)
                   \/ On("rollback-inflight") /\ TakenBack(t)
           newer == {u \in Committed \ (ps[p].see \cup {t}) : Conflict(u, t)}
           theirs == Columns(999)
           mine == IF p \in Adds /\ ps[p].n + 1 = Rounds[p] THEN theirs \cup {p} ELSE theirs
           last == Max({u \in Writes : Done(u) /\ note[u].named})
           turn == On("columns-out-of-turn") /\ p \notin Foreign => mine = theirs \/ last <= t
           restored == ~Known \subseteq ps[p].rs
           hudis == {c \in Of("clus") \cap Pending : inst[c].own \in Foreign /\ ReplacedBy(c) \cap note[t].pl # {}}
       IN IF lost
          THEN Go(p, "lost", [obs |-> 0]) /\ UNCHANGED <<note, lock>>
          ELSE IF (On("overtaken") /\ (newer \cup Relaid(p) # {} \/ restored)) \/ ~turn
                  \/ (On("planned-by-hudi") /\ hudis # {})
          THEN Go(p, "abort", [see |-> {}]) /\ UNCHANGED <<note, lock>>
          ELSE /\ lock' = p
               /\ note' = [note EXCEPT ![t].cols = mine,
                           ![t].pos = [(IF On("positions-of-all") THEN Recorded ELSE ps[p].all)
                                       EXCEPT ![p] = ps[p].b]]
               /\ Go(p, "taken", [obs |-> Latest])
    /\ UNCHANGED <<inst, old, logs, bases, marks, fly, mdt, listed, good, rolled, passed, told, left, flags>>

\* Before it commits, what dead writers have begun is rolled back: a completing call of theirs may be under way.
Clear(p) ==
    /\ (ps[p].pc = "writing" /\ ps[p].todo = {}) \/ ps[p].pc = "t-written"
    /\ CanLock /\ On("dead-first")
    /\ Targets(p) # {}
    /\ lock' = p
    /\ Set(p, "clearing")
    /\ UNCHANGED <<inst, old, logs, bases, marks, fly, mdt, listed, note, good, rolled, passed, told, left, flags>>
Cleared(p) ==
    /\ ps[p].pc = "clearing" /\ Targets(p) = {}
    /\ Release(p)
    /\ Set(p, IF Role[p] = "writer" THEN "writing" ELSE "t-written")
    /\ UNCHANGED <<inst, old, logs, bases, marks, fly, mdt, listed, note, good, rolled, passed, told, left, flags>>

Abort(p) ==
    /\ ps[p].pc = "abort" /\ CanLock
    /\ lock' = p
    /\ IF ps[p].t \in Pending THEN Go(p, "aborting", [obs |-> Latest]) ELSE Set(p, "out")
    /\ UNCHANGED <<inst, old, logs, bases, marks, fly, mdt, listed, note, good, rolled, passed, told, left, flags>>

GiveUp(p) ==
    /\ GivesUp /\ ps[p].pc = "writing"
    /\ Go(p, "abort", [see |-> {}])
    /\ UNCHANGED <<inst, old, logs, bases, marks, fly, mdt, listed, lock, note, good, rolled, passed, told, left, flags>>

\* The metadata table is told first. A commit without files has no entry.
Entry(p) == [add |-> {<<"log", ps[p].t, g>> : g \in note[ps[p].t].pl}, del |-> {}]
Tell(p) ==
    /\ ps[p].pc = "taken"
    /\ mdt' = IF Indexed /\ listed /\ On("index-before-commit") /\ note[ps[p].t].pl # {}
              THEN With(mdt, ps[p].t, Entry(p)) ELSE mdt
    /\ Set(p, "noted")
    /\ UNCHANGED <<inst, old, logs, bases, marks, fly, listed, lock, note, good, rolled, passed, told, left, flags>>

\* The last look before the completing call: the instant is pending still, and the lock is held.
Fence(p) ==
    /\ ps[p].pc = "noted"
    /\ LET t == ps[p].t IN
       IF \/ On("inflight-check") /\ ~IsOurs(t)
          \/ On("completion-check") /\ Done(t)
          \/ On("fence") /\ ~Holds(p)
       THEN Set(p, "lost")
       ELSE \E c \in EndTimes(p) : Go(p, "sent", [c |-> c, see |-> {}])
    /\ UNCHANGED <<inst, old, logs, bases, marks, fly, mdt, listed, lock, note, good, rolled, passed, told, left,
                   flags>>

Completed(t, c, act, x) ==
    /\ inst' = With(inst, t, [(IF t \in Times THEN inst[t] ELSE Instant(act, note[t].w, "done"))
                              EXCEPT !.st = "done", !.ct = Max({@, c}), !.hb = FALSE, !.x = x])
    /\ good' = IF t \in rolled \/ act # "write" THEN good ELSE good \cup {t}
    /\ note' = [note EXCEPT ![t].named = TRUE]
    /\ flags' = IF Done(t) THEN flags \cup {"an instant completed twice"} ELSE flags
Land(p) ==
    /\ ps[p].pc = "sent"
    /\ Completed(ps[p].t, ps[p].c, "write", {})
    /\ Go(p, "landed", [c |-> 0])
    /\ UNCHANGED <<old, logs, bases, marks, fly, mdt, listed, lock, rolled, passed, told, left>>

\* The answer comes, or it is lost and the file is read back. The markers go.
Answer(p) ==
    /\ ps[p].pc = "landed"
    /\ mdt' = IF Indexed /\ listed /\ ~On("index-before-commit") THEN With(mdt, ps[p].t, Entry(p)) ELSE mdt
    /\ told' = told \cup {<<p, ps[p].b, "done">>}
    /\ marks' = {m \in marks : m[1] # ps[p].t}
    /\ Release(p)
    /\ Go(p, "idle", Rest(p))
    /\ UNCHANGED <<inst, old, logs, bases, fly, listed, note, good, rolled, passed, left, flags>>
NoAnswer(p) ==
    /\ ps[p].pc = "landed" /\ ~On("read-back") /\ left.late > 0
    /\ left' = [left EXCEPT !.late = @ - 1]
    /\ told' = told \cup {<<p, ps[p].b, "failed">>}
    /\ Set(p, "out")
    /\ UNCHANGED <<inst, old, logs, bases, marks, fly, mdt, listed, lock, note, good, rolled, passed, flags>>
\* No answer, and no file that could be read back: the outcome is unknown, and the call may still be carried out.
Unknown(p) ==
    /\ ps[p].pc = "sent" /\ left.late > 0 /\ "done" \in LateCalls
    /\ left' = [left EXCEPT !.late = @ - 1]
    /\ \/ fly' = fly \cup {[k |-> "done", t |-> ps[p].t, c |-> ps[p].c, act |-> "write", x |-> {}]}
       \/ fly' = fly
    /\ IF On("unknown-outcome")
       THEN Set(p, "out") /\ UNCHANGED <<told, lock>>
       ELSE told' = told \cup {<<p, ps[p].b, "done">>} /\ Release(p) /\ Go(p, "idle", Rest(p))
    /\ UNCHANGED <<inst, old, logs, bases, marks, mdt, listed, note, good, rolled, passed, flags>>

\* Its files are withdrawn, unless the instant has completed.
Lost(p) ==
    /\ ps[p].pc = "lost"
    /\ logs' = IF Done(ps[p].t) THEN logs ELSE {l \in logs : l[1] # ps[p].t}
    /\ bases' = IF Done(ps[p].t) THEN bases ELSE {b \in bases : b.t # ps[p].t}
    /\ Set(p, "out")
    /\ UNCHANGED <<inst, old, marks, fly, mdt, listed, lock, note, good, rolled, passed, told, left, flags>>

Write(p) ==
    \/ Look(p) \/ Request(p) \/ Check(p) \/ Inflight(p) \/ Marker(p) \/ File(p) \/ Clear(p) \/ Cleared(p) \/ Take(p) \/ GiveUp(p) \/ Abort(p)
    \/ Tell(p) \/ Fence(p) \/ Land(p) \/ Answer(p) \/ NoAnswer(p) \/ Unknown(p) \/ Lost(p)

-----------------------------------------------------------------------------
(* A compaction: what has completed before it goes into base files. *)

Before(g, c) == {u \in Newer(logs, g, Top(bases, g)) : CT(u) < c}
Planned == UNION {ReplacedBy(t) : t \in (Of("comp") \cup Of("clus")) \cap Pending}
Plan(c) ==
    {[g |-> g, con |-> Rows(bases, g, Top(bases, g)) \cup Before(g, c), of |-> Before(g, c), top |-> Top(bases, g)] :
        g \in {h \in Places \ (Planned \cup Gone) : Before(h, c) # {}}}

Schedule(p) ==
    /\ Role[p] = "compactor" /\ ps[p].pc = "idle" /\ Busy(p) /\ CanLock /\ Restores = {}
    /\ ~\E t \in Of("comp") \cap Pending : Abandoned(p, t)
    \* A completing call that is under way has a time that nobody sees yet: this one may be later.
    /\ \E c \in ServiceTimes(1) \cup (IF Margin THEN {} ELSE {Unused(Latest + 2, 1)}) :
       IF Plan(c) = {}
       THEN Go(p, "idle", Rest(p)) /\ UNCHANGED <<inst, note>>
       ELSE /\ inst' = With(inst, c, [Instant("comp", p, "req") EXCEPT !.x = Plan(c)])
            /\ note' = With(note, c, Of_(p, 0, {}, {}))
            /\ Go(p, "c-requested", [t |-> c, obs |-> Latest])
    /\ UNCHANGED <<old, logs, bases, marks, fly, mdt, listed, lock, good, rolled, passed, told, left, flags>>

\* A dead process's compaction is executed again.
Resume(p) ==
    /\ Role[p] = "compactor" /\ ps[p].pc = "idle" /\ CanLock
    /\ \E t \in Of("comp") \cap Pending :
       /\ Abandoned(p, t)
       /\ inst' = [inst EXCEPT ![t].hb = TRUE, ![t].own = p]
       /\ Go(p, "c-requested", [t |-> t, obs |-> Latest])
    /\ UNCHANGED <<old, logs, bases, marks, fly, mdt, listed, lock, note, good, rolled, passed, told, left, flags>>

CompactInflight(p) ==
    /\ ps[p].pc = "c-requested"
    /\ IF ps[p].t \in Pending
       THEN inst' = [inst EXCEPT ![ps[p].t].st = "inf"] /\ Set(p, "c-inflight")
       ELSE UNCHANGED inst /\ Set(p, "out")
    /\ UNCHANGED <<old, logs, bases, marks, fly, mdt, listed, lock, note, good, rolled, passed, told, left, flags>>

Compact(p) ==
    /\ ps[p].pc = "c-inflight"
    /\ LET rest == {[t |-> ps[p].t, g |-> o.g, con |-> o.con] : o \in IF ps[p].t \in Times THEN inst[ps[p].t].x ELSE {}} \ bases
       IN IF rest = {}
          THEN Set(p, "c-written") /\ UNCHANGED bases
          ELSE \E S \in Together(rest) :
               /\ bases' = bases \cup S
               /\ IF S = rest THEN Set(p, "c-written") ELSE UNCHANGED ps
    /\ UNCHANGED <<inst, old, logs, marks, fly, mdt, listed, lock, note, good, rolled, passed, told, left, flags>>

\* A compaction that meets a commit that was begun before it is given up, and executed again: its process rolls back first
\* what is a dead one's.
CompactTake(p) ==
    /\ ps[p].pc = "c-written" /\ CanLock
    /\ LET c == ps[p].t
           older == {u \in Of("write") \cap Pending : u < c}
           missing == \E o \in inst[c].x : ~Before(o.g, c) \subseteq o.of
       IN IF \/ On("heartbeat-check") /\ p \notin Eager /\ (ps[p].lost \/ (c \in Times /\ inst[c].own # p))
             \/ On("inflight-check") /\ c \notin Times
             \/ On("completion-check") /\ Done(c)
          THEN Set(p, "out") /\ UNCHANGED <<inst, bases, mdt, lock, note>>
          ELSE IF older # {} /\ On("older-writer")
          THEN Set(p, "out") /\ UNCHANGED <<inst, bases, mdt, lock, note>>
          ELSE IF missing /\ On("stale-plan")
          THEN /\ inst' = Without(inst, {c})
               /\ bases' = {b \in bases : b.t # c}
               /\ mdt' = Without(mdt, {c})
               /\ Go(p, "idle", Rest(p))
               /\ UNCHANGED <<lock, note>>
          ELSE /\ lock' = p
               /\ note' = [note EXCEPT ![c].cols = Columns(c)]
               /\ Go(p, "c-taken", [obs |-> Latest])
               /\ UNCHANGED <<inst, bases, mdt>>
    /\ UNCHANGED <<old, logs, marks, fly, listed, good, rolled, passed, told, left, flags>>

CompactTell(p) ==
    /\ ps[p].pc = "c-taken"
    /\ mdt' = IF Indexed /\ listed /\ ps[p].t \in Times
              THEN With(mdt, ps[p].t, [add |-> {<<"base", ps[p].t, o.g>> : o \in inst[ps[p].t].x}, del |-> {}])
              ELSE mdt
    /\ Set(p, "c-noted")
    /\ UNCHANGED <<inst, old, logs, bases, marks, fly, listed, lock, note, good, rolled, passed, told, left, flags>>

CompactFence(p) ==
    /\ ps[p].pc = "c-noted"
    /\ IF \/ On("inflight-check") /\ ps[p].t \notin Times
          \/ On("completion-check") /\ Done(ps[p].t)
          \/ On("fence") /\ ~Holds(p)
       THEN Set(p, "out")
       ELSE \E c \in EndTimes(p) : Go(p, "c-sent", [c |-> c])
    /\ UNCHANGED <<inst, old, logs, bases, marks, fly, mdt, listed, lock, note, good, rolled, passed, told, left,
                   flags>>

CompactLand(p) ==
    /\ ps[p].pc = "c-sent"
    /\ inst' = With(inst, ps[p].t, [(IF ps[p].t \in Times THEN inst[ps[p].t] ELSE Instant("comp", p, "done"))
                                    EXCEPT !.st = "done", !.ct = Max({@, ps[p].c}), !.hb = FALSE])
    /\ note' = [note EXCEPT ![ps[p].t].named = TRUE]
    /\ flags' = IF Done(ps[p].t) THEN flags \cup {"an instant completed twice"} ELSE flags
    /\ Release(p)
    /\ Go(p, "idle", Rest(p))
    /\ UNCHANGED <<old, logs, bases, marks, fly, mdt, listed, good, rolled, passed, told, left>>

Compaction(p) ==
    \/ Schedule(p) \/ Resume(p) \/ CompactInflight(p) \/ Compact(p) \/ CompactTake(p) \/ CompactTell(p)
    \/ CompactFence(p) \/ CompactLand(p)

-----------------------------------------------------------------------------
(* A replacecommit: rows go to new file groups, and no row changes. A clustering gives way to commits that change the file
   groups of its plan; a move to other buckets takes their changes in, under the lock. *)

Units(within) ==
    {[g |-> q, con |-> View(logs, bases, q), of |-> {l \in logs : l[2] = q /\ Counts(l[1]) /\ CT(l[1]) >= Top(bases, q)},
      top |-> Top(bases, q)] : q \in {r \in within : View(logs, bases, r) # {}}}
\* The units whose file groups are as they were planned.
Holding(c) ==
    LET others == UNION {ReplacedBy(t) : t \in ((Of("comp") \cup Of("clus")) \cap Pending) \ {c}}
    IN {o \in inst[c].x : o.g \notin Gone \cup others /\ o \in Units(Places)}

TurnSchedule(p) ==
    /\ Role[p] \in {"clusterer", "mover"} /\ ps[p].pc = "idle" /\ Busy(p) /\ CanLock /\ Restores = {}
    /\ ~\E t \in Of("clus") \cap Pending : inst[t].st = "req" \/ Role[p] = "mover"
    /\ LET able == {q \in Places \ (Gone \cup Planned) : q + 10 \in Places}
       IN IF Units(able) = {}
          THEN Go(p, "idle", Rest(p)) /\ UNCHANGED <<inst, note>>
          ELSE \E S \in (IF Role[p] = "mover" THEN {Units(able)} ELSE SUBSET Units(able) \ {{}}) :
            \E c \in ServiceTimes(IF On("times-apart") THEN 1 ELSE 0) :
               /\ inst' = With(inst, c, [Instant("clus", p, IF Role[p] = "mover" THEN "inf" ELSE "req") EXCEPT !.x = S])
               /\ note' = With(note, c, Of_(p, 0, {}, {}))
               /\ Go(p, IF Role[p] = "mover" THEN "t-inflight" ELSE "t-requested", [t |-> c, obs |-> Latest, todo |-> S])
    /\ UNCHANGED <<old, logs, bases, marks, fly, mdt, listed, lock, good, rolled, passed, told, left, flags>>

\* There may be nothing that becomes better.
TurnNothing(p) ==
    /\ Role[p] = "clusterer" /\ ps[p].pc = "idle" /\ Busy(p)
    /\ Go(p, "idle", Rest(p))
    /\ UNCHANGED <<inst, old, logs, bases, marks, fly, mdt, listed, lock, note, good, rolled, passed, told, left, flags>>

\* A plan of a dead process is executed by whoever comes.
TurnResume(p) ==
    /\ Role[p] = "clusterer" /\ ps[p].pc = "idle" /\ CanLock
    /\ \E t \in Of("clus") \cap Pending :
       /\ inst[t].st = "req" /\ Abandoned(p, t)
       /\ inst' = [inst EXCEPT ![t].hb = TRUE, ![t].own = p]
       /\ Go(p, "t-requested", [t |-> t, obs |-> Latest])
    /\ UNCHANGED <<old, logs, bases, marks, fly, mdt, listed, lock, note, good, rolled, passed, told, left, flags>>

\* Under the lock. What does not hold any more is left out; if that is all, the plan is rolled back.
TurnInflight(p) ==
    /\ ps[p].pc = "t-requested" /\ CanLock
    /\ LET c == ps[p].t IN
       IF c \notin Times \/ inst[c].own # p
       THEN Set(p, "out") /\ UNCHANGED <<inst, lock>>
       ELSE IF Holding(c) = {}
       THEN Go(p, "aborting", [obs |-> Latest]) /\ lock' = p /\ UNCHANGED inst
       ELSE /\ inst' = [inst EXCEPT ![c].st = "inf"]
            /\ Go(p, "t-inflight", [todo |-> Holding(c)])
            /\ UNCHANGED lock
    /\ UNCHANGED <<old, logs, bases, marks, fly, mdt, listed, note, good, rolled, passed, told, left, flags>>

Turned_(p, units) == {[t |-> ps[p].t, g |-> o.g + 10, con |-> o.con] : o \in units}
TurnFiles(p) ==
    /\ ps[p].pc = "t-inflight" /\ ps[p].t \notin passed
    /\ LET rest == Turned_(p, ps[p].todo) \ bases
       IN IF rest = {}
          THEN Set(p, "t-written") /\ UNCHANGED bases
          ELSE \E S \in Together(rest) :
               /\ bases' = bases \cup S
               /\ IF S = rest THEN Set(p, "t-written") ELSE UNCHANGED ps
    /\ UNCHANGED <<inst, old, logs, marks, fly, mdt, listed, lock, note, good, rolled, passed, told, left, flags>>

\* Under the lock.
TurnTake(p) ==
    /\ ps[p].pc = "t-written" /\ CanLock
    /\ On("dead-first") => Targets(p) = {}
    /\ LET c == ps[p].t
           ours == {b \in bases : b.t = c}
           lost == \/ On("heartbeat-check") /\ ps[p].lost
                   \/ On("inflight-check") /\ ~IsOurs(c)
                   \/ On("completion-check") /\ Done(c)
                   \/ On("rollback-inflight") /\ TakenBack(c)
           held == IF Role[p] = "mover" THEN Units(Places \ (Gone \cup {o.g + 10 : o \in ps[p].todo}))
                   ELSE IF p \in Foreign \/ ~On("give-way") THEN ps[p].todo
                   ELSE ps[p].todo \cap Holding(c)
       IN IF lost
          THEN /\ bases' = IF Done(c) THEN bases ELSE bases \ ours
               /\ Set(p, "out") /\ UNCHANGED <<note, lock>>
          ELSE IF held = {}
          THEN Go(p, "abort", [see |-> {}]) /\ bases' = bases \ ours /\ UNCHANGED <<note, lock>>
          ELSE /\ bases' = (bases \ ours) \cup Turned_(p, held)
               /\ lock' = p
               /\ note' = [note EXCEPT ![c].cols = Columns(999)]
               /\ Go(p, "t-taken", [obs |-> Latest, todo |-> held])
    /\ UNCHANGED <<inst, old, logs, marks, fly, mdt, listed, good, rolled, passed, told, left, flags>>

TurnTell(p) ==
    /\ ps[p].pc = "t-taken"
    /\ mdt' = IF Indexed /\ listed
              THEN With(mdt, ps[p].t, [add |-> {<<"base", ps[p].t, o.g + 10>> : o \in ps[p].todo}, del |-> {}]) ELSE mdt
    /\ Set(p, "t-noted")
    /\ UNCHANGED <<inst, old, logs, bases, marks, fly, listed, lock, note, good, rolled, passed, told, left, flags>>

TurnFence(p) ==
    /\ ps[p].pc = "t-noted"
    /\ IF \/ On("inflight-check") /\ ~IsOurs(ps[p].t)
          \/ On("completion-check") /\ Done(ps[p].t)
          \/ On("fence") /\ ~Holds(p)
       THEN Set(p, "lost")
       ELSE \E c \in EndTimes(p) : Go(p, "t-sent", [c |-> c])
    /\ UNCHANGED <<inst, old, logs, bases, marks, fly, mdt, listed, lock, note, good, rolled, passed, told, left,
                   flags>>

TurnLand(p) ==
    /\ ps[p].pc = "t-sent"
    /\ Completed(ps[p].t, ps[p].c, "clus", ps[p].todo)
    /\ Release(p)
    /\ Go(p, "idle", Rest(p))
    /\ UNCHANGED <<old, logs, bases, marks, fly, mdt, listed, rolled, passed, told, left>>

Turn(p) ==
    \/ TurnSchedule(p) \/ TurnNothing(p) \/ TurnResume(p) \/ TurnInflight(p) \/ TurnFiles(p) \/ TurnTake(p)
    \/ TurnTell(p) \/ TurnFence(p) \/ TurnLand(p)

-----------------------------------------------------------------------------
(* A clean: file slices that no retained time needs. *)

DoneWrites == {t \in Writes : Done(t)}
OpenWrites == Writes \cap Pending
Retained ==
    LET newest == Max(DoneWrites) IN
    IF OpenWrites = {} \/ newest <= Min(OpenWrites) THEN newest ELSE Max({t \in DoneWrites : t < Min(OpenWrites)})
\* The slice of a log file: the newest base file at its completion; 0 before all base files.
SliceOf(l) == Max({b.t : b \in {c \in bases : c.g = l[2] /\ Counts(c.t) /\ c.t <= CT(l[1])}})
Slices(g) ==
    {b.t : b \in {c \in bases : c.g = g /\ Counts(c.t)}} \cup
    {SliceOf(l) : l \in {m \in logs : m[2] = g /\ Counts(m[1])}}
Since(g, s) == IF s # 0 THEN s ELSE Min({l[1] : l \in {m \in logs : m[2] = g /\ Counts(m[1]) /\ SliceOf(m) = 0}})
IsPlanned(g, s) == \E c \in Of("comp") \cap Pending : \E o \in inst[c].x : o.g = g /\ o.top = s
Doomed(g) ==
    LET older == {s \in Slices(g) : Since(g, s) < Retained}
    IN IF \E t \in Replacing : g \in ReplacedBy(t) /\ t <= Retained
       THEN {s \in Slices(g) : ~IsPlanned(g, s)}
       ELSE {s \in older \ {Max(older)} : ~IsPlanned(g, s)}
DoomedFiles ==
    UNION {{<<"base", s, g>> : s \in Doomed(g) \ {0}} \cup
           {<<"log", l[1], g>> : l \in {m \in logs : m[2] = g /\ Counts(m[1]) /\ SliceOf(m) \in Doomed(g)}} :
              g \in Places}

CleanLook(p) ==
    /\ Role[p] = "cleaner" /\ ps[p].pc = "idle" /\ CanLock
    /\ LET pending == Of("clean") \cap Pending IN
       IF pending # {}
       THEN lock' = p /\ Go(p, "k-files", [t |-> Min(pending), obs |-> Latest])
       ELSE /\ Busy(p) /\ Restores = {}
            /\ IF DoneWrites = {} \/ DoomedFiles = {}
               THEN Go(p, "idle", Rest(p)) /\ UNCHANGED lock
               ELSE lock' = p /\ Go(p, "k-looked", [todo |-> DoomedFiles])
    /\ UNCHANGED <<inst, old, logs, bases, marks, fly, mdt, listed, note, good, rolled, passed, told, left, flags>>

\* What others have begun since the look changes nothing of the plan.
CleanRequest(p) ==
    /\ ps[p].pc = "k-looked"
    /\ \E k \in ServiceTimes(1) :
       /\ inst' = With(inst, k, [Instant("clean", p, "req") EXCEPT !.x = ps[p].todo])
       /\ Go(p, "k-files", [t |-> k, obs |-> k, todo |-> {}])
    /\ UNCHANGED <<old, logs, bases, marks, fly, mdt, listed, lock, note, good, rolled, passed, told, left, flags>>

CleanFiles(p) ==
    /\ ps[p].pc = "k-files"
    /\ LET rest == IF ps[p].t \in Times THEN {f \in inst[ps[p].t].x : IsThere(f)} ELSE {}
       IN IF ps[p].t \notin Times
          THEN Set(p, "out") /\ UNCHANGED <<logs, bases>>
          ELSE IF rest = {}
          THEN Set(p, "k-note") /\ UNCHANGED <<logs, bases>>
          ELSE \E S \in Together(rest) :
               /\ logs' = {l \in logs : <<"log", l[1], l[2]>> \notin S}
               /\ bases' = {b \in bases : <<"base", b.t, b.g>> \notin S}
               /\ IF S = rest THEN Set(p, "k-note") ELSE UNCHANGED ps
    /\ UNCHANGED <<inst, old, marks, fly, mdt, listed, lock, note, good, rolled, passed, told, left, flags>>

CleanTell(p) ==
    /\ ps[p].pc = "k-note"
    /\ mdt' = IF Indexed /\ listed /\ ps[p].t \in Times
              THEN With(mdt, ps[p].t, [add |-> {}, del |-> inst[ps[p].t].x]) ELSE mdt
    /\ Set(p, "k-done")
    /\ UNCHANGED <<inst, old, logs, bases, marks, fly, listed, lock, note, good, rolled, passed, told, left, flags>>

CleanDone(p) ==
    /\ ps[p].pc = "k-done"
    /\ IF (On("fence") /\ ~Holds(p)) \/ ps[p].t \notin Pending
       THEN Set(p, "out") /\ UNCHANGED <<inst, lock>>
       ELSE /\ inst' = [inst EXCEPT ![ps[p].t].st = "done", ![ps[p].t].ct = Next2(Latest, 1)]
            /\ Release(p)
            /\ Go(p, "idle", Rest(p))
    /\ UNCHANGED <<old, logs, bases, marks, fly, mdt, listed, note, good, rolled, passed, told, left, flags>>

Clean(p) == CleanLook(p) \/ CleanRequest(p) \/ CleanFiles(p) \/ CleanTell(p) \/ CleanDone(p)

-----------------------------------------------------------------------------
(* Archival: the oldest instants leave the active timeline. *)

HeldBack ==
    LET pending == {t \in Pending : inst[t].act \in {"write", "comp", "clus", "clean", "roll", "rest"}}
        before == {t \in DoneWrites : pending # {} /\ t < Min(pending)}
    IN (IF before = {} THEN {} ELSE {Max(before)}) \cup (IF pending = {} THEN {} ELSE {Min(pending)})
\* Without a metadata table: the log files of the newest file slices, and what no compaction has read.
InSlices ==
    IF Indexed THEN {}
    ELSE LET compactions == {t \in Of("comp") : Done(t)}
             later == {t \in DoneWrites : CT(t) > Max(compactions)}
         IN (IF compactions = {} THEN {0} ELSE IF later = {} THEN {} ELSE {Min(later)})
            \cup {l[1] : l \in {m \in logs : Counts(m[1]) /\ CT(m[1]) >= Top(bases, m[2])}}
\* A replacecommit stays while files of what it has replaced are there: readers would count them without it.
FirstReplacing ==
    LET held == {t \in Replacing : ReplacedBy(t) \cap ({l[2] : l \in logs} \cup {b.g : b \in bases}) # {}}
    IN IF held = {} \/ ~On("replaced-files") THEN {} ELSE {Min(held)}
\* Of commits of rows each that leaves has completed before all that stay.
Ordered(S) == \A t \in S \ Of("comp"), u \in DoneWrites \ (S \cup Of("comp")) : CT(t) < CT(u)
Leaving ==
    LET old1 == {t \in DoneWrites : t # Max(DoneWrites) /\ \A e \in HeldBack \cup InSlices \cup FirstReplacing : t < e}
        prefixes == {S \in {{t \in old1 : t <= e} : e \in old1} : Ordered(S)}
    IN IF prefixes = {} THEN {} ELSE CHOOSE S \in prefixes : \A R \in prefixes : R \subseteq S
NewFirst == Min(Writes \ Leaving)

\* What landed after its rollback is deleted once more, before it is older than the active timeline.
ArchiveSweep(p) ==
    /\ Role[p] = "archiver" /\ ps[p].pc = "idle" /\ Busy(p) /\ CanLock /\ Restores = {}
    /\ inst' = Without(inst, Late)
    /\ IF Late = {} /\ Leaving = {}
       THEN Go(p, "idle", Rest(p)) /\ UNCHANGED <<logs, lock, passed>>
       ELSE IF Late # {}
       THEN Set(p, "idle") /\ UNCHANGED <<logs, lock, passed>>
       ELSE LET passing == {t \in rolled : t < NewFirst} IN
            /\ lock' = p
            /\ logs' = IF On("late-files")
                       THEN logs \ UNION {inst[r].x \cup {m \in marks : m[1] = inst[r].tgt} :
                                          r \in {q \in Of("roll") : Done(q) /\ inst[q].tgt < NewFirst}}
                       ELSE logs
            /\ passed' = passed \cup passing
            /\ Go(p, "a-move", [todo |-> Leaving, obs |-> NewFirst])
    /\ UNCHANGED <<old, bases, marks, fly, mdt, listed, note, good, rolled, told, left, flags>>

ArchiveMove(p) ==
    /\ ps[p].pc = "a-move"
    /\ IF ~Holds(p)
       THEN Set(p, "out") /\ UNCHANGED <<inst, old>>
       ELSE LET going == ps[p].todo
                beside == {t \in Times : inst[t].act \in {"roll", "clean", "rest"} /\ Done(t) /\ t < Max(going)}
            IN /\ old' = [t \in DOMAIN old \cup going |-> IF t \in going THEN inst[t].ct ELSE old[t]]
               /\ inst' = Without(inst, going \cup beside)
               /\ Go(p, "idle", Rest(p))
    /\ Release(p)
    /\ UNCHANGED <<logs, bases, marks, fly, mdt, listed, note, good, rolled, passed, told, left, flags>>

Archive(p) == ArchiveSweep(p) \/ ArchiveMove(p)

-----------------------------------------------------------------------------
(* A restore to the moment at which a commit completed. *)

Undone(x) ==
    {t \in Writes : \/ t \in Pending /\ ~(inst[t].act \in {"comp", "clus"} /\ t < x)
                    \/ Done(t) /\ inst[t].act = "comp" /\ t > x
                    \/ Done(t) /\ inst[t].act # "comp" /\ CT(t) > CT(x)}
\* Cleaned files cannot come back: every commit that stays must be where it is read from then.
IsWhole(x) ==
    \A g \in Groups :
        LET B == {b \in bases : b.t \notin Undone(x)}
            L == {l \in logs : l[1] \notin Undone(x)}
            gone == UNION {ReplacedBy(t) : t \in Replacing \ Undone(x)}
        IN {t \in Expected(g) : CT(t) <= CT(x)} = Seen_(L, B, gone, g)

RestoreRequest(p) ==
    /\ Role[p] = "restorer" /\ ps[p].pc = "idle" /\ CanLock
    /\ IF Restores # {}
       THEN lock' = p /\ Go(p, "x-inflight", [t |-> Min(Restores), obs |-> Latest]) /\ UNCHANGED inst
       ELSE /\ Busy(p) /\ Rollbacks = {} /\ Of("clean") \cap Pending = {}
            /\ \A t \in OpenWrites : ~inst[t].hb
            /\ LET able == {x \in Committed : note[x].grp # {} /\ Undone(x) # {} /\ IsWhole(x)} IN
               IF able = {}
               THEN Go(p, "idle", Rest(p)) /\ UNCHANGED <<inst, lock>>
               ELSE \E x \in able, t \in ServiceTimes(1) :
                    /\ lock' = p
                    /\ inst' = With(inst, t, [Instant("rest", p, "req") EXCEPT
                                     !.x = Undone(x), !.tgt = {u \in good : CT(u) <= CT(x)}])
                    /\ Go(p, "x-inflight", [t |-> t, obs |-> t])
    /\ UNCHANGED <<old, logs, bases, marks, fly, mdt, listed, note, good, rolled, passed, told, left, flags>>

\* Readers list files from here on.
RestoreInflight(p) ==
    /\ ps[p].pc = "x-inflight"
    /\ inst' = [inst EXCEPT ![ps[p].t].st = "inf"]
    /\ listed' = FALSE
    /\ mdt' = Nothing
    /\ Set(p, "x-undo")
    /\ UNCHANGED <<old, logs, bases, marks, fly, lock, note, good, rolled, passed, told, left, flags>>

\* The newest first: its completed file, its data files, its other files.
Newest(p) ==
    LET here == inst[ps[p].t].x \cap Times
        open == here \cap Pending
    IN IF open # {} THEN Max(open) ELSE CHOOSE t \in here : \A u \in here : CT(u) <= CT(t)
RestoreUndo(p) ==
    /\ ps[p].pc = "x-undo" /\ inst[ps[p].t].x \cap Times # {}
    /\ IF ~Holds(p) THEN Set(p, "out") /\ UNCHANGED <<inst, logs, bases, good>>
       ELSE LET t == Newest(p) IN
            IF Done(t)
            THEN /\ inst' = [inst EXCEPT ![t].st = "inf"]
                 /\ good' = good \ {t}
                 /\ UNCHANGED <<logs, bases, ps>>
            ELSE /\ logs' = {l \in logs : l[1] # t}
                 /\ bases' = {b \in bases : b.t # t}
                 /\ inst' = Without(inst, {t})
                 /\ UNCHANGED <<good, ps>>
    /\ UNCHANGED <<old, marks, fly, mdt, listed, lock, note, rolled, passed, told, left, flags>>

\* What others have begun meanwhile is rolled back, and the metadata table is made of the files that are there.
RestoreIndex(p) ==
    /\ ps[p].pc = "x-undo" /\ inst[ps[p].t].x \cap Times = {}
    /\ IF ~Holds(p) THEN Set(p, "out") /\ UNCHANGED <<inst, logs, bases, mdt, listed, rolled>>
       ELSE LET begun == (Of("write") \cup Of("clus")) \cap Pending
                kept == {l \in logs : l[1] \notin begun}
                seen == {<<"log", l[1], l[2]>> : l \in {m \in kept : Counts(m[1])}} \cup
                        {<<"base", b.t, b.g>> : b \in {c \in bases : Counts(c.t)}}
            IN /\ inst' = Without(inst, begun)
               /\ logs' = kept
               /\ bases' = {b \in bases : b.t \notin begun}
               /\ rolled' = rolled \cup begun
               /\ listed' = Indexed
               /\ mdt' = IF Indexed THEN With(Nothing, 0, [add |-> seen, del |-> {}]) ELSE mdt
               /\ Set(p, "x-done")
    /\ UNCHANGED <<old, marks, fly, lock, note, good, passed, told, left, flags>>

RestoreDone(p) ==
    /\ ps[p].pc = "x-done"
    /\ IF On("fence") /\ ~Holds(p)
       THEN Set(p, "out") /\ UNCHANGED <<inst, flags, lock>>
       ELSE /\ inst' = [inst EXCEPT ![ps[p].t].st = "done", ![ps[p].t].ct = Next2(Latest, 1)]
            /\ flags' = flags \cup (IF good = inst[ps[p].t].tgt THEN {}
                                    ELSE {"a restored table is not what it was then"})
            /\ Release(p)
            /\ Go(p, "idle", Rest(p))
    /\ UNCHANGED <<old, logs, bases, marks, fly, mdt, listed, note, good, rolled, passed, told, left>>

Restore(p) ==
    RestoreRequest(p) \/ RestoreInflight(p) \/ RestoreUndo(p) \/ RestoreIndex(p) \/ RestoreDone(p)

-----------------------------------------------------------------------------
(* What happens to processes, and to what they have sent. *)

Atomic == {"idle", "start", "out"}
\* A process dies. What it has sent is carried out at once, later or never.
Die(p) ==
    /\ ps[p].pc \notin Atomic /\ left.crash > 0 /\ p \in Mortal
    /\ LET next == CHOOSE g \in ps[p].todo : TRUE
           open == "file" \in LateCalls /\ ps[p].pc = "writing" /\ ps[p].todo # {} /\ <<ps[p].t, next>> \in marks
           sent == "done" \in LateCalls /\ ps[p].pc \in {"sent", "t-sent"}
       IN \/ left' = [left EXCEPT !.crash = @ - 1] /\ UNCHANGED fly
          \/ /\ left.late > 0 /\ (open \/ sent)
             /\ left' = [left EXCEPT !.crash = @ - 1, !.late = @ - 1]
             /\ fly' = fly \cup {IF sent THEN [k |-> "done", t |-> ps[p].t, c |-> ps[p].c, x |-> ps[p].todo,
                                              act |-> IF Role[p] = "writer" THEN "write" ELSE "clus"]
                                 ELSE [k |-> "file", t |-> ps[p].t, c |-> next, x |-> {}, act |-> "write"]}
    /\ inst' = [t \in Times |-> [inst[t] EXCEPT !.hb = @ /\ inst[t].own # p]]
    /\ Release(p)
    /\ \E pc \in AfterError : Go(p, pc, Again(p))
    /\ UNCHANGED <<old, logs, bases, marks, mdt, listed, note, good, rolled, passed, told, flags>>

\* A process pauses: its heartbeat, or its lock, counts as a dead one's.
Expire(p) ==
    /\ left.expiry > 0 /\ p \in Sleepy
    /\ \E t \in Pending :
       /\ inst[t].own = p /\ inst[t].hb /\ ps[p].pc \notin Atomic \cup {"sent", "c-sent", "t-sent"}
       /\ inst' = [inst EXCEPT ![t].hb = FALSE]
    /\ ps' = [ps EXCEPT ![p].lost = TRUE]
    /\ left' = [left EXCEPT !.expiry = @ - 1]
    /\ UNCHANGED <<old, logs, bases, marks, fly, mdt, listed, lock, note, good, rolled, passed, told, flags>>
Lapse(p) ==
    /\ left.lapse > 0 /\ Holds(p) /\ p \in Sleepy
    /\ Margin => ps[p].pc \notin {"sent", "c-sent", "t-sent", "landed"}
    /\ lock' = Free
    /\ left' = [left EXCEPT !.lapse = @ - 1]
    /\ UNCHANGED <<inst, old, logs, bases, marks, fly, mdt, listed, ps, note, good, rolled, passed, told, flags>>

\* A late call is carried out. Not assumed: a completing one while the rollback of its instant has files left, or any
\* after archival has passed that.
HasFiles(t) == t \in DOMAIN mdt \/ (\E l \in logs : l[1] = t) \/ (\E b \in bases : b.t = t)
Arrive ==
    \E call \in fly :
    /\ call.t \notin passed
    /\ fly' = fly \ {call}
    /\ IF call.k = "file"
       THEN logs' = logs \cup {<<call.t, call.c>>} /\ UNCHANGED <<inst, good, note, flags>>
       ELSE /\ ~\E r \in Rollbacks : inst[r].tgt = call.t /\ inst[r].st = "inf" /\ HasFiles(call.t)
            /\ Completed(call.t, call.c, call.act, call.x)
            /\ UNCHANGED logs
    /\ UNCHANGED <<old, bases, marks, mdt, listed, lock, ps, rolled, passed, told, left>>

-----------------------------------------------------------------------------
Init ==
    /\ inst = Nothing /\ old = Nothing /\ note = Nothing /\ mdt = Nothing
    /\ logs = {} /\ bases = {} /\ marks = {} /\ fly = {} /\ good = {} /\ rolled = {} /\ passed = {} /\ told = {}
    /\ flags = {}
    /\ listed = Indexed
    /\ lock = Free
    /\ ps = [p \in Procs |-> [pc |-> "start", t |-> 0, r |-> 0, n |-> 0, b |-> 0, c |-> 0, obs |-> 0, see |-> {},
                              rs |-> {}, todo |-> {}, lost |-> FALSE, back |-> "", all |-> Nothing]]
    /\ left = [crash |-> Crashes, lapse |-> Lapses, expiry |-> Expiries, late |-> Lates]

Step(p) == Roll(p) \/ Write(p) \/ Compaction(p) \/ Turn(p) \/ Clean(p) \/ Archive(p) \/ Restore(p)
Next == (\E p \in Procs : Step(p) \/ Die(p) \/ Expire(p) \/ Lapse(p)) \/ Arrive
Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
Bounded == Latest <= MaxTime

(* What must hold in every state. *)

\* Readers that list files see exactly the commits that count, each whole, none twice and none lost.
ReadersAgree ==
    Restores = {} => \A g \in Groups : Seen_(logs, bases, Gone, g) = Expected(g) /\ IsOnce(logs, bases, Gone, g)
\* During a restore they see an earlier state, whole.
ReadersSeeWholeCommits ==
    \A t \in DOMAIN note \ good :
        \/ \A g \in note[t].grp : t \notin Seen_(logs, bases, Gone, g)
        \/ Done(t)
\* Readers of the metadata table see the same, and what it lists is there and has completed.
IndexAgrees ==
    listed /\ Restores = {} =>
        /\ \A g \in Groups : Seen_(ListedLogs, ListedBases, Gone, g) = Expected(g)
        /\ \A f \in Listed : Counts(f[2]) => IsThere(f) \/ \E k \in Of("clean") \cap Pending : f \in inst[k].x
        /\ \A t \in Entries : t \in Times \/ t \in DOMAIN old \/ t = 0 \/ mdt[t].add = {}
\* A commit was made upon all that conflict with it and completed before it.
NoLostUpdate ==
    \A t \in good, u \in good :
        t # u /\ Conflict(t, u) /\ CT(u) < CT(t) => u \in note[t].see
\* No batch is applied twice; the newest commit knows the positions of all.
ExactlyOnce ==
    /\ \A t \in good, u \in good : t # u /\ note[t].n > 0 /\ note[u].n > 0 => <<note[t].w, note[t].n>> # <<note[u].w, note[u].n>>
    /\ \A t \in good : note[t].n > 0 /\ Restores = {} => Recorded[note[t].w] >= note[t].n
\* Writers were told the truth.
ToldTheTruth ==
    Of("rest") = {} =>
        \A m \in told : (m[3] = "done") <=> \E t \in good : note[t].w = m[1] /\ note[t].n = m[2]
\* The write that was requested last has all columns.
ColumnsStay == Restores = {} => UNION {note[t].cols : t \in good} \subseteq Columns(999)
NothingForbidden == flags = {}
=============================================================================
