"""The kinds of tables, the operations on them, and the cells that are refused with their reasons."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from hudilake.format.definition.kind import KnownIndex
from hudilake.policies import IndexType, TableType
from tests.programs.crash_points.ddl_work import Statements
from tests.programs.crash_points.points import Work
from tests.programs.crash_points.replay_works import DumpReplay
from tests.programs.crash_points.works import (
    Batch,
    Restored,
    Upkeep,
    clean_up,
    compact,
    compact_twice,
    go_back,
    hold,
    put_away,
)

Rules = Mapping[str, Any]


@dataclass(frozen=True)
class Kind:
    """A kind of table: its type and its index; ``none``: an append table."""

    type: TableType
    index: KnownIndex

    @property
    def rules(self) -> dict[str, Any]:
        """The rules of such a table. ``external``: a store in a folder of its own."""
        if self.index == "none":
            return {"kind": "append", "type": self.type}
        index: dict[str, Any] = {"type": self.index}
        if self.index == "external":
            index["external"] = {"store": "lmdb", "path": tempfile.mkdtemp(prefix="binlake-index-")}
        return {"type": self.type, "index": index, "buckets": 2}

    def __str__(self) -> str:
        return f"{self.type}-{self.index}"


INDEXES: Final[tuple[IndexType, ...]] = (
    "bucket",
    "consistent_bucket",
    "bloom",
    "global_bloom",
    "simple",
    "global_simple",
    "in_memory",
    "record_index",
    "partitioned_record_index",
    "external",
)
TYPES: Final[tuple[TableType, ...]] = ("merge_on_read", "copy_on_write")
#: Hudi has no copy-on-write tables with a hash ring.
NO_KIND: Final = Kind("copy_on_write", "consistent_bucket")
KINDS: Final = tuple(kind for type_ in TYPES for index in INDEXES if (kind := Kind(type_, index)) != NO_KIND)

APPENDS: Final = (Kind("merge_on_read", "none"), Kind("copy_on_write", "none"))


@dataclass(frozen=True)
class Cell:
    """An operation on a kind of table."""

    kind: Kind
    operation: str
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="binlake-kinds-")))

    @property
    def work(self) -> Work:
        """What it does."""
        rules = self.kind.rules
        more = {"defaults": rules}
        copies = self.kind.type == "copy_on_write"
        old = None if copies else compact_twice
        works: dict[str, Work] = {
            "batches": Batch(more, before=more),
            "batches with upkeep": Batch({"defaults": {**rules, **_UPKEEP}}, before=more),
            "batches written by tasks": Batch({**more, "batch": {"shuffle_above_bytes": 0}}, before=more),
            "compaction": Upkeep(compact, keeps=4 if not copies and "bucket" in self.kind.index else 2, more=more),
            "clean": Upkeep(clean_up, old, keeps=0, more=more),
            "archival": Upkeep(put_away, old, keeps=0, more=more),
            "savepoints": Upkeep(hold, more=more),
            "restore": Restored(go_back, keeps=2, more=more),
            "statements": Statements(rules),
            "replay of dumps": DumpReplay(self.folder / "dumps", into_nothing=False, defaults=rules),
        }
        return works[self.operation]


OPERATIONS: Final = (
    "batches",
    "batches with upkeep",
    "batches written by tasks",
    "compaction",
    "clean",
    "archival",
    "savepoints",
    "restore",
    "statements",
    "replay of dumps",
)
_UPKEEP: Final[Rules] = {"compaction": {"mode": "inline", "after_commits": 2}, "retention": {"commits": 1}}
