"""Records: byte for byte what fastavro makes of them, and what Hudi wrote, read and written again, is itself."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudilake.errors import CorruptDataError
from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.files.column_stats import ColumnRange, Value, ValueType
from hudilake.format.files.hfile.reader import HFileReader
from hudilake.format.files.log_file import BlockType, iter_blocks
from hudilake.metadata.records.merge import encode_record, merge_listings, merge_stats, merge_values
from hudilake.metadata.records.record_reader import decode_record, is_current
from hudilake.metadata.records.records import (
    BloomRecord,
    RecordType,
    StatsRecord,
    decimal_bytes,
    encode_bloom,
    encode_listing,
    encode_stats,
    record_schema,
    table_schema,
)
from tests.paths import GOLDEN

SCHEMA = fastavro.parse_schema(json.loads((GOLDEN / "schemas" / "mdt_record.avsc").read_text()))
META = dict.fromkeys(
    ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name")
)
EMPTY = dict.fromkeys(
    (
        "filesystemMetadata",
        "BloomFilterMetadata",
        "ColumnStatsMetadata",
        "recordIndexMetadata",
        "SecondaryIndexMetadata",
    )
)
NAMESPACE = "org.apache.hudi.avro.model."
WRAPPERS = {bool: "BooleanWrapper", str: "StringWrapper", bytes: "BytesWrapper"}
INT_TYPES = (ValueType.INT, ValueType.DATE, ValueType.TIME_MILLIS)


def _by_fastavro(record: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, SCHEMA, {**META, "key": "", **EMPTY, **record})
    return out.getvalue()


def _wrapper(item: ColumnRange, value: Value | None) -> tuple[str, dict[str, Any]] | None:
    if value is None:
        return None
    name: str
    stored: Any = value
    if type(value) in WRAPPERS:
        name = WRAPPERS[type(value)]
    elif isinstance(value, float):
        name = "FloatWrapper" if item.value_type is ValueType.FLOAT else "DoubleWrapper"
    elif item.value_type is ValueType.DECIMAL:
        name, stored = "BytesWrapper", decimal_bytes(int(value))
    else:
        name = "IntWrapper" if item.value_type in INT_TYPES else "LongWrapper"
    return NAMESPACE + name, {"value": stored}


def _stats_dict(kind: RecordType, record: StatsRecord) -> dict[str, Any]:
    item = record.range
    stats = {
        "fileName": record.name,
        "columnName": item.column,
        "minValue": _wrapper(item, item.min),
        "maxValue": _wrapper(item, item.max),
        "valueCount": item.value_count,
        "nullCount": item.null_count,
        "totalSize": item.sizes[0],
        "totalUncompressedSize": item.sizes[1],
        "isDeleted": record.deleted,
        "isTightBound": record.tight,
        "valueType": {"typeOrdinal": int(item.value_type), "additionalInfo": item.info},
    }
    return {"type": int(kind), "ColumnStatsMetadata": stats}


LONG = st.integers(-(2**63), 2**63 - 1)
INT = st.integers(-(2**31), 2**31 - 1)
COUNT = st.integers(0, 2**40)
VALUES: dict[ValueType, st.SearchStrategy[Any]] = {
    ValueType.BOOLEAN: st.booleans(),
    ValueType.INT: INT,
    ValueType.DATE: INT,
    ValueType.LONG: LONG,
    ValueType.TIMESTAMP_MICROS: LONG,
    ValueType.FLOAT: st.floats(width=32),
    ValueType.DOUBLE: st.floats(),
    ValueType.STRING: st.text(max_size=40),
    ValueType.BYTES: st.binary(max_size=40),
    ValueType.DECIMAL: st.integers(-(10**38) + 1, 10**38 - 1),
}


@st.composite
def stats_records(draw: st.DrawFn) -> StatsRecord:
    kind = draw(st.sampled_from(list(VALUES)))
    value = st.none() | VALUES[kind]
    info = "38,6" if kind is ValueType.DECIMAL else None
    sizes = draw(st.tuples(COUNT, COUNT))
    item = ColumnRange(draw(st.text(max_size=9)), kind, draw(value), draw(value), draw(COUNT), draw(COUNT), info, sizes)
    return StatsRecord(draw(st.text(max_size=30)), item, draw(st.booleans()), draw(st.booleans()))


def _same(one: object, other: object) -> bool:
    return repr(one) == repr(other)  # NaN equals itself


@given(stats_records(), st.sampled_from([RecordType.COLUMN_STATS, RecordType.PARTITION_STATS]))
def test_stats(record: StatsRecord, kind: RecordType) -> None:
    encoded = encode_stats(kind, record)
    assert encoded == _by_fastavro(_stats_dict(kind, record))
    assert _same(decode_record(encoded), record)


@given(st.dictionaries(st.text(max_size=20), st.none() | st.integers(0, 2**50), max_size=12))
def test_listings(files: dict[str, int | None]) -> None:
    encoded = encode_listing(RecordType.FILES, files)
    infos = {name: {"size": size or 0, "isDeleted": size is None} for name, size in files.items()}
    assert encoded == _by_fastavro({"type": 2, "filesystemMetadata": infos})
    assert decode_record(encoded) == files


@given(st.binary(max_size=200), st.booleans())
def test_bloom_filters(filter_bytes: bytes, deleted: bool) -> None:
    record = BloomRecord("SIMPLE", "20260101000000000", filter_bytes, deleted)
    bloom = {"type": "SIMPLE", "timestamp": record.timestamp, "bloomFilter": filter_bytes, "isDeleted": deleted}
    assert encode_bloom(record) == _by_fastavro({"type": 4, "BloomFilterMetadata": bloom})
    assert decode_record(encode_bloom(record)) == record


@pytest.mark.parametrize("vector", json.loads((GOLDEN / "vectors.json").read_text())["column_stats_values"])
def test_hudi_statistics(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["avro_value_hex"])
    record = decode_record(data)
    assert isinstance(record, StatsRecord)
    assert encode_stats(RecordType.COLUMN_STATS, record) == data
    assert record.name == vector["fileName"]
    assert (record.range.column, record.range.value_count) == (vector["columnName"], vector["valueCount"])
    assert record.range.value_type == vector["valueType"]["typeOrdinal"]


def test_every_record_of_a_real_metadata_table() -> None:
    """1081 records of Hudi's: read and written again they are the same bytes, by either way of reading."""
    seen = 0
    with_docs = 0
    for path in (GOLDEN / "tbl_hudi120" / ".hoodie" / "metadata").rglob(".*.log.*"):
        for block in iter_blocks(path.read_bytes(), str(path)):
            if block.block_type is not BlockType.HFILE_DATA:
                continue
            reader = HFileReader.from_bytes(bytes(block.content))
            assert reader.schema is not None
            with_docs += reader.schema != record_schema()
            assert is_current(reader.schema)
            for _, value in reader.scan():
                record = decode_record(value, reader.schema)
                document: Any = fastavro.schemaless_reader(io.BytesIO(value), SCHEMA, None)
                assert encode_record(RecordType(document["type"]), record) == value
                seen += 1
    assert seen == 1081
    assert with_docs > 0


