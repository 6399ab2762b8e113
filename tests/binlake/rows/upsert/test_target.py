"""From the settings' rules to a lake table: names, keys, partition values."""

from __future__ import annotations

import dataclasses
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from binlake.decode.changes import Column, SourceTable, TableSchema
from binlake.rows.upsert.target import lake_names, make_target, partition_values
from binlake.settings import PartitionSettings, TableRules
from binlake.settings.index import IndexSettings
from hudilake.errors import UnsupportedError
from hudilake.format.definition.column_names import lake_name

SOURCE = SourceTable("shop", "orders")


def schema(*columns: str, key: tuple[str, ...] = ("id",)) -> TableSchema:
    """A source table of text columns."""
    return TableSchema(SOURCE, tuple(Column(name, "", pa.string()) for name in columns), key)


def rules(partition: PartitionSettings | None = None, key: tuple[str, ...] | None = None) -> TableRules:
    """Rules as the settings give them."""
    return TableRules("shop/orders", 4, key, partition, "zstd", 1, False, True)


@pytest.mark.parametrize(
    ("column", "name"),
    [
        ("id", "id"),
        ("Net Price", "Net_Price"),
        ("a.b-c:d,e", "a_b_c_d_e"),
        ("2nd", "_2nd"),
        ("größe", "gr_u00f6_u00dfe"),
        ("数量", "_u6570_u91cf"),
        ("", "_"),
        ("`", "_"),
    ],
)
def test_names_that_avro_allows(column: str, name: str) -> None:
    assert lake_name(column) == name


@pytest.mark.parametrize(
    "columns",
    [("id", "ID"), ("a b", "a_b"), ("a.b", "A,B"), ("Größe", "Gr_u00f6_u00dfe")],
    ids=str,
)
def test_two_columns_of_one_name_are_refused(columns: tuple[str, str]) -> None:
    with pytest.raises(UnsupportedError, match="would both be") as raised:
        lake_names(columns, SOURCE)
    assert raised.value.where == {"table": "shop.orders"}


@pytest.mark.parametrize("column", ["_hoodie_record_key", "_HOODIE_x", "_binlake_order", "_Binlake_digest"])
def test_reserved_names_are_refused(column: str) -> None:
    with pytest.raises(UnsupportedError, match="keeps for itself"):
        lake_names(["id", column], SOURCE)


def test_a_target_speaks_in_lake_names() -> None:
    made = make_target(schema("Order No", "Ship Date", key=("Order No",)), rules(PartitionSettings(column="Ship Date")))
    assert made.key == ("Order_No",)
    assert made.partition == PartitionSettings(column="Ship_Date")
    assert made.config.layout.fields == ("Ship_Date",)


def test_the_key_of_the_rules_overrules_the_schemas() -> None:
    assert make_target(schema("id", "code"), rules(key=("code", "id"))).key == ("code", "id")
    assert make_target(schema("id", key=()), rules()).key == ()


@pytest.mark.parametrize(
    "bad",
    [
        rules(key=("nope",)),
        rules(PartitionSettings(column="nope", transform="day", name="nope_day")),
        rules(PartitionSettings(column="nope")),
    ],
    ids=["key", "transform", "identity"],
)
def test_columns_that_are_not_there_are_refused(bad: TableRules) -> None:
    with pytest.raises(UnsupportedError, match="'nope' is named by"):
        make_target(schema("id"), bad)


def test_a_table_without_a_key_cannot_be_looked_up() -> None:
    looked_up = dataclasses.replace(rules(), index=IndexSettings(type="bloom"))
    with pytest.raises(UnsupportedError, match="without a key cannot have the index bloom"):
        make_target(schema("id", key=()), looked_up)


def test_change_logs_are_of_the_table_to_be_made() -> None:
    logged = dataclasses.replace(rules(), type="copy_on_write", change_log="data_before")
    stated = make_target(schema("id"), logged).config.properties()
    assert stated["hoodie.table.cdc.enabled"] == "true"
    assert stated["hoodie.table.cdc.supplemental.logging.mode"] == "DATA_BEFORE"
    assert make_target(schema("id"), rules()).config.properties()["hoodie.table.cdc.enabled"] == "false"


def test_a_partition_column_may_not_hide_a_column() -> None:
    with pytest.raises(UnsupportedError, match="is also a column"):
        make_target(schema("id", "at", "AT_day"), rules(PartitionSettings(column="at", transform="day", name="at_day")))


@pytest.mark.parametrize(
    ("transform", "texts"),
    [
        ("year", ["1969", "2024", "9999", None]),
        ("month", ["1969-12", "2024-02", "9999-12", None]),
        ("day", ["1969-12-31", "2024-02-29", "9999-12-31", None]),
        ("hour", ["1969-12-31-23", "2024-02-29-00", "9999-12-31-23", None]),
    ],
)
def test_parts_of_a_timestamp_in_utc(transform: str, texts: list[str | None]) -> None:
    stamps = [
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(2024, 2, 29, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 0, 0, 1, tzinfo=UTC),
        None,
    ]
    table = pa.table({"at": pa.array(stamps, pa.timestamp("us", tz="UTC"))})
    rule = PartitionSettings(column="at", transform=transform, name="p")  # type: ignore[arg-type]
    assert partition_values(rule, table).to_pylist() == texts


def test_parts_of_a_date() -> None:
    table = pa.table({"d": pa.array([date(1, 1, 1), date(2024, 2, 29), None], pa.date32())})
    by_month = PartitionSettings(column="d", transform="month", name="p")
    assert partition_values(by_month, table).to_pylist() == ["0001-01", "2024-02", None]
    by_value = PartitionSettings(column="d")
    assert partition_values(by_value, table).to_pylist() == table.column("d").to_pylist()


@pytest.mark.parametrize("kind", [pa.string(), pa.int64(), pa.time64("us")], ids=str)
def test_only_temporal_columns_have_days(kind: pa.DataType) -> None:
    rule = PartitionSettings(column="c", transform="day", name="p")
    with pytest.raises(UnsupportedError, match="cannot take the day of column 'c'"):
        partition_values(rule, pa.table({"c": pa.array([None], kind)}))
