"""A table of every kind of value, equal at the source and in the lake, and single differences planted at the source.

The two sides are filled apart from each other: the server reads a file of texts, the lake is written from Arrow columns
through ``binlake.rows.upsert.prepare`` and the table commit, as a first load writes it.
"""

from __future__ import annotations

import datetime as dt
import json
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pc_csv

from binlake.decode.changes import META_FIELDS, ChangeBatch, Column, Op, SourceTable, TableSchema
from binlake.decode.order import binlog_order
from binlake.decode.types.mysql_types import UTC_MICROSECONDS
from binlake.rows.tasks.plan import TaskTableReport
from binlake.rows.upsert.prepare import TableFacts, prepare
from binlake.settings import Settings
from binlake.source.offsets import NO_RANGES
from binlake.tables.lake import Lake
from binlake.tables.services.table_services import TableServices
from binlake.tables.table_commit import TableInput, write_and_commit
from embedded.mariadb import EmbeddedMariaDB
from hudilake.storage import open_storage

DATABASE, TABLE = "bank", "planted"
USER, PASSWORD = "verifier", "v-" + "8!pQ"
SOURCE = SourceTable(DATABASE, TABLE)
#: Column -> MySQL type and lake type.
COLUMNS = {
    "id": ("bigint", pa.int64()),
    "small": ("tinyint", pa.int32()),
    "whole": ("int unsigned", pa.int64()),
    "huge": ("bigint unsigned", pa.decimal128(20, 0)),
    "money": ("decimal(12,2)", pa.decimal128(12, 2)),
    "ratio": ("double", pa.float64()),
    "rate": ("float", pa.float32()),
    "name": ("varchar(40)", pa.string()),
    "note": ("text", pa.string()),
    "raw": ("varbinary(16)", pa.binary()),
    "day": ("date", pa.date32()),
    "moment": ("datetime(6)", UTC_MICROSECONDS),
    "instant": ("timestamp(3)", UTC_MICROSECONDS),
    "clock": ("time(6)", pa.int64()),
    "state": ("enum('new','paid','sent')", pa.string()),
    "flag": ("bit(1)", pa.bool_()),
}
#: Added to the key of a planted row that the lake does not have.
FAR = 1_000_000_000
#: Plants that need a row whose ratio is 0.0 and whose note is empty.
_OF_EIGHTH = frozenset({"minus zero", "last digit", "null for empty", "stale row"})
_START = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
#: What each planted statement does; ``{id}`` is another row for each.
PLANTS = {
    "missing row": f"INSERT INTO {{t}} SELECT id + {FAR}, {', '.join(list(COLUMNS)[1:])} FROM {{t}} WHERE id = {{id}}",
    "extra row": "DELETE FROM {t} WHERE id = {id}",
    "stale row": "UPDATE {t} SET small = 1 - small, name = 'later', money = money + 1 WHERE id = {id}",
    "one bit": "UPDATE {t} SET raw = CONCAT(LEFT(raw, 7), CHAR(ORD(SUBSTR(raw, 8, 1)) ^ 1)) WHERE id = {id}",
    "bit flag": "UPDATE {t} SET flag = NOT flag WHERE id = {id}",
    "time shifted": "UPDATE {t} SET moment = moment + INTERVAL 1 HOUR WHERE id = {id}",
    "zone shifted": "UPDATE {t} SET instant = instant - INTERVAL 8 HOUR WHERE id = {id}",
    "microsecond": "UPDATE {t} SET moment = moment + INTERVAL 1 MICROSECOND WHERE id = {id}",
    "millisecond": "UPDATE {t} SET instant = instant + INTERVAL 1000 MICROSECOND WHERE id = {id}",
    "clock": "UPDATE {t} SET clock = -clock WHERE id = {id}",
    "day": "UPDATE {t} SET day = day + INTERVAL 1 DAY WHERE id = {id}",
    "trailing blank": "UPDATE {t} SET name = CONCAT(name, ' ') WHERE id = {id}",
    "case": "UPDATE {t} SET name = UPPER(name) WHERE id = {id}",
    "accent": "UPDATE {t} SET name = CONCAT(name, CONVERT(x'65cc81' USING utf8mb4)) WHERE id = {id}",
    "minus zero": "UPDATE {t} SET ratio = -0e0 WHERE id = {id}",
    "last digit": "UPDATE {t} SET ratio = 0.1e0 + 0.2e0 WHERE id = {id}",
    "float digit": "UPDATE {t} SET rate = 16777217 / 16777216 WHERE id = {id}",
    "decimal scale": "UPDATE {t} SET money = money / 10 WHERE id = {id}",
    "cent": "UPDATE {t} SET money = money + 0.01 WHERE id = {id}",
    "null for empty": "UPDATE {t} SET note = NULL WHERE id = {id}",
    "null for zero": "UPDATE {t} SET small = NULL WHERE id = {id}",
    "wrapped": "UPDATE {t} SET huge = 18446744073709551615 - huge WHERE id = {id}",
    "sign": "UPDATE {t} SET whole = 4294967295 WHERE id = {id}",
    "option": "UPDATE {t} SET state = 'sent' WHERE id = {id}",
    "line end": "UPDATE {t} SET note = CONCAT(note, CHAR(10)) WHERE id = {id}",
}


