"""The recorded topics and the source's final rows, and a plain replay of decoded changes to compare them with."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np

from binlake.decode.changes import META_NAMES, ChangeBatch, ControlKind, DecodedRecords, RawRecords, SourceTable
from binlake.decode.formats.reader import decode
from binlake.decode.options import BigintUnsignedHandlingMode, DecimalHandlingMode, DecodeOptions
from binlake.decode.schemas.schemas import SchemaHistory, SchemaSource
from tests.paths import RECORDINGS as DATA

VARIANTS = [("bank", "plain"), ("bank", "schema"), ("shop", "plain"), ("shop", "schema"), ("shop", "flat")]


def options_of(variant: str, **more: Any) -> DecodeOptions:  # noqa: ANN401 - those of DecodeOptions
    """As the recordings' connector.properties say."""
    if variant == "flat":
        more["decimal_handling_mode"] = DecimalHandlingMode.STRING
        more["bigint_unsigned_handling_mode"] = BigintUnsignedHandlingMode.PRECISE
    return DecodeOptions(**more)


@lru_cache(maxsize=8)
def topics(database: str, variant: str) -> dict[str, dict[int, RawRecords]]:
    """topic -> partition -> all its records."""
    found: dict[str, dict[int, RawRecords]] = {}
    for path in sorted((DATA / database / variant).glob("*.jsonl.gz")):
        lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
        for partition in sorted({line["partition"] for line in lines}):
            mine = [line for line in lines if line["partition"] == partition]
            found.setdefault(mine[0]["topic"], {})[partition] = records(
                [_encoded(line["key"]) for line in mine],
                [_encoded(line["value"]) for line in mine],
                topic=mine[0]["topic"],
                partition=partition,
                offsets=[line["offset"] for line in mine],
                timestamps=[line["timestamp"] for line in mine],
            )
    return found


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def records(
    keys: list[bytes | None],
    values: list[bytes | None],
    topic: str = "server.db.t",
    partition: int = 0,
    offsets: list[int] | None = None,
    timestamps: list[int] | None = None,
) -> RawRecords:
    n = len(values)
    return RawRecords(
        topic,
        partition,
        np.array(offsets if offsets is not None else range(n), dtype=np.int64),
        np.array(timestamps if timestamps is not None else [0] * n, dtype=np.int64),
        keys,
        values,
    )


def cut(whole: RawRecords, size: int) -> Iterator[RawRecords]:
    for start in range(0, len(whole), size):
        part = slice(start, start + size)
        yield RawRecords(
            whole.topic,
            whole.partition,
            whole.offsets[part],
            whole.timestamps_ms[part],
            whole.keys[part],
            whole.values[part],
        )


def history_of(database: str, variant: str) -> SchemaHistory:
    history = SchemaHistory()
    for part in topics(database, variant)[f"{database}_{variant}"].values():
        for value in part.values:
            assert value is not None
            history.learn(value, DecodeOptions())
    return history


def decode_all(database: str, variant: str, schemas: SchemaSource, options: DecodeOptions, size: int) -> DecodedRecords:
    """All topics of a recording but its schema history, in chunks of ``size`` records."""
    whole = DecodedRecords()
    for topic, partitions in topics(database, variant).items():
        if not topic.startswith("_history"):
            for part in partitions.values():
                whole.extend(decode(chunk, schemas, options) for chunk in cut(part, size))
    return whole


Row = dict[str, Any]


def replay(decoded: DecodedRecords) -> tuple[dict[SourceTable, list[Row]], dict[SourceTable, Counter[str]]]:
    """Newest of each key by (order, row, offset): the rows that remain. And the multisets of tables without key."""
    newest: dict[tuple[SourceTable, tuple[Any, ...]], tuple[tuple[int, int, int], Row]] = {}
    keyless: dict[SourceTable, Counter[str]] = {}
    for batch in decoded.changes:
        if not batch.schema.key:
            _count_rows(batch, keyless.setdefault(batch.schema.source, Counter()))
            continue
        for row in batch.rows.to_pylist():
            place = (row["__order"], row["__row"], row["__offset"])
            at = (batch.schema.source, tuple(row[name] for name in batch.schema.key))
            if at not in newest or newest[at][0] <= place:
                newest[at] = (place, row)
    truncated = {c.source: c.order for c in decoded.controls if c.kind is ControlKind.TRUNCATE}
    out: dict[SourceTable, list[Row]] = {}
    for (source, _), (place, row) in newest.items():
        if row["__op"] == 0 and place[0] > truncated.get(source, -1):
            out.setdefault(source, []).append({k: v for k, v in row.items() if k not in META_NAMES})
    return out, keyless


def _count_rows(batch: ChangeBatch, count: Counter[str]) -> None:
    """Inserts add their row, deletes take theirs away, updates do both."""
    for row in batch.rows.to_pylist():
        count[_frozen(row)] += 1 if row["__op"] == 0 else -1
    if batch.before is not None:
        for row in batch.before.to_pylist():
            count[_frozen(row)] -= 1


def _frozen(row: Row) -> str:
    return repr(sorted((k, str(v)) for k, v in row.items() if k not in META_NAMES))


def truth(database: str) -> dict[str, tuple[list[Row], dict[str, str]]]:
    """table -> its final rows as the server sent them, and the columns' types."""
    described = json.loads((DATA / database / "truth" / "tables.json").read_text())
    return {
        table: (
            [json.loads(line) for line in (DATA / database / "truth" / facts["file"]).read_text().splitlines()],
            {column["name"]: column["type"] for column in facts["columns"]},
        )
        for table, facts in described.items()
    }


def as_server_sends(value: object, kind: str) -> object:
    """A lake value as SELECT prints it."""
    if value is None:
        return None
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    digits = int(m.group(1)) if (m := re.match(r"\w+\((\d)\)", kind)) else 0
    if isinstance(value, dt.datetime):
        text = value.strftime("%Y-%m-%d %H:%M:%S")
        return text + (f".{value.microsecond:06d}"[: digits + 1] if digits else "")
    if kind.startswith("time"):
        assert isinstance(value, int)
        return _clock(value, digits)
    if isinstance(value, float):
        return value
    return str(value)


def _clock(microseconds: int, digits: int) -> str:
    sign, rest = ("-", -microseconds) if microseconds < 0 else ("", microseconds)
    seconds, fraction = divmod(rest, 1_000_000)
    text = f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return text + (f".{fraction:06d}"[: digits + 1] if digits else "")


def same_cell(expected: object, value: object, kind: str) -> bool:
    shown = as_server_sends(value, kind)
    if isinstance(shown, float) and isinstance(expected, str):
        return float(expected) == shown
    return bool(shown == expected)
