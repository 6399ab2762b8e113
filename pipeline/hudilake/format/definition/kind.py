"""What kind of table a Hudi table is: how it is written, and by which index its rows are found.

Hudi stores the table's type only; the caller of every Hudi writer names the index (measured, Hudi Spark 1.2.0).
binlake stores the index too, so that no writer takes another one by mistake.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from hudilake.errors import UnsupportedError
from hudilake.format.definition.keys import KeyScope
from hudilake.format.definition.kind_support import KindRefusal, TableOperation
from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.definition.placement import NO_LOGS, InBuckets, LookedUp, OnRing, OpenGroups, Placement
from hudilake.policies import GLOBAL_INDEXES, IndexType, TableType

#: The index of a table whose properties do not say it: another writer made the table.
UNKNOWN: Final = "unknown"
KnownIndex: TypeAlias = IndexType | Literal["unknown"]

TYPE = "hoodie.table.type"
INDEX_TYPE = "hoodie.index.type"
BUCKET_ENGINE = "hoodie.index.bucket.engine"
MERGE_MODE = "hoodie.record.merge.mode"
EVENT_TIME: Final = "EVENT_TIME_ORDERING"
COMMIT_TIME: Final = "COMMIT_TIME_ORDERING"
#: binlake's own name of the index. Hudi has no name for some of them.
INDEX = "binlake.index"

_TYPES: Mapping[TableType, str] = {"merge_on_read": "MERGE_ON_READ", "copy_on_write": "COPY_ON_WRITE"}
#: Index -> ``hoodie.index.type`` of Hudi 1.2.0; a Hudi writer with that setting finds the rows.
_HUDI_TYPES: Mapping[IndexType, str] = {
    "bucket": "BUCKET",
    "consistent_bucket": "BUCKET",
    "bloom": "BLOOM",
    "global_bloom": "GLOBAL_BLOOM",
    "simple": "SIMPLE",
    "global_simple": "GLOBAL_SIMPLE",
    "in_memory": "GLOBAL_SIMPLE",
    "record_index": "GLOBAL_RECORD_LEVEL_INDEX",
    "partitioned_record_index": "RECORD_LEVEL_INDEX",
    "external": "GLOBAL_SIMPLE",
}
_ENGINES: Mapping[IndexType, str] = {"bucket": "SIMPLE", "consistent_bucket": "CONSISTENT_HASHING"}
#: Indexes that writers inform which keys come and go. The others are the base files themselves.
_KEPT: Final = frozenset({"in_memory", "record_index", "partitioned_record_index", "external"})
_PLACEMENTS: Final[Mapping[str, Placement]] = {
    "bucket": InBuckets(),
    "consistent_bucket": OnRing(),
    "none": OpenGroups(),
    UNKNOWN: Placement(),
}
_LOOKED_UP: Final = LookedUp()
_WHOLE_TABLE: Final = KeyScope(by_partition=False)
_EACH_PARTITION: Final = KeyScope(by_partition=True)


@dataclass(frozen=True, slots=True)
class TableKind:
    """The kind of a table.

    Args:
        type: ``merge_on_read``: changes go to log files; ``copy_on_write``: a commit rewrites base files.
        index: how the file group of a record key is found; ``none`` for append tables, whose rows have no key.
    """

    type: TableType = "merge_on_read"
    index: KnownIndex = "bucket"

    @property
    def placement(self) -> Placement:
        """How the file group of a row is decided."""
        return _PLACEMENTS.get(self.index, _LOOKED_UP)

    @property
    def copies(self) -> bool:
        """Whether a commit rewrites base files instead of writing log files."""
        return self.type == "copy_on_write"

    @property
    def action(self) -> Literal["commit", "deltacommit"]:
        """The action of the commits of rows: a table without log files has no delta commits."""
        return "commit" if self.copies else "deltacommit"

    @property
    def compaction(self) -> Literal["commit"] | None:
        """The action that completes a compaction; None for a table without."""
        return None if self.copies else "commit"

    @property
    def rewriting(self) -> frozenset[str]:
        """The actions that may write rows of other commits anew, so that older slices become superfluous. Where keys
        are looked up, commits fill small files."""
        return frozenset({"commit", "deltacommit"} if self.looks_up else {"commit"})

    @property
    def rewrites(self) -> bool:
        """Whether commits of rows may write rows of other commits anew. Deletes are then kept beside the files."""
        return self.action in self.rewriting

    def with_index_of(self, expected: TableKind) -> TableKind:
        """The same kind with the index of another one, if it names none and that index is looked up: the caller of
        every Hudi writer of such a table names its index, and no file group depends on it."""
        return replace(self, index=expected.index) if self.index == UNKNOWN and expected.looks_up else self

    def refusal(self, operation: TableOperation) -> KindRefusal | None:
        """Why tables of this kind do not have an operation; None if they have it."""
        if operation is TableOperation.COMPACTION:
            return NO_LOGS if self.copies else None
        return self.placement.refusal(operation, self.index)

    def has(self, operation: TableOperation) -> bool:
        """Whether tables of this kind have an operation."""
        return self.refusal(operation) is None

    def refuse(self, operation: TableOperation, table: str) -> None:
        """Raise UnsupportedError if tables of this kind do not have an operation. ``table``: its name."""
        if (why := self.refusal(operation)) is not None:
            raise UnsupportedError(why.why, do_next=why.do_next, table=table)

    @property
    def appends(self) -> bool:
        """Whether rows have no key: they are added and never changed."""
        return self.placement.appends

    @property
    def computed(self) -> bool:
        """Whether the file group of a record key is computed from the key alone."""
        return self.placement.computed

    @property
    def hashes(self) -> bool:
        """Whether the file groups of a partition are the nodes of a hash ring, which are split and merged."""
        return self.placement.hashes

    @property
    def looks_up(self) -> bool:
        """Whether the file group of a record key is looked up when rows are written."""
        return self.placement.looks_up

    @property
    def scope(self) -> KeyScope:
        """Within what a record key has one row."""
        return _WHOLE_TABLE if self.index in GLOBAL_INDEXES else _EACH_PARTITION

    @property
    def keeps_keys(self) -> bool:
        """Whether commits must tell the index which keys come and go. Such an index knows only keys whose rows live."""
        return self.index in _KEPT

    @property
    def record_index(self) -> KeyScope | None:
        """For what the metadata table keeps an index of record keys: for the table or each partition; None for none."""
        return self.scope if self.index in ("record_index", "partitioned_record_index") else None

    def keeps(self, partition: MetadataPartition) -> bool:
        """Whether the metadata table can have a partition: one of keys only where somebody looks for keys."""
        if partition is MetadataPartition.RECORD_INDEX:
            return self.record_index is not None
        return partition is not MetadataPartition.BLOOM_FILTERS or not self.appends

    @property
    def merge_mode(self) -> str:
        """``hoodie.record.merge.mode``."""
        return COMMIT_TIME if self.appends else EVENT_TIME

    def properties(self) -> dict[str, str]:
        """What ``hoodie.properties`` says of it."""
        values = {TYPE: _TYPES[self.type], MERGE_MODE: self.merge_mode}
        if self.index == UNKNOWN:
            return values
        if self.index in _HUDI_TYPES:
            values[INDEX_TYPE] = _HUDI_TYPES[self.index]
        if self.index in _ENGINES:
            values[BUCKET_ENGINE] = _ENGINES[self.index]
        return values if self.index == "bucket" else {**values, INDEX: self.index}

    @classmethod
    def of_properties(cls, values: Mapping[str, str]) -> TableKind:
        """The kind that ``hoodie.properties`` states; the index is ``unknown`` where it states none."""
        kinds = {text: kind for kind, text in _TYPES.items()}
        kind = kinds.get(values.get(TYPE, ""), "merge_on_read")
        names: dict[str, KnownIndex] = {name: name for name in (*_HUDI_TYPES, "none")}
        if INDEX in values:
            return cls(kind, names.get(values[INDEX], UNKNOWN))
        stated = values.get(INDEX_TYPE)
        for name, text in _HUDI_TYPES.items():
            engine = _ENGINES.get(name)
            if text == stated and engine in (None, values.get(BUCKET_ENGINE, "SIMPLE")):
                return cls(kind, name)
        return cls(kind, "bucket" if values.get("hoodie.bucket.index.num.buckets") and stated is None else UNKNOWN)


def stated_indexes() -> dict[str, dict[str, str]]:
    """Each value of ``binlake.index`` -> what Hudi's properties say beside it."""
    stated: dict[str, dict[str, str]] = {name: {INDEX_TYPE: text} for name, text in _HUDI_TYPES.items()}
    for name, engine in _ENGINES.items():
        stated[name][BUCKET_ENGINE] = engine
    return {**stated, "none": {}}
