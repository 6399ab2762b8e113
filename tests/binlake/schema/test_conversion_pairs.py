"""Every ordered pair of types with random values, as a statement meets them in a batch: converted, or named as not
determined; never an error that is not binlake's."""

from __future__ import annotations

import dataclasses
import math
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from binlake.decode.changes import META_FIELDS, ChangeBatch, Column, SourceTable, TableSchema
from binlake.decode.ddl.columns import ColumnDefinition
from binlake.decode.types.mysql_types import MysqlType, parse_type
from binlake.schema.rules.conversion.session import Session
from binlake.schema.rules.conversion.undetermined import why_mode_decides, why_zero_dates
from binlake.schema.rules.restatement import Restatement, restate_batch
from binlake.schema.rules.retyping import conversion
from binlake.schema.rules.row_places import RowPlaces
from tests.binlake.schema.conversion_oracle import TYPES
from tests.binlake.schema.ddl_source import DdlSource, Follower
from tests.hypothesis_profile import is_nightly

KINDS = [
    *TYPES,
    *("decimal(38,10)", "decimal(38,0)", "decimal(65,30)", "point", "float(7,2)", "double(10,3) unsigned"),
    *("varchar(10) character set cp850", "time(3)", "bool", "longblob"),
]
WHOLE = [0, 1, -1, 69, 240229, 20240229, -20240229]
LEGAL = {"time": [0, -1, 3_020_399_999_999, -3_020_399_000_000], "year": [0, 1901, 2024, 2155]}
TEXTS = ["", "x", "abc", "12", "-1.5", "1e400", "2024-02-29", "12:34:56", "é😀", "9" * 60]
STATEMENT = 1000
T = SourceTable("shop", "t")


def drawn(kind: MysqlType, chance: random.Random) -> pa.Array:
    """A null and five values that a column of the type may hold in the lake."""
    lake = kind.lake_type
    return pa.array([None, *(_value(kind, lake, chance) for _ in range(5))], _raw(lake)).cast(lake)


def _raw(lake: pa.DataType) -> pa.DataType:
    return pa.int32() if pa.types.is_date(lake) else pa.int64() if pa.types.is_timestamp(lake) else lake


def _value(kind: MysqlType, lake: pa.DataType, chance: random.Random) -> Any:  # noqa: ANN401 - any lake value
    if pa.types.is_boolean(lake):
        return chance.random() < 0.5
    if pa.types.is_date(lake):
        return chance.choice([0, 19_000, -354_285, 2_932_896])
    if pa.types.is_timestamp(lake):
        return chance.choice([0, 1_709_210_096_765_000, -30_610_224_000_000_000, 253_402_300_799_999_999])
    if kind.base in ("time", "year"):
        return chance.choice(LEGAL[kind.base])
    if pa.types.is_integer(lake):
        return chance.choice([*WHOLE, chance.getrandbits(lake.bit_width - 1)])
    if pa.types.is_decimal(lake):
        return Decimal(chance.choice(WHOLE if lake.precision - lake.scale >= 8 else WHOLE[:3]))
    if pa.types.is_floating(lake):
        return chance.choice([0.0, -1.5, 1e30, 20240229.5, math.inf, math.nan])
    if pa.types.is_binary(lake):
        size = 2 if kind.base == "bit" else chance.randint(0, 8)
        return (chance.getrandbits(8 * size) & 0xFFF if kind.base == "bit" else chance.getrandbits(8 * size)).to_bytes(
            size, "big"
        )
    return chance.choice(TEXTS)


def batch_of(kind: MysqlType, values: pa.Array, befores: int) -> ChangeBatch:
    """Rows from before the statement, of which some have a before image."""
    count = len(values)
    rows = pa.table({"a": values})
    meta = {"__op": np.zeros(count), "__order": np.arange(count) + 10}
    for field in META_FIELDS:
        rows = rows.append_column(field, pa.array(meta.get(field.name, np.zeros(count))).cast(field.type))
    schema = TableSchema(T, (Column("a", "string", kind.lake_type, kind.text),), ())
    at = np.arange(befores, dtype=np.int64)
    return dataclasses.replace(
        ChangeBatch(schema, "s", rows), before=rows.select(["a"]).slice(0, befores), before_at=at
    )


@pytest.mark.full
@pytest.mark.parametrize("befores", [0, 6])
def test_every_pair_of_types_is_converted_or_not_determined(befores: int) -> None:
    rounds = 40 if is_nightly() else 1
    for seed in range(rounds):
        chance = random.Random(seed)
        for old in map(parse_type, KINDS):
            values = drawn(old, chance)
            for new in map(parse_type, KINDS):
                session = Session("UTC", mariadb=chance.random() < 0.5, seconds=1_700_000_000)
                column = ColumnDefinition("a", new.text, new, nullable=chance.random() < 0.5)
                step, undetermined = conversion(column, old, old.lake_type, new.lake_type, session)
                if step is None:
                    continue
                one = Restatement(STATEMENT, None, (step,))
                batch = batch_of(old, values, befores)
                found, _ = restate_batch(batch, RowPlaces.incoming(batch.rows), [one])
                found.rows.validate(full=True)
                assert found.before is not None
                assert found.before.schema.field("a").type == found.rows.schema.field("a").type
                assert len(found.before) == befores
                if befores:
                    assert repr(found.before.column("a").to_pylist()) == repr(found.rows.column("a").to_pylist())
                computed = why_mode_decides(old, new) or why_zero_dates(old, new)
                if undetermined is not None and column.nullable and computed is None:
                    assert found.rows.column("a").null_count == len(values)


def test_an_exact_number_that_becomes_a_date_before_the_stream_first_starts(tmp_path: Path) -> None:
    """Rows of a snapshot that no update has changed have no before image, and its columns have types all the same."""
    source = DdlSource(keyed=False)
    source.create("t", {"id": "int", "a": "decimal(38,10)"}, key=())
    source.put("t", 1, a="20240229.0000000000")
    source.tables["t"].rows[1]["a"] = "2024-02-29"
    source.modify("t", "a", "date")
    follower = Follower(source, tmp_path / "lake")
    follower.more = {"source": {"debezium": {"decimal_handling_mode": "string", "time_precision_mode": "isostring"}}}
    follower.run()
    assert [str(row["a"]) for row in follower.rows("t")] == ["2024-02-29"]
