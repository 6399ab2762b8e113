"""``hoodie.properties``: what we write, what Hudi wrote, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudilake.errors import ConfigError, CorruptDataError, UnsupportedError
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.properties import dump_properties, load_properties
from tests.hudilake.lake import config
from tests.paths import GOLDEN

GOLDEN_PROPERTIES = (GOLDEN / "tbl_hudi120/.hoodie/hoodie.properties").read_bytes()


@pytest.mark.parametrize("vector", json.loads((GOLDEN / "vectors.json").read_text())["table_checksum"])
def test_checksum(vector: dict[str, str]) -> None:
    assert replace(config(vector["name"]), database=vector["database"]).checksum == vector["checksum"]


def test_what_we_write_reads_back() -> None:
    table = replace(
        config("Tabelle ä😀", buckets=16),
        database="db",
        extra={"a key": " x=y:#!\\ \t", "hoodie.table.cdc.supplemental.logging.mode": "x"},
    )
    data = table.to_properties()
    back = TableConfig.from_properties(data)
    assert data.isascii()
    assert {**back.extra, **table.extra} == back.extra
    assert replace(back, extra={}) == replace(table, extra={})
    assert back.to_properties() == data
    back.check_writable()


def test_every_key_hudi_writes_is_written() -> None:
    theirs, mine = load_properties(GOLDEN_PROPERTIES), load_properties(config().to_properties())
    optional = {
        "hoodie.table.partition_extractor_class",
        "hoodie.table.metadata.partitions",
        "hoodie.table.metadata.partitions.inflight",
        "hoodie.table.index.defs.path",
    }
    assert theirs.keys() - mine.keys() == optional
    same = [k for k in theirs.keys() & mine.keys() if theirs[k] == mine[k]]
    assert len(same) == 17


def test_what_hudi_wrote() -> None:
    golden = TableConfig.from_properties(GOLDEN_PROPERTIES)
    assert golden.record_key_fields == ("id",)
    assert golden.partition_fields == ("region", "dt")
    assert golden.keygenerator_type == "COMPLEX"
    assert golden.ordering_field == "ts"
    assert golden.bucket_count == 0
    assert golden.metadata_partitions == ("bloom_filters", "column_stats", "files", "partition_stats")
    assert load_properties(golden.to_properties()).items() >= load_properties(GOLDEN_PROPERTIES).items()
    with pytest.raises(UnsupportedError, match="bucket count"):
        golden.check_writable()
    with pytest.raises(UnsupportedError, match="cannot keep current: record_index"):
        golden.with_metadata_partitions(("files", "record_index")).check_writable()


@pytest.mark.parametrize(
    ("fields", "partitions", "expected"),
    [
        (("a",), (), "NON_PARTITION"),
        (("a", "b"), (), "NON_PARTITION"),
        (("a",), ("p",), "SIMPLE"),
        (("a", "b"), ("p",), "COMPLEX"),
        (("a",), ("p", "q"), "COMPLEX"),
    ],
)
def test_key_generator(fields: tuple[str, ...], partitions: tuple[str, ...], expected: str) -> None:
    table = TableConfig("t", fields, "o", 1, partition_fields=partitions)
    assert table.keygenerator_type == expected
    assert ("hoodie.table.partition.fields" in table.properties()) == bool(partitions)


@pytest.mark.parametrize(
    ("key", "value"),
    [("hoodie.table.version", "8"), ("hoodie.record.merge.mode", "CUSTOM")],
)
def test_other_tables_are_not_written_to(key: str, value: str) -> None:
    data = dump_properties({**config().properties(), key: value}, "x")
    with pytest.raises(UnsupportedError, match=key):
        TableConfig.from_properties(data).check_writable()


@pytest.mark.parametrize(
    "change",
    [
        {"bucket_count": 4},
        {"record_key_fields": ("name",)},
        {"partition_fields": ()},
        {"ordering_field": "qty"},
        {"hive_style": False},
    ],
)
def test_another_identity_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        config().check_same_identity(replace(config(), **change))  # type: ignore[arg-type]


def test_metadata_partitions_and_other_properties_may_change() -> None:
    config().check_same_identity(replace(config(), metadata_partitions=("files",), extra={"hoodie.x": "1"}))


def test_a_wrong_checksum_or_no_name_is_corrupt() -> None:
    for values in ({**config().properties(), "hoodie.table.checksum": "1"}, {"hoodie.table.type": "MERGE_ON_READ"}):
        with pytest.raises(CorruptDataError):
            TableConfig.from_properties(dump_properties(values, "x"))


@given(
    st.dictionaries(
        st.text(min_size=1, alphabet=st.characters(exclude_categories=["Cs"])),
        st.text(alphabet=st.characters(exclude_categories=["Cs"])),
    )
)
def test_properties_round_trip(values: dict[str, str]) -> None:
    assert load_properties(dump_properties(values, "c")) == values


def test_java_spellings() -> None:
    text = b"! a comment\r\n  # another\n\na : b\nc\\=d = e \\\n   f\n"
    text += b"g\\u00e9 h\ni=\\uD83D\\uDE00\nempty\nlast=no newline\\\\"
    assert load_properties(text) == {
        "a": "b",
        "c=d": "e f",
        "gé": "h",
        "i": "😀",
        "empty": "",
        "last": "no newline\\",
    }
