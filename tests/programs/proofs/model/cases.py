"""The cases, and the case that breaks when a guard is switched off. Guards have the names of ``make mutants``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tests.programs.proofs.model.case import Case

_TWO = {"w1": "writer", "w2": "writer"}
_BESIDE = {"w1": (1,), "w2": (2,)}
_TURNED = {"w1": "writer", "l": "clusterer"}

CASES = (
    Case("plain", "two writers, clocks apart", _TWO, apart=True),
    Case(
        "dying",
        "one is taken for dead, the other dies",
        _TWO,
        crashes=1,
        expiries=1,
        mortal=("w2",),
        sleepy=("w1",),
        max_time=8,
    ),
    Case("lapse", "a lock lapses under its holder", _TWO, lapses=1, sleepy=("w1",)),
    Case(
        "late_file", "a dead writer's file lands late", _TWO, crashes=1, lates=1, mortal=("w1",), late_calls=("file",)
    ),
    Case(
        "late_done",
        "a dead writer's completed file lands late",
        _TWO,
        crashes=1,
        lates=1,
        mortal=("w1",),
        late_calls=("done",),
        max_time=8,
    ),
    Case(
        "answers",
        "answers of a completing call are lost",
        {"w1": "writer"},
        rounds={"w1": 2},
        crashes=1,
        lates=1,
        mortal=("w1",),
        late_calls=("file", "done"),
    ),
    Case("halves", "a commit of two partitions dies", {"w1": "writer"}, groups=(1, 2), crashes=1, mortal=("w1",)),
    Case("row", "two writers of one file group, policy row", _TWO, policy="row"),
    Case(
        "beside",
        "two writers side by side, one adds a column",
        _TWO,
        _BESIDE,
        groups=(1, 2),
        policy="row",
        adds=("w1",),
    ),
    Case(
        "eager",
        "a process without heartbeats, which may die",
        {"w1": "writer", "e": "none"},
        rounds={"w1": 2},
        eager=("e",),
        crashes=1,
        mortal=("e",),
        max_time=12,
    ),
    Case(
        "compaction",
        "a compaction beside a writer dies",
        {"w1": "writer", "k": "compactor"},
        rounds={"w1": 2},
        crashes=1,
        mortal=("k",),
    ),
    Case(
        "margin",
        "a completing call takes longer than the lock",
        {"w1": "writer", "k": "compactor"},
        rounds={"w1": 2},
        lapses=1,
        sleepy=("w1",),
        margin=False,
    ),
    Case(
        "columns",
        "a foreign writer adds a column",
        {"w1": "writer", "k": "compactor"},
        rounds={"w1": 2},
        adds=("w1",),
        foreign=("w1",),
    ),
    Case(
        "compactors",
        "two compactors without heartbeats",
        {"w1": "writer", "k": "compactor", "l": "compactor"},
        eager=("k", "l"),
    ),
    Case(
        "clean",
        "a clean that dies",
        {"w1": "writer", "k": "compactor", "c": "cleaner"},
        rounds={"w1": 2, "k": 2},
        crashes=1,
        mortal=("c",),
    ),
    Case(
        "archive",
        "archival after a death",
        {"w1": "writer", "a": "archiver"},
        rounds={"w1": 2},
        crashes=1,
        lates=1,
        mortal=("w1",),
        late_calls=("file",),
    ),
    Case("clustering", "a clustering beside a writer", _TURNED, rounds={"w1": 2}, apart=True),
    Case(
        "clustering_dies",
        "a clustering that dies, whose completed file may land late",
        _TURNED,
        rounds={"w1": 2},
        crashes=1,
        lates=1,
        mortal=("l",),
        late_calls=("done",),
    ),
    Case("hudis", "a clustering of Hudi, which gives way to nobody", _TURNED, rounds={"w1": 2}, foreign=("l",)),
    Case(
        "moving",
        "a move to other buckets, which takes in what is committed, beside a writer; it may die",
        {"w1": "writer", "m": "mover"},
        rounds={"w1": 2},
        apart=True,
        crashes=1,
        lates=1,
        mortal=("m",),
        late_calls=("done",),
    ),
    Case(
        "turned",
        "a clustering beside a compaction",
        {**_TURNED, "k": "compactor"},
        rounds={"w1": 2},
        policy="row",
        max_time=10,
    ),
    Case(
        "replaced",
        "clean and archival after a clustering",
        {**_TURNED, "c": "cleaner", "a": "archiver"},
        rounds={"w1": 2},
        max_time=12,
    ),
    Case("turned_back", "a restore after a clustering", {**_TURNED, "x": "restorer"}, rounds={"w1": 2}, max_time=12),
    Case(
        "restore", "a restore that dies", {"w1": "writer", "x": "restorer"}, rounds={"w1": 3}, crashes=1, mortal=("x",)
    ),
)

_BY_NAME = {case.name: case for case in CASES}

#: Of each guard the case that breaks without it.
GUARDS: Mapping[str, Case] = {
    guard: _BY_NAME[name]
    for guard, name in {
        "lock": "lapse",
        "fence": "lapse",
        "heartbeat-respect": "dying",
        "completion-check": "compactors",
        "inflight-check": "eager",
        "read-back": "answers",
        "unknown-outcome": "answers",
        "overtaken": "plain",
        "check-completed": "row",
        "check-pending": "row",
        "positions-of-all": "beside",
        "columns-out-of-turn": "beside",
        "foreign-action": "restore",
        "monotonic-instants": "plain",
        "marker": "halves",
        "rollback-files": "halves",
        "rollback-completed": "late_done",
        "rollback-inflight": "eager",
        "first-commit": "late_file",
        "dead-first": "late_done",
        "late-files": "archive",
        "index-before-commit": "plain",
        "stale-plan": "margin",
        "older-writer": "columns",
        "uncommitted-files": "halves",
        "create-if-absent": "plain",
        "dedupe": "answers",
        "give-way": "clustering",
        "dead-clustering": "clustering_dies",
        "planned-by-hudi": "hudis",
        "times-apart": "moving",
        "replaced-files": "replaced",
    }.items()
}
#: The same cases with more of everything: minutes to hours.
LARGE = (
    replace(_BY_NAME["dying"], name="dying_twice", crashes=2, expiries=2, mortal=("w1", "w2"), sleepy=("w1", "w2")),
    replace(_BY_NAME["plain"], name="rounds", rounds={"w1": 2, "w2": 2}, crashes=1, mortal=("w1", "w2"), max_time=18),
    Case(
        "service",
        "two writers and a compactor, all may die",
        {**_TWO, "k": "compactor"},
        rounds={"w1": 2},
        crashes=1,
        mortal=("w1", "w2", "k"),
        max_time=16,
    ),
    Case(
        "streams",
        "two streams side by side, one dies, answers come late",
        _TWO,
        _BESIDE,
        groups=(1, 2),
        policy="row",
        rounds={"w1": 2, "w2": 2},
        crashes=1,
        lates=1,
        mortal=("w1",),
        late_calls=("file", "done"),
        max_time=16,
    ),
    replace(_BY_NAME["restore"], name="restore_beside", roles={**_TWO, "x": "restorer"}, rounds={"w1": 2}, max_time=16),
)