def _older_schema() -> str:
    """As a writer before the value types of statistics had it, and with a field of its own in front."""
    schema = json.loads(record_schema())
    schema["fields"].insert(5, {"name": "extra", "type": "long"})
    for field in schema["fields"]:
        if field["name"] == "ColumnStatsMetadata":
            stats = field["type"][1]
            stats["fields"] = [f for f in stats["fields"] if f["name"] not in ("valueType", "isTightBound")]
    return json.dumps(schema)


@pytest.mark.parametrize(
    ("wrapper", "value", "expected"),
    [
        ("IntWrapper", 7, (ValueType.INT, 7)),
        ("DateWrapper", 19000, (ValueType.DATE, 19000)),
        ("StringWrapper", "x", (ValueType.STRING, "x")),
        ("DoubleWrapper", 0.5, (ValueType.DOUBLE, 0.5)),
        ("TimestampMicrosWrapper", 5, (ValueType.TIMESTAMP_MICROS, 5)),
    ],
)
def test_older_schemas(wrapper: str, value: Value, expected: tuple[ValueType, Value]) -> None:
    stats = {
        "fileName": "f",
        "columnName": "c",
        "minValue": (NAMESPACE + wrapper, {"value": value}),
        "maxValue": (NAMESPACE + wrapper, {"value": value}),
        "valueCount": 3,
        "nullCount": 1,
        "totalSize": 2,
        "totalUncompressedSize": 4,
        "isDeleted": False,
    }
    out = io.BytesIO()
    schema = _older_schema()
    record = {**META, "extra": 1, "key": "", "type": 3, **EMPTY, "ColumnStatsMetadata": stats}
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(schema)), record)
    assert not is_current(schema)
    kind, bound = expected
    item = ColumnRange("c", kind, bound, bound, 1, 3, None, (2, 4))
    assert decode_record(out.getvalue(), schema) == StatsRecord("f", item)


