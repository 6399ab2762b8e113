"""A table whose index is looked up, and a dict that knows where every record key is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.kind import TableKind
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.file_group_write import FileGroupWrite, KeyChanges, WriteResult, write_file_group
from hudilake.format.files.first_write import write_base_anew
from hudilake.index.base import KeyIndex, KeyLocations
from hudilake.metadata.config import MetadataConfig
from hudilake.policies import IndexType
from hudilake.table.table import HudiTable
from tests.hudilake.lake import ORDER, storage_at

SCHEMA = pa.schema([("id", pa.string()), ("day", pa.string()), (ORDER, pa.int64())])
#: Partition path and file id.
Place = tuple[str, str]


def config(index: IndexType, *, copies: bool = False) -> TableConfig:
    """A partitioned table with one key column and that index."""
    kind = TableKind("copy_on_write" if copies else "merge_on_read", index)
    return TableConfig("t", ("id",), ORDER, 0, partition_fields=("day",), kind=kind)


@dataclass
class LookedUpTable:
    """A table that is written by hand, file group by file group.

    ``holds``: the keys of each base file; ``dead``: those of them that a log file deleted.
    """

    table: HudiTable
    holds: dict[Place, set[str]] = field(default_factory=dict)
    dead: dict[Place, set[str]] = field(default_factory=dict)
    order: int = 0

    @classmethod
    def make(
        cls, path: Path, index: IndexType, metadata: MetadataConfig | None = None, *, copies: bool = False
    ) -> LookedUpTable:
        """An empty one."""
        return cls(HudiTable.create(storage_at(path), config(index, copies=copies), SCHEMA, metadata))

    def write(
        self,
        bases: Mapping[Place, Iterable[str]],
        deletes: Mapping[Place, Iterable[str]] | None = None,
        indexes: Sequence[KeyIndex] = (),
        *,
        dies: bool = False,
    ) -> str:
        """One commit: the keys of new base files by file group, and keys that log files delete. The indexes are told.

        ``dies``: the commit does not complete and is rolled back; no index hears of that.
        """
        self.order += 1
        instant = self.table.begin()
        context = self.table.write_context(instant)
        results: list[WriteResult] = []
        changes: list[KeyChanges] = []
        for place, keys in bases.items():
            rows = _rows(place, sorted(set(keys)), self.order)
            results += write_base_anew(self.table.storage, context, FileGroupWrite(place[0], place[1], upserts=rows))
            lived = self.holds.get(place, set()) - self.dead.get(place, set())
            changes.append(_changes(place, set(keys) - lived, lived - set(keys)))
        for place, keys in (deletes or {}).items():
            rows = _rows(place, sorted(set(keys)), self.order).select([RECORD_KEY_FIELD, ORDER])
            group = FileGroupWrite(place[0], place[1], deletes=rows)
            results.append(write_file_group(self.table.storage, context, group))
            changes.append(_changes(place, set(), set(keys)))
        results = [replace(result, inserts=result.is_base) for result in results]
        for index in indexes:
            index.keep(instant, changes)
        if dies:
            self.table.abort(instant)
            return instant
        self.table.commit(instant, results)
        for place, keys in bases.items():
            self.holds[place], self.dead[place] = set(keys), set()
        for place, keys in (deletes or {}).items():
            self.dead.setdefault(place, set()).update(keys)
        return instant

    def check(self, index: KeyIndex, keys: Sequence[str], days: Sequence[str], *, is_global: bool) -> KeyLocations:
        """The index finds what the dict finds. ``days``: the partition path of each key's event."""
        answer = index.locate(pa.array(keys, pa.string()), pa.array(days, pa.string()))
        places = zip(answer.partition_paths.to_pylist(), answer.file_ids.to_pylist(), strict=True)
        for key, day, place in zip(keys, days, places, strict=True):
            possible = {p for p in self.holds if key in self.holds[p] and (is_global or p[0] == day)}
            lives = {p for p in possible if key not in self.dead[p]}
            if lives:
                assert place in lives, (key, place, lives)
            elif place != (None, None):
                assert place in possible, (key, place)
        assert answer.cost.keys == len(keys)
        assert answer.cost.files_read <= answer.cost.candidates <= answer.cost.files
        return answer


def _rows(place: Place, keys: Sequence[str], order: int) -> pa.Table:
    day = place[0].removeprefix("day=")
    columns = [pa.array(keys, pa.string()), pa.array(keys, pa.string()), pa.array([day] * len(keys), pa.string())]
    orders = pa.array([order] * len(keys), pa.int64())
    return pa.table([*columns, orders], names=[RECORD_KEY_FIELD, "id", "day", ORDER])


def _changes(place: Place, inserted: set[str], deleted: set[str]) -> KeyChanges:
    return KeyChanges(*place, pa.array(sorted(inserted), pa.string()), pa.array(sorted(deleted), pa.string()))