@dataclass(frozen=True)
class Planted:
    """A planted difference: what was done to the row with this key."""

    what: str
    key: int


def rows(count: int, first: int = 0) -> pa.Table:
    """``count`` rows in lake types; those with a key divisible by 8 have the ratio 0.0, by 4 an empty note."""
    ids = np.arange(first, first + count, dtype=np.int64)
    big_endian = ids.byteswap().tobytes()
    text = pa.array(ids).cast(pa.string())
    micros = int(_START.timestamp()) * 1_000_000 + ids * 1_234_567
    values = {
        "id": ids,
        "small": ids % 2,
        "whole": ids * 3 % (1 << 32),
        "huge": pc.add(pa.array(ids).cast(pa.decimal128(19, 0)), pa.scalar(Decimal(1 << 63), pa.decimal128(19, 0))),
        "money": pc.binary_join_element_wise(pa.array(ids % 1_000_000).cast(pa.string()), "30", "."),
        "ratio": np.where(ids % 8 == 0, 0.0, ids / 7),
        "rate": (ids % 1000 / np.float32(3)).astype(np.float32),
        "name": pc.binary_join_element_wise("account ", text, " é", ""),
        "note": pc.if_else(pa.array(ids % 4 == 0), "", pc.binary_join_element_wise('note, "', text, '" of\ttwo', "")),
        "raw": pa.FixedSizeBinaryArray.from_buffers(pa.binary(8), count, [None, pa.py_buffer(big_endian)]),
        "day": pa.array((ids % 20_000).astype(np.int32)).cast(pa.date32()),
        "moment": pa.array(micros).cast(UTC_MICROSECONDS),
        "instant": pa.array(micros // 1000 * 1000).cast(UTC_MICROSECONDS),
        "clock": ids * 1_000_003 % (3_000_000_000_000) + 1,
        "state": pa.array(["new", "paid"]).take(pa.array(ids % 2)),
        "flag": pa.array(ids % 3 == 0),
    }
    return pa.table([_typed(values[name], kind) for name, (_, kind) in COLUMNS.items()], names=list(COLUMNS))


def _typed(values: object, kind: pa.DataType) -> pa.Array:
    array = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
    return array.cast(kind)


def fill_source(database: EmbeddedMariaDB, count: int, *, user: bool = True) -> None:
    """Make the table at the source with ``count`` rows, and (``user``) the user who reads it."""
    if user:
        database.execute(
            f"CREATE USER '{USER}'@'%' IDENTIFIED BY '{PASSWORD}';"
            f"GRANT SELECT, RELOAD, BINLOG MONITOR, SLAVE MONITOR ON *.* TO '{USER}'@'%';"
        )
    types = ", ".join(f"`{name}` {kind} NULL" for name, (kind, _) in COLUMNS.items()).replace("NULL", "NOT NULL", 1)
    database.execute(
        f"CREATE DATABASE {DATABASE};CREATE TABLE {SOURCE} ({types}, PRIMARY KEY (id)) CHARACTER SET utf8mb4;"
    )
    with tempfile.TemporaryDirectory(prefix="planted") as place:
        file = Path(place) / "rows.csv"
        Path(place).chmod(0o755)
        texts = _texts(rows(count))
        pc_csv.write_csv(texts, file, pc_csv.WriteOptions(include_header=False, quoting_style="all_valid"))
        names = ", ".join(f"@{name}" for name in COLUMNS)
        made = {"raw": "UNHEX(@raw)", "clock": "SEC_TO_TIME(CAST(@clock AS DECIMAL(20,6)))", "flag": "@flag = '1'"}
        columns = ", ".join(f"`{name}` = {made.get(name, f'@{name}')}" for name in COLUMNS)
        database.execute(
            f"LOAD DATA INFILE '{file}' INTO TABLE {SOURCE} CHARACTER SET utf8mb4 FIELDS TERMINATED BY ','"
            f" ENCLOSED BY '\"' ESCAPED BY '' LINES TERMINATED BY '\\n' ({names}) SET {columns};"
            f" ANALYZE TABLE {SOURCE};"
        )


def _texts(table: pa.Table) -> pa.Table:
    """The rows as the server reads them."""
    columns = {}
    for name, (_, lake_type) in COLUMNS.items():
        column = table.column(name)
        if name == "raw":
            columns[name] = pa.array([value.hex() for value in column.to_pylist()])
        elif name == "clock":
            digits = pc.utf8_lpad(column.cast(pa.string()), 7, "0")
            columns[name] = pc.binary_join_element_wise(
                pc.utf8_slice_codeunits(digits, 0, -6), pc.utf8_slice_codeunits(digits, -6), "."
            )
        elif pa.types.is_timestamp(lake_type):
            columns[name] = pc.strftime(column, format="%Y-%m-%d %H:%M:%S")
        elif name == "flag":
            columns[name] = column.cast(pa.int8()).cast(pa.string())
        else:
            columns[name] = column.cast(pa.string())
    return pa.table(columns)


def settings(lake: str, database: EmbeddedMariaDB, **more: object) -> Settings:
    """Settings of a stream that has loaded the table and does not run."""
    document = {
        "name": "bench",
        "lake": {"uri": lake, "options": {"fsync": "false"}},
        "kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": ["none"]},
        "source": {"database": {"host": database.host, "port": database.port, "user": USER, "password": PASSWORD}},
        "tables": {"defaults": {"buckets": 8}},
        **more,
    }
    return Settings.parse(json.dumps(document))


