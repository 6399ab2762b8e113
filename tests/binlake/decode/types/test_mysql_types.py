"""Type texts, as SHOW CREATE TABLE and statements spell them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from binlake.decode.types.mysql_types import MysqlType, parse_type
from hudilake.errors import UnsupportedError

UTC_US = pa.timestamp("us", tz="UTC")

TYPES: list[tuple[str, MysqlType, pa.DataType]] = [
    ("decimal(12,2) unsigned zerofill", MysqlType("decimal", 12, 2, True), pa.decimal128(12, 2)),
    ("DECIMAL", MysqlType("decimal"), pa.decimal128(10, 0)),
    ("dec(5)", MysqlType("decimal", 5), pa.decimal128(5, 0)),
    ("numeric(38, 10)", MysqlType("decimal", 38, 10), pa.decimal128(38, 10)),
    ("fixed(39,10)", MysqlType("decimal", 39, 10), pa.string()),
    ("tinyint(1)", MysqlType("tinyint", 1), pa.int32()),
    ("INT1 UNSIGNED", MysqlType("tinyint", unsigned=True), pa.int32()),
    ("middleint", MysqlType("mediumint"), pa.int32()),
    ("integer(10) zerofill", MysqlType("int", 10, unsigned=True), pa.int64()),
    ("int4", MysqlType("int"), pa.int32()),
    ("bigint(20) unsigned NOT NULL AUTO_INCREMENT", MysqlType("bigint", 20, unsigned=True), pa.decimal128(20, 0)),
    ("int8", MysqlType("bigint"), pa.int64()),
    ("serial", MysqlType("bigint", unsigned=True), pa.decimal128(20, 0)),
    ("bool", MysqlType("bool"), pa.int32()),
    ("boolean not null default false", MysqlType("bool"), pa.int32()),
    ("bit", MysqlType("bit"), pa.bool_()),
    ("bit(1)", MysqlType("bit", 1), pa.bool_()),
    ("bit(10)", MysqlType("bit", 10), pa.binary()),
    ("float", MysqlType("float"), pa.float32()),
    ("float(24)", MysqlType("float", 24), pa.float32()),
    ("float(25)", MysqlType("double", 25), pa.float64()),
    ("float(7,3)", MysqlType("float", 7, 3), pa.float32()),
    ("double(7,3)", MysqlType("double", 7, 3), pa.float64()),
    ("double precision unsigned", MysqlType("double", unsigned=True), pa.float64()),
    ("real", MysqlType("double"), pa.float64()),
    ("year(4)", MysqlType("year", 4), pa.int32()),
    ("date", MysqlType("date"), pa.date32()),
    ("time(3)", MysqlType("time", 3), pa.int64()),
    ("datetime default current_timestamp(6)", MysqlType("datetime"), UTC_US),
    (
        "timestamp(6) NULL DEFAULT current_timestamp(6) ON UPDATE current_timestamp(6)",
        MysqlType("timestamp", 6),
        UTC_US,
    ),
    ("nchar(5)", MysqlType("char", 5), pa.string()),
    ("national character varying(5)", MysqlType("varchar", 5), pa.string()),
    ("character varying(5)", MysqlType("varchar", 5), pa.string()),
    ("varchar(20) binary", MysqlType("varchar", 20), pa.string()),
    ("varchar(20) CHARACTER SET binary", MysqlType("varbinary", 20), pa.binary()),
    ("text charset binary", MysqlType("blob"), pa.binary()),
    ("varchar(32) CHARACTER SET ascii COLLATE ascii_general_ci", MysqlType("varchar", 32), pa.string()),
    ("long varchar", MysqlType("text"), pa.string()),
    ("LONGTEXT", MysqlType("text"), pa.string()),
    ("long varbinary", MysqlType("blob"), pa.binary()),
    ("tinyblob", MysqlType("blob"), pa.binary()),
    ("binary(16)", MysqlType("binary", 16), pa.binary()),
    ("json", MysqlType("json"), pa.string()),
    ("enum('a','b,c')", MysqlType("enum", options=("a", "b,c"), streamed=("a", "b\\,c")), pa.string()),
    ("ENUM('it''s', ')')", MysqlType("enum", options=("it's", ")"), streamed=("it's", ")")), pa.string()),
    (r"enum('a\'b\\c')", MysqlType("enum", options=("a'b\\c",), streamed=("a'b\\\\c",)), pa.string()),
    ("set('','x')", MysqlType("set", options=("", "x"), streamed=("", "x")), pa.string()),
    ("geometry", MysqlType("geometry"), pa.binary()),
    ("MultiPolygon", MysqlType("geometry"), pa.binary()),
    ("uuid", MysqlType("uuid"), pa.string()),
    ("inet6", MysqlType("uuid"), pa.string()),
]


@pytest.mark.parametrize(("text", "kind", "lake_type"), TYPES, ids=lambda x: str(x)[:30])
def test_parse(text: str, kind: MysqlType, lake_type: pa.DataType) -> None:
    found = parse_type(text)
    assert found == kind
    assert found.text == text
    assert found.lake_type == lake_type


@pytest.mark.parametrize("text", ["", "vector(3)", "money", "(5)", "unsigned"])
def test_unknown_types_are_refused(text: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        parse_type(text)
    assert caught.value.do_next
