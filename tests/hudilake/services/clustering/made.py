"""Tables whose rows may go to any file group, written by hand, and their clustering."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.kind import TableKind
from hudilake.format.definition.new_file_id import new_file_id
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.append import open_groups
from hudilake.format.files.file_group_write import FileGroupWrite, WriteResult
from hudilake.format.layout.order import order_extra
from hudilake.format.timeline.clustering_plan import read_clustering_plan
from hudilake.index.base import KeyIndex
from hudilake.index.open import open_index
from hudilake.metadata.config import MetadataConfig
from hudilake.policies import ClusteringPolicy, FileSizePolicy, IndexType, OrderPolicy, TableType
from hudilake.services.clustering.config import ClusteringConfig
from hudilake.services.clustering.job import UnitResult, context_of, lay_out
from hudilake.services.clustering.plan import ClusteringUnit, order_of, plan, plan_of, units_of
from hudilake.services.clustering.sources import with_bounds
from hudilake.table.table import HudiTable
from hudilake.write.append import AppendWriter
from hudilake.write.group_writer import BaseWriter, GroupWriter, LogWriter
from tests.hudilake.lake import ORDER, SCHEMA, Change, Model, row_of, rs, sorted_rows, storage_at
from tests.hudilake.lake import ours as read_ours

T = TypeVar("T")
R = TypeVar("R")


def clustering(*columns: str, **policy: Any) -> ClusteringConfig:  # noqa: ANN401
    """A clustering of every file group by some columns; without columns by none."""
    order_by = {"curve": policy.pop("curve", "linear"), "values": policy.pop("values", "sampled")}
    order = OrderPolicy(columns=columns, **order_by) if columns else None
    sizes = policy.pop("sizes", FileSizePolicy())
    return ClusteringConfig(ClusteringPolicy(order_by=order, **{"select": "all", **policy}), sizes)


def in_tasks(function: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """What runs tasks: each gets the function and its item as bytes, as Spark sends them, and so sends its result."""

    def run(sent: bytes) -> bytes:
        task, item = pickle.loads(sent)
        return pickle.dumps(task(item))

    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(run, [pickle.dumps((function, item)) for item in items]))
    return [pickle.loads(one) for one in done]


@dataclass
class Made:
    """A table, what it must hold, and its index if it looks keys up."""

    path: Path
    table: HudiTable
    model: Model = field(default_factory=Model)
    index: KeyIndex | None = None
    appended: list[Change] = field(default_factory=list)

    @classmethod
    def at(
        cls, path: Path, index: IndexType, table_type: TableType = "merge_on_read", *, partitioned: bool = True
    ) -> Made:
        """An empty one with a metadata table."""
        kind = TableKind(table_type, index)
        key, order = ((), "") if kind.appends else (("id",), ORDER)
        fields = ("day",) if partitioned else ()
        config = TableConfig("t1", key, order, 0, partition_fields=fields, kind=kind)
        table = HudiTable.create(storage_at(path), config, SCHEMA, MetadataConfig())
        return cls(path, table, index=open_index(table) if kind.looks_up else None)

    def commit(self, changes: Iterable[Change], group: str = "a") -> str:
        """One commit: rows of new keys go to the file group with that name, others where they are."""
        changes = list(changes)
        instant = self.table.begin()
        results = (
            self._append(instant, changes) if self.table.config.kind.appends else self.written(instant, changes, group)
        )
        publish(self.table, instant, results, self.index)
        self.model.apply(changes)
        self.appended += changes
        return instant

    def _append(self, instant: str, changes: Sequence[Change]) -> list[WriteResult]:
        sizes = FileSizePolicy(target_bytes=1 << 20, small_bytes=1)  # each commit begins new file groups
        groups = open_groups(self.table.file_slices(), sizes)
        writer = AppendWriter(self.table.write_context(instant), sizes, groups, self.table.config.kind.copies)
        parts = writer.keyed(0, {path: _rows(mine) for path, mine in self._by_path(changes).items()})
        return [result for part in parts for result in writer.write(self.table.storage, part)]

    def written(self, instant: str, changes: Sequence[Change], group: str = "a") -> list[WriteResult]:
        """The files of a commit to a table with an index, not committed."""
        by_group: dict[tuple[str, str], list[Change]] = {}
        base_anew: set[tuple[str, str]] = set()
        for path, mine in self._by_path(changes).items():
            assert self.index is not None
            keys = pa.array([str(change.id) for change in mine], pa.string())
            found = self.index.locate(keys, pa.array([path] * len(mine), pa.string()))
            for change, file_id in zip(mine, found.file_ids.to_pylist(), strict=True):
                place = path, file_id or new_file_id("t1", group, path)
                by_group.setdefault(place, []).append(change)
                base_anew |= {place} if file_id is None else set()
        logs, bases = self._writers(instant)
        copies = self.table.config.kind.copies
        return [
            result
            for place, mine in sorted(by_group.items())
            for result in (bases if copies or place in base_anew else logs).write(
                self.table.storage, _group(*place, mine)
            )
        ]

    def _writers(self, instant: str) -> tuple[GroupWriter, GroupWriter]:
        """For changes of rows that live, and for new rows, which a lookup finds in base files only."""
        kind, slices = self.table.config.kind, self.table.file_slices()
        context = replace(self.table.write_context(instant), states_keys=kind.keeps_keys)
        bases = {s.file_id: s.base_file for s in slices if s.base_file is not None}
        return LogWriter(context), BaseWriter(context, bases)

    def _by_path(self, changes: Iterable[Change]) -> dict[str, list[Change]]:
        by_path: dict[str, list[Change]] = {}
        for change in changes:
            path = f"day={change.day}" if self.table.config.partition_fields else ""
            by_path.setdefault(path, []).append(change)
        return by_path

    def cluster(self, config: ClusteringConfig) -> list[UnitResult]:
        """The whole clustering."""
        return clustered(self.table, config, self.index)

    def check(self) -> None:
        """Our reader and hudi-rs see the model's rows; of an append table all rows that were written."""
        expected = self.rows()
        assert _sorted(read_ours(self.path)) == expected
        assert _sorted(rs(self.path)) == expected

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """What it must hold."""
        if self.table.config.kind.appends:
            return _sorted(row_of(change) for change in self.appended)
        return self.model.rows()