def fill_lake(config: Settings, count: int, database: EmbeddedMariaDB) -> None:
    """Load the lake table with the same rows, at the source's position of now."""
    file, position = database.execute("SHOW MASTER STATUS")[0].split("\t")[:2]
    values = rows(count)
    meta = {"__op": int(Op.UPSERT), "__order": binlog_order(0, file, int(position))}
    for field in META_FIELDS:
        values = values.append_column(field, pa.repeat(pa.scalar(meta.get(field.name, 0), field.type), count))
    schema = TableSchema(SOURCE, tuple(Column(n, "", kind, text) for n, (text, kind) in COLUMNS.items()), ("id",))
    rules = config.table_rules(SOURCE)
    accepted = prepare(ChangeBatch(schema, "", values, origin=SOURCE), rules, None, TableFacts()).accepted
    assert accepted is not None
    lake = Lake(open_storage(config.lake.uri, config.lake.storage_options()))
    table = lake.get_or_create(rules, accepted.target, accepted.columns)
    table.base_from_rows = 1
    services = TableServices(lambda function, operations: [function(operation) for operation in operations])
    report = TaskTableReport(accepted.schema, accepted.target, accepted.columns, counts=accepted.counts)
    with ThreadPoolExecutor(2) as pool:
        write_and_commit(table, TableInput(report, NO_RANGES, accepted.parcels), config.name, 0, pool, services)
    services.close()


def plant(database: EmbeddedMariaDB, count: int, table_rows: int) -> list[Planted]:
    """Plant ``count`` single differences of all kinds, each in a row of its own, far from each other."""
    step = table_rows // count
    planted, statements = [], []
    for number, what in zip(range(count), _around(list(PLANTS)), strict=False):
        key = (number * step + 7) // 24 * 24 + (0 if what in _OF_EIGHTH else 1)
        statements.append(PLANTS[what].format(t=SOURCE, id=key))
        planted.append(Planted(what, key + FAR if what == "missing row" else key))
    database.execute(";".join(statements))
    return planted


def _around(names: list[str]) -> Iterator[str]:
    while True:
        yield from names
