"""A lake table as it should be, made from the truth by Arrow's own parsers (not by the verdict's)."""

import re
from datetime import timedelta
from decimal import Decimal

import pyarrow as pa

from demo.truth import Cell, TruthColumn, TruthTable

SIZES = {"tinyint": 32, "smallint": 32, "mediumint": 32, "int": 32, "year": 32, "bigint": 64}


def lake_table(truth: TruthTable) -> pa.Table:
    columns = {"_hoodie_record_key": pa.array([str(i) for i in range(len(truth.rows))])}
    for i, column in enumerate(truth.columns):
        columns[column.name] = array(column, [row[i] for row in truth.rows])
    columns["_binlake_order"] = pa.array(range(len(truth.rows)), pa.int64())
    return pa.table(columns)


def array(column: TruthColumn, cells: list[Cell]) -> pa.Array:
    kind = column.data_type
    if kind == "bigint" and column.unsigned:
        return pa.array([None if c is None else Decimal(str(c)) for c in cells], pa.decimal128(20, 0))
    if kind in SIZES:
        return pa.array(cells, pa.string()).cast(pa.int64() if column.unsigned else f"int{SIZES[kind]}")
    if kind == "decimal":
        return pa.array([None if c is None else Decimal(str(c)) for c in cells], decimal_type(column))
    if kind == "double":
        return pa.array(cells, pa.string()).cast(pa.float64())
    if kind == "date":
        return pa.array(cells, pa.string()).cast(pa.date32())
    if kind in ("datetime", "timestamp"):
        return pa.array(cells, pa.string()).cast(pa.timestamp("us")).cast(pa.timestamp("us", tz="UTC"))
    if kind == "time":
        return pa.array([None if c is None else micros(str(c)) for c in cells], pa.int64())
    if kind in ("blob", "varbinary"):
        return pa.array(cells, pa.binary())
    if kind == "bit":
        return pa.array([None if c is None else c == b"\x01" for c in cells], pa.bool_())
    return pa.array(cells, pa.string())


def decimal_type(column: TruthColumn) -> pa.DataType:
    numbers = re.findall(r"\d+", column.type)
    return pa.decimal128(int(numbers[0]), int(numbers[1]))


def micros(text: str) -> int:
    hours, minutes, seconds = text.lstrip("-").split(":")
    span = timedelta(hours=int(hours), minutes=int(minutes), microseconds=round(float(seconds) * 1_000_000))
    return (-1 if text.startswith("-") else 1) * (span // timedelta(microseconds=1))