def test_schemas() -> None:
    names = [field["name"] for field in json.loads(table_schema())["fields"]]
    assert names[0] == "key"
    assert [f["name"] for f in json.loads(record_schema())["fields"]][5:] == names


@pytest.mark.parametrize("data", [b"", b"\x00" * 6, b"\x00" * 6 + b"\x0a", b"\x00" * 6 + b"\x06\x00\x00\x02\x02\xff"])
def test_damage(data: bytes) -> None:
    with pytest.raises(CorruptDataError):
        decode_record(data)


@pytest.mark.parametrize(
    ("number", "encoded"),
    [(0, "00"), (127, "7f"), (128, "0080"), (-1, "ff"), (-128, "80"), (-129, "ff7f"), (255, "00ff"), (-256, "ff00")],
)
def test_decimal_bytes(number: int, encoded: str) -> None:
    """Java's ``BigInteger.toByteArray``."""
    assert decimal_bytes(number).hex() == encoded


def test_listings_merge_as_hudi_merges_them() -> None:
    older = {"a": 1, "b": 2, "gone": None}
    newer = {"a": 5, "b": None, "c": 3, "never": None, "gone": None}
    assert merge_listings(older, newer) == {"a": 5, "gone": None, "c": 3, "never": None}
    assert merge_listings({"a": 5}, {"a": 1}) == {"a": 5}
    assert merge_listings({"a": None}, {"a": 4}) == {"a": 4}


def _stats(low: int, high: int, **flags: bool) -> StatsRecord:
    return StatsRecord("f", ColumnRange("c", ValueType.LONG, low, high, 0, 1), **flags)


def test_statistics_merge_as_hudi_merges_them() -> None:
    wide = merge_stats(_stats(1, 5), _stats(3, 9))
    assert (wide.range.min, wide.range.max, wide.range.value_count) == (1, 9, 2)
    for newer in (_stats(3, 9, tight=True), _stats(3, 9, deleted=True)):
        assert merge_stats(_stats(1, 5), newer) == newer
    assert merge_stats(_stats(1, 5, deleted=True), _stats(3, 9)) == _stats(3, 9)


def test_deletions_cut_what_came_before() -> None:
    one, two = (encode_stats(RecordType.COLUMN_STATS, _stats(n, n)) for n in (1, 2))
    merged = merge_values(MetadataPartition.COLUMN_STATS, b"k", [one, two])
    assert merged is not None
    record = decode_record(merged)
    assert isinstance(record, StatsRecord)
    assert (record.range.min, record.range.max) == (1, 2)
    assert merge_values(MetadataPartition.COLUMN_STATS, b"k", [one, None]) is None
    assert merge_values(MetadataPartition.COLUMN_STATS, b"k", [one, None, two]) == two
    assert merge_values(MetadataPartition.BLOOM_FILTERS, b"k", [b"x", b"y"]) == b"y"


def test_records_of_two_kinds_do_not_merge() -> None:
    stats = encode_stats(RecordType.COLUMN_STATS, _stats(1, 1))
    with pytest.raises(CorruptDataError):
        merge_values(MetadataPartition.FILES, b"k", [encode_listing(RecordType.FILES, {"a": 1}), stats])


def test_a_schema_that_is_none_is_corrupt_data() -> None:
    twice = json.dumps({"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}] * 2})
    with pytest.raises(CorruptDataError, match="cannot be read"):
        decode_record(encode_listing(RecordType.FILES, {"a": 1}), twice)