def _sorted(rows: Iterable[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    return sorted(sorted_rows(rows), key=lambda row: (row["day"], row["id"], row[ORDER]))


def _rows(changes: Sequence[Change]) -> pa.Table:
    return pa.Table.from_pylist([row_of(change) for change in changes], SCHEMA)


def _group(path: str, file_id: str, changes: Sequence[Change]) -> FileGroupWrite:
    changes = sorted(changes, key=lambda change: str(change.id))
    alive = [change for change in changes if change.name is not None]
    dead = [change for change in changes if change.name is None]
    orders = pa.table({ORDER: pa.array([change.order for change in dead], pa.int64())})
    return FileGroupWrite(
        path,
        file_id,
        upserts=_keyed(alive, _rows(alive)) if alive else None,
        deletes=_keyed(dead, orders) if dead else None,
    )


def _keyed(changes: Sequence[Change], rows: pa.Table) -> pa.Table:
    return rows.add_column(0, RECORD_KEY_FIELD, pa.array([str(change.id) for change in changes], pa.string()))


def begun(table: HudiTable, config: ClusteringConfig) -> tuple[str, list[ClusteringUnit]]:
    """A clustering in flight, and its units."""
    instant = table.begin_replace(plan_of(plan(table, config), config))
    found = table.timeline.find(instant)
    assert found is not None
    return instant, units_of(read_clustering_plan(table.storage, found))


def laid_out(
    table: HudiTable, instant: str, config: ClusteringConfig, units: Sequence[ClusteringUnit]
) -> list[UnitResult]:
    """Execute a clustering in flight."""
    found = table.timeline.find(instant)
    assert found is not None
    context = context_of(table, instant, config, order_of(read_clustering_plan(table.storage, found)))
    bounded = with_bounds(table.storage, context, units, in_tasks)
    return in_tasks(partial(lay_out, table.storage, context), bounded)


def clustered(table: HudiTable, config: ClusteringConfig, index: KeyIndex | None = None) -> list[UnitResult]:
    """The whole clustering; nothing if there is nothing to do. ``index``: is told of it."""
    if not plan(table, config):
        return []
    instant, units = begun(table, config)
    done = laid_out(table, instant, config, units)
    groups: dict[str, list[str]] = {}
    for unit in units:
        groups.setdefault(unit.partition_path, []).extend(source.file_id for source in unit.sources)
    replaced = {path: tuple(ids) for path, ids in groups.items()}
    results = [result for one in done for result in one.results]
    publish(table, instant, results, index, extra=order_extra(config.order), replaced=replaced)
    return done


def publish(
    table: HudiTable,
    instant: str,
    results: Sequence[WriteResult],
    index: KeyIndex | None,
    **further: Any,  # noqa: ANN401 - options of commit
) -> None:
    """Tell the index, and complete."""
    if index is not None and table.config.kind.keeps_keys:
        index.keep(instant, [result.keys for result in results if result.keys is not None])
    table.commit(instant, results, **further)
