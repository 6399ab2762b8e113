"""Bucketed tables with base and log files for the tests of joins, and what DuckDB makes of all their rows."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.format.definition.bucketing import split_by_bucket
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.keys import record_keys
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.file_group_write import FileGroupWrite, write_file_group
from hudilake.read import Query, TableReader
from hudilake.services.compaction import CompactionConfig, run
from hudilake.storage.local import LocalStorage
from hudilake.table.table import HudiTable
from tests.binlake.tables.test_rebucket import in_turn

ORDER = "_binlake_order"
Rows = Sequence[tuple[Any, ...]]


def make_table(
    path: Path,
    columns: dict[str, pa.DataType],
    key: Sequence[str] = ("id",),
    buckets: int = 4,
    partition: Sequence[str] = (),
    rules: tuple[tuple[str, int], ...] = (),
) -> HudiTable:
    """An empty table; an ordering column follows the columns."""
    config = TableConfig(
        path.name, tuple(key), ORDER, buckets, partition_fields=tuple(partition), partition_buckets=rules
    )
    schema = pa.schema([*columns.items(), (ORDER, pa.int64())])
    return HudiTable.create(LocalStorage(path, fsync=False), config, schema)


def upsert(table: HudiTable, rows: pa.Table, gone: pa.Table | None = None) -> str:
    """One commit of rows, and of keys that are deleted (with the same columns); returns its instant."""
    instant = table.begin()
    context = table.write_context(instant)
    groups: dict[tuple[str, int], dict[str, pa.Table]] = {}
    for place, given in (("upserts", rows), ("deletes", gone)):
        if given is not None:
            for path, bucket, chosen in _groups(table.config, given):
                groups.setdefault((path, bucket), {})[place] = chosen
    results = []
    for (path, bucket), parts in sorted(groups.items()):
        deletes = parts["deletes"].select([RECORD_KEY_FIELD, ORDER]) if "deletes" in parts else None
        name = table.config.bucketing.file_id(table.config.name, path, bucket)
        write = FileGroupWrite(path, name, parts.get("upserts"), deletes)
        results.append(write_file_group(table.storage, context, write))
    table.commit(instant, results)
    return instant


def _groups(config: TableConfig, rows: pa.Table) -> Iterator[tuple[str, int, pa.Table]]:
    keys = record_keys(rows, config.record_key_fields)
    paths = config.layout.paths(rows)
    keyed = rows.add_column(0, RECORD_KEY_FIELD, keys)
    found = split_by_bucket(config.bucketing, keys, config.record_key_fields, paths)
    for path, bucket, place in found:
        chosen = keyed.take(pa.array(found.order[place]))
        yield path, bucket, chosen.take(pc.sort_indices(chosen, [(RECORD_KEY_FIELD, "ascending")]))


def compact(table: HudiTable) -> None:
    """Base files of all file slices that have log files."""
    run(table, CompactionConfig(after_commits=1, tombstone_retention_hours=0), in_turn)


def rows_from(table: HudiTable, values: Iterable[Sequence[Any]], order: int) -> pa.Table:
    """Rows of the table's columns, all with one ordering value."""
    schema = table.schema
    columns = list(zip(*([*row, order] for row in values), strict=True)) or [()] * len(schema)
    return pa.table([pa.array(cells, kind) for cells, kind in zip(columns, schema.types, strict=True)], schema=schema)


def everything(path: Path, query: Query | None = None, condition: str | None = None) -> pa.Table:
    """All rows, by a reader that skips nothing."""
    reader = TableReader.open(str(path), use_index=False)
    names = [name for name in reader.plan(query).columns if not name.startswith("_hoodie_")]
    plan = reader.plan(query, condition, names)
    return pa.Table.from_batches(list(reader.batches(plan)), plan.scan.schema)


def asked(sql: str, left: pa.Table, right: pa.Table) -> list[tuple[Any, ...]]:
    """The rows of a query over the tables ``l`` and ``r``, sorted."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("l", left)
        connection.register("r", right)
        return in_order(connection.sql(sql).to_arrow_table())


def in_order(rows: pa.Table) -> list[tuple[Any, ...]]:
    """The rows as tuples, in an order of their own."""
    return sorted(zip(*(column.to_pylist() for column in rows.columns), strict=True), key=repr)


def changed_table(table: HudiTable, keys: Sequence[Any], chance: random.Random, rows: Any, commits: int = 3) -> None:  # noqa: ANN401
    """Commits of some keys, deletes among them, and a compaction after the first.

    ``rows``: a function that makes the cells of a key's row.
    """
    for order in range(1, commits + 1):
        chosen = chance.sample(list(keys), chance.randint(len(keys) // 2, len(keys)))
        gone = chosen[: len(chosen) // 5] if order > 1 else []
        upsert(
            table,
            rows_from(table, [rows(key) for key in chosen[len(gone) :]], order),
            rows_from(table, [rows(key) for key in gone], order) if gone else None,
        )
        if order == 1:
            compact(table)
