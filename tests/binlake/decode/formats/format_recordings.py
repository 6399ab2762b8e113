"""Canal's and Maxwell's recordings of one binlog, and a replay that carries out changed keys."""

from __future__ import annotations

import dataclasses
import gzip
import json
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from binlake.decode.changes import ChangeBatch, DecodedRecords, Op, RawRecords, SourceTable
from binlake.decode.formats.reader import decode, table_changes
from binlake.decode.options import DecodeOptions
from binlake.decode.schemas.schemas import SchemaHistory
from tests.binlake.decode.recordings import Row, as_server_sends, cut, records, replay, same_cell
from tests.paths import RECORDINGS as DATA

FILES = {"canal": "canal_flat", "maxwell": "maxwell"}


@lru_cache(maxsize=4)
def messages(database: str, form: str) -> RawRecords:
    """All messages in one partition of one topic, in the order the tool wrote them."""
    path = DATA / f"formats_{database}" / f"{FILES[form]}.jsonl.gz"
    values: list[bytes | None] = list(gzip.decompress(path.read_bytes()).splitlines())
    return records([None] * len(values), values, topic=form)


@lru_cache(maxsize=2)
def truth(database: str) -> dict[str, tuple[list[Row], dict[str, str]]]:
    """table -> its final rows as the server sent them, and the columns' types."""
    place = DATA / f"formats_{database}" / "truth"
    return {
        table: (
            [json.loads(line) for line in gzip.decompress((place / f"{facts['file']}.gz").read_bytes()).splitlines()],
            {column["name"]: column["type"] for column in facts["columns"]},
        )
        for table, facts in json.loads((place / "tables.json").read_text()).items()
    }


def history(database: str, options: DecodeOptions) -> SchemaHistory:
    """What Maxwell's own DDL says of the tables."""
    found = SchemaHistory()
    for value in messages(database, "maxwell").values:
        for change in table_changes(value or b"", options):
            found.apply(change, options)
    return found


def decode_recording(database: str, form: str, size: int, **more: Any) -> DecodedRecords:  # noqa: ANN401 - DecodeOptions'
    """The whole recording in chunks of ``size`` messages."""
    options = DecodeOptions(**more)
    schemas = history(database, options) if form == "maxwell" else SchemaHistory()
    whole = DecodedRecords()
    whole.extend(decode(chunk, schemas, options) for chunk in cut(messages(database, form), size))
    return whole


def with_moves(found: DecodedRecords) -> DecodedRecords:
    """The same with a delete before every update that changed its key, under the old key."""
    batches: list[ChangeBatch] = []
    for batch in found.changes:
        if batch.before is not None and batch.schema.key:
            now = batch.rows.take(pa.array(batch.before_at))
            key = list(batch.schema.key)
            pairs = zip(batch.before.select(key).to_pylist(), now.select(key).to_pylist(), strict=True)
            moved = pa.array([was != row for was, row in pairs], pa.bool_())
            gone = now
            for name in batch.before.column_names:
                gone = gone.set_column(gone.column_names.index(name), name, batch.before[name])
            deletes = pa.array([int(Op.DELETE)] * len(gone), pa.int8())
            gone = gone.set_column(gone.column_names.index("__op"), "__op", deletes).filter(moved)
            batches.append(dataclasses.replace(batch, rows=gone, before=None, before_at=np.empty(0, dtype=np.int64)))
        batches.append(batch)
    return dataclasses.replace(found, changes=batches)


@dataclass
class Differences:
    """Cells that differ (with both values), cells no event carried, and rows too many by table."""

    cells: dict[tuple[str, str], list[tuple[object, object]]] = field(default_factory=dict)
    absent: Counter[tuple[str, str]] = field(default_factory=Counter)
    rows: dict[str, int] = field(default_factory=dict)


def differences(found: DecodedRecords, database: str) -> Differences:
    """The replayed tables with a key against the truth."""
    result = Differences()
    rows, keyless = replay(with_moves(found))
    for table, (expected, kinds) in truth(database).items():
        source = SourceTable(database, table)
        if source in keyless:
            continue
        key = next(batch.schema.key for batch in found.changes if batch.schema.source == source)
        by_key = {tuple(as_server_sends(row[name], kinds[name]) for name in key): row for row in rows[source]}
        if len(by_key) != len(expected):
            result.rows[table] = len(by_key) - len(expected)
        for row in expected:
            replayed = by_key[tuple(row[name] for name in key)]
            for name, cell in row.items():
                if name not in replayed:
                    result.absent[table, name] += 1
                elif not same_cell(cell, replayed[name], kinds[name]):
                    result.cells.setdefault((table, name), []).append((cell, replayed[name]))
    return result
