"""A table with a record index and the truth about it: commits that say which keys change."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.kind import TableKind
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.file_group_write import (
    FileGroupWrite,
    KeyChanges,
    WriteContext,
    WriteResult,
    write_file_group,
)
from hudilake.format.files.first_write import write_base_anew
from hudilake.metadata.config import MetadataConfig
from hudilake.policies import IndexType
from hudilake.storage.base import Storage
from hudilake.storage.local import LocalStorage
from hudilake.table.table import HudiTable

ORDER = "ts"
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("name", pa.string()),
        pa.field("region", pa.string()),
        pa.field(ORDER, pa.int64()),
    ]
)
#: Compacts, cleans and archives after few commits.
OFTEN = MetadataConfig(
    compact_after=4, compact_at_most=4, archive_after=12, archive_keep=6, versions_kept=1, record_index_file_groups=3
)

#: Partition path and file id.
Group = tuple[str, str]
Key = int | str


def file_id(number: int) -> str:
    """The id of a file group, the same for the same number."""
    return f"{uuid.uuid5(uuid.NAMESPACE_URL, str(number))}-0"


@dataclass
class KeyedTable:
    """``truth``: where each key is, as the index must say it: by (partition path, key) in an index by partition.
    ``key_type``: of the column ``id``."""

    path: Path
    index: IndexType = "record_index"
    metadata: MetadataConfig = OFTEN
    truth: dict[tuple[str, str], Group] = field(default_factory=dict)
    key_type: pa.DataType = field(default_factory=pa.int64)

    def __post_init__(self) -> None:
        self.storage: Storage = LocalStorage(self.path, fsync=False)
        config = TableConfig("t", ("id",), ORDER, 0, partition_fields=("region",), kind=TableKind(index=self.index))
        self.schema = SCHEMA.set(0, pa.field("id", self.key_type))
        self.table = HudiTable.create(self.storage, config, self.schema, self.metadata)
        self._time = 0

    def reopen(self) -> HudiTable:
        """As a new process finds it."""
        self.table = HudiTable.open(self.storage, metadata=self.metadata)
        return self.table

    def insert(self, region: str, number: int, ids: Iterable[Key]) -> str:
        """A commit of a new file group."""
        return self.commit({(f"region={region}", file_id(number)): (list(ids), [])})

    def commit(self, changes: Mapping[Group, tuple[Sequence[Key], Sequence[Key]]], *, completes: bool = True) -> str:
        """A commit: for each file group the ids to insert, into a new group, and the ids to delete from an old one."""
        instant = self.table.begin()
        self._time += 1
        context = self.table.write_context(instant)
        results = [
            result
            for (path, name), (inserted, deleted) in changes.items()
            for result in self._write(context, path, name, inserted, deleted)
        ]
        if not completes:
            with self.table.exclusively():
                self.table._upkeep.note(instant, results, self.schema)
            return instant
        self.table.commit(instant, results)
        for group, (_, deleted) in changes.items():
            for number in deleted:
                self.truth.pop(self._key(group, number), None)
        for group, (inserted, _) in changes.items():
            self.truth.update({self._key(group, number): group for number in inserted})
        assert self.table.maintain() is None
        return instant

    def move(self, number: int, to: Group) -> str:
        """A commit that moves a row to a new file group of another partition."""
        return self.commit({self.truth["", str(number)]: ([], [number]), to: ([number], [])})

    def _key(self, group: Group, number: Key) -> tuple[str, str]:
        return group[0] if self.index == "partitioned_record_index" else "", str(number)

    def _write(
        self, context: WriteContext, path: str, name: str, inserted: Sequence[Key], deleted: Sequence[Key]
    ) -> list[WriteResult]:
        group = FileGroupWrite(path, name)
        keys = KeyChanges(
            path, name, pa.array(map(str, inserted), pa.string()), pa.array(map(str, deleted), pa.string())
        )
        if inserted:
            rows = {"id": list(inserted), "name": [f"n{n}" for n in inserted], "region": [path[7:]] * len(inserted)}
            table = pa.table({RECORD_KEY_FIELD: map(str, inserted), **rows, ORDER: [self._time] * len(inserted)})
            group = dataclasses.replace(group, upserts=self._typed(table).sort_by(RECORD_KEY_FIELD))
            results = write_base_anew(self.storage, context, group)
        else:
            gone = pa.table({RECORD_KEY_FIELD: map(str, deleted), ORDER: [self._time] * len(deleted)})
            results = [write_file_group(self.storage, context, dataclasses.replace(group, deletes=self._typed(gone)))]
        return [dataclasses.replace(result, keys=keys) for result in results]

    def _typed(self, table: pa.Table) -> pa.Table:
        kinds = {RECORD_KEY_FIELD: pa.string(), **dict(zip(self.schema.names, self.schema.types, strict=True))}
        return table.cast(pa.schema([pa.field(name, kinds[name]) for name in table.column_names]))


def said(table: HudiTable) -> dict[tuple[str, str], Group]:
    """Every key and its place, as the table's record index has it, in the form of ``KeyedTable.truth``."""
    index = table.metadata_table
    assert index is not None
    assert index.record_index is not None
    rows = [row for part in index.record_index.scan() for row in part.to_pylist()]
    by_partition = table.config.kind.scope.by_partition
    places = {
        (row["partition_path"] if by_partition else "", row["key"]): (row["partition_path"], row["file_id"])
        for row in rows
    }
    assert len(places) == len(rows), "a key is in the index twice"
    return places
