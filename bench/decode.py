"""Measures the decoder alone in events per second, on one core: plain, embedded-schema and flat forms.

Run: ``python -m bench.decode [events]``. The event is the project's reference event: 12 columns (a base64 decimal, an
ISO timestamp), about 510 bytes in the plain form.
"""

from __future__ import annotations

import base64
import json
import random
import statistics
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from binlake.decode.changes import RawRecords, SourceTable
from binlake.decode.formats.reader import decode
from binlake.decode.options import DecodeOptions
from binlake.decode.schemas.schemas import DeclaredSchemas, declared_table
from hudilake.clock import monotonic_s

COLUMNS = {
    "id": "int",
    "customer_id": "int",
    "status": "enum('new','paid','shipped')",
    "total": "decimal(12,2)",
    "qty": "int",
    "prio": "tinyint",
    "note": "varchar(40)",
    "placed_at": "datetime(6)",
    "flag": "tinyint(1)",
    "weight": "double",
    "country": "char(2)",
    "updated": "timestamp(6)",
}
_CONNECT: dict[str, dict[str, Any]] = {
    "status": {"type": "string", "name": "io.debezium.data.Enum", "parameters": {"allowed": "new,paid,shipped"}},
    "total": {
        "type": "bytes",
        "name": "org.apache.kafka.connect.data.Decimal",
        "parameters": {"scale": "2", "connect.decimal.precision": "12"},
    },
    "note": {"type": "string"},
    "placed_at": {"type": "int64", "name": "io.debezium.time.MicroTimestamp"},
    "weight": {"type": "double"},
    "country": {"type": "string"},
    "updated": {"type": "string", "name": "io.debezium.time.ZonedTimestamp"},
}
_INT: dict[str, Any] = {"type": "int32"}
_FIELDS: list[dict[str, Any]] = [{"optional": True, "field": name} | _CONNECT.get(name, _INT) for name in COLUMNS]
_ROW: dict[str, Any] = {"type": "struct", "fields": _FIELDS, "optional": True}
SCHEMA = {
    "type": "struct",
    "fields": [{"field": "before"} | _ROW, {"field": "after"} | _ROW, {"field": "op", "type": "string"}],
}
REPEATS = 5


def decimal_text(unscaled: int) -> str:
    """A Decimal as Connect writes it."""
    size = (unscaled.bit_length() + 8) // 8
    return base64.b64encode(unscaled.to_bytes(size, "big", signed=True)).decode()


def events(n: int, form: str) -> RawRecords:
    """``n`` events of one table."""
    dice = random.Random(1)
    keys: list[bytes | None] = []
    values: list[bytes | None] = []
    for i in range(n):
        key = dice.randrange(200_000)
        fraction = str(dice.randrange(1, 10**6)).rjust(6, "0").rstrip("0")
        row = {
            "id": key,
            "customer_id": dice.randrange(10**6),
            "status": dice.choice(["new", "paid", "shipped"]),
            "total": decimal_text(dice.randrange(-(10**6), 10**9)),
            "qty": dice.randrange(1000),
            "prio": dice.randrange(5),
            "note": f"note {dice.randrange(10**9)}",
            "placed_at": 1_700_000_000_000_000 + dice.randrange(10**13),
            "flag": dice.randrange(2),
            "weight": dice.random(),
            "country": dice.choice(["de", "fr"]),
            "updated": f"2026-11-21T06:31:{dice.randrange(60):02d}.{fraction}Z",
        }
        keys.append(b'{"id":%d}' % key)
        values.append(json.dumps(_message(row, i, form), separators=(",", ":")).encode())
    return RawRecords("shop.shop.orders", 0, np.arange(n), np.zeros(n, dtype=np.int64), keys, values)


def _message(row: dict[str, Any], i: int, form: str) -> dict[str, Any]:
    place = {"file": "mysql-bin.000003", "pos": 4 + i * 300, "row": 0}
    if form == "flat":
        added = {f"__source_{name}": value for name, value in place.items()}
        return row | {"__deleted": "false", "__op": "u", "__table": "orders"} | added
    source = {"version": "3.4.0.Final", "connector": "mysql", "name": "shop", "ts_ms": 1_795_242_654_000 + i}
    source |= {"snapshot": "false", "db": "shop", "table": "orders", "server_id": 1, "gtid": None} | place
    envelope = {"before": None, "after": row, "source": source | {"thread": 7}, "op": "u", "ts_ms": 1_795_242_655_236}
    return {"schema": SCHEMA, "payload": envelope} if form == "schema" else envelope


def rate(work: Callable[[], object], n: int) -> tuple[float, float, float]:
    """Median, least and greatest events per second of REPEATS runs."""
    rates = []
    for _ in range(REPEATS):
        start = monotonic_s()
        work()
        rates.append(n / (monotonic_s() - start))
    return statistics.median(rates), min(rates), max(rates)


def main() -> None:
    """Print one line for each form."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    source = SourceTable("shop", "orders")
    schemas = DeclaredSchemas({source: declared_table(COLUMNS, None)})
    for form in ("plain", "schema", "flat"):
        records = events(n, form)
        size = sum(len(value or b"") for value in records.values) / n
        decoded = decode(records, schemas, DecodeOptions())
        if sum(batch.rows.num_rows for batch in decoded.changes) != n:
            raise SystemExit(f"{form}: {decoded.quarantined[:1]}")
        median, least, most = rate(lambda records=records: decode(records, schemas, DecodeOptions()), n)  # type: ignore[misc]
        print(f"{form:7} {size:6.0f} bytes/event {median:10,.0f} events/s (of {REPEATS}: {least:,.0f} .. {most:,.0f})")


if __name__ == "__main__":
    main()
