"""Log files: Hudi's own bytes, both ways, and files that were damaged."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudilake.errors import CorruptDataError, UnsupportedError
from hudilake.format.files.delete_block import decode_deletes, delete_list_schema, encode_deletes
from hudilake.format.files.log_file import MAGIC, BlockType, Header, encode_block, iter_blocks
from tests.paths import GOLDEN

VECTORS: list[dict[str, Any]] = json.loads((GOLDEN / "vectors.json").read_text())["log_files"]
WHOLE = [v for v in VECTORS if v["hex"]]


@pytest.mark.parametrize("vector", WHOLE, ids=lambda v: v["path"][-40:])
def test_hudis_bytes_both_ways(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["hex"])
    blocks = list(iter_blocks(data))
    assert len(data) == vector["total_len"]
    assert [b.block_type for b in blocks] == [b["type"] for b in vector["blocks"]]
    assert [bytes(b.content).hex() for b in blocks] == [b["content_hex"] for b in vector["blocks"]]
    assert b"".join(encode_block(b.block_type, b.header, bytes(b.content)) for b in blocks) == data


def test_hudis_delete_blocks_both_ways() -> None:
    (removal,) = iter_blocks(bytes.fromhex(WHOLE[-1]["hex"]))
    assert decode_deletes(removal.content).to_pydict() == {"_hoodie_record_key": ["7", "5"], "ordering": [None, None]}
    assert encode_deletes(pa.array(["7", "5"]), None, "d1") == removal.content
    (empty,) = iter_blocks(bytes.fromhex(WHOLE[0]["hex"]))
    assert encode_deletes(pa.array([], pa.string()), None, "x") == empty.content
    assert decode_deletes(empty.content).num_rows == 0


@pytest.mark.parametrize("path", sorted((GOLDEN / "tbl_hudi120").rglob(".*.log.*")), ids=lambda p: p.name)
def test_every_log_file_of_the_golden_table(path: Any) -> None:  # noqa: ANN401 - a Path
    data = path.read_bytes()
    blocks = list(iter_blocks(data, str(path)))
    assert blocks
    assert b"".join(encode_block(b.block_type, b.header, bytes(b.content)) for b in blocks) == data


LONGS = st.integers(-(2**63), 2**63 - 1)


@given(
    st.lists(st.tuples(st.text(st.characters(exclude_categories=["Cs"])), LONGS)),
    st.text(st.characters(exclude_categories=["Cs"])),
)
def test_deletes_are_what_avro_says(records: list[tuple[str, int]], partition: str) -> None:
    keys, ordering = pa.array([k for k, _ in records], pa.string()), pa.array([o for _, o in records], pa.int64())
    content = encode_deletes(keys, ordering, partition)
    expected = io.BytesIO()
    wrapped = [
        {
            "recordKey": key,
            "partitionPath": partition,
            "orderingVal": ("org.apache.hudi.avro.model.LongWrapper", {"value": order}),
        }
        for key, order in records
    ]
    fastavro.schemaless_writer(expected, delete_list_schema(), {"deleteRecordList": wrapped})
    assert content[8:] == expected.getvalue()
    assert decode_deletes(content).to_pydict() == {
        "_hoodie_record_key": keys.to_pylist(),
        "ordering": ordering.to_pylist(),
    }


def test_deletes_of_a_slice_of_an_array() -> None:
    keys, ordering = pa.array(["a", "bb", "ccc", "d"]), pa.array([1, 200, 30000, 4])
    assert encode_deletes(keys[1:3], ordering[1:3], "p") == encode_deletes(
        pa.array(["bb", "ccc"]), pa.array([200, 30000]), "p"
    )


def _deletes_with(ordering: Any) -> bytes:  # noqa: ANN401 - an Avro union
    out = io.BytesIO()
    record = {"recordKey": "k", "partitionPath": "", "orderingVal": ordering}
    fastavro.schemaless_writer(out, delete_list_schema(), {"deleteRecordList": [record]})
    return (
        encode_deletes(pa.array([], pa.string()), None, "")[:4]
        + len(out.getvalue()).to_bytes(4, "big")
        + out.getvalue()
    )


@pytest.mark.parametrize(
    ("wrapper", "value", "expected"),
    [("IntWrapper", 0, None), ("IntWrapper", 7, 7), ("LongWrapper", 0, 0), ("TimestampMicrosWrapper", 5, 5)],
)
def test_orderings_of_foreign_deletes(wrapper: str, value: int, expected: int | None) -> None:
    content = _deletes_with((f"org.apache.hudi.avro.model.{wrapper}", {"value": value}))
    assert decode_deletes(content).column("ordering").to_pylist() == [expected]
    assert decode_deletes(_deletes_with(None)).column("ordering").to_pylist() == [None]


def test_text_orderings_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="StringWrapper"):
        decode_deletes(_deletes_with(("org.apache.hudi.avro.model.StringWrapper", {"value": "x"})))


def test_deletes_of_a_former_version_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="delete block version 2"):
        decode_deletes(b"\0\0\0\2\0\0\0\1\0", "some/path")


@pytest.mark.parametrize("content", [b"", b"\0\0\0\4\0\0\0\1\0", b"\0\0\0\3\0\0\0\5\4\2\2"])
def test_damaged_deletes_are_corrupt(content: bytes) -> None:
    with pytest.raises(CorruptDataError):
        decode_deletes(content, "some/path")


def _file() -> tuple[bytes, bytes]:
    header = {int(Header.INSTANT_TIME): "20240101000000000", int(Header.SCHEMA): "{}"}
    return encode_block(BlockType.PARQUET_DATA, header, b"x" * 50), encode_block(BlockType.DELETE, header, b"y" * 9)


def _types(data: bytes) -> list[int]:
    return [int(b.block_type) for b in iter_blocks(data)]


def test_a_file_cut_at_any_byte_keeps_its_whole_blocks() -> None:
    """As Hudi: the block that was cut is passed over, and a block is only whole if nothing or a magic follows it."""
    first, second = _file()
    assert _types(first + second) == [5, 1]
    for cut in range(len(first) + len(second)):
        data = (first + second)[:cut]
        rest = data[len(first) :]
        begins_with_magic = len(rest) < len(MAGIC) or rest.startswith(MAGIC)
        assert _types(data) == ([5] if cut >= len(first) and begins_with_magic else [])


def test_junk_after_a_block_takes_the_block_with_it() -> None:
    first, second = _file()
    assert _types(first + bytes(100)) == []
    assert _types(first + bytes(100) + second) == [1]
    assert _types(first + bytes(5)) == [5]


def test_a_changed_length_loses_only_its_block() -> None:
    first, second = _file()
    for at in (6, 13, len(first) - 1):
        damaged = first[:at] + bytes([first[at] ^ 1]) + first[at + 1 :]
        assert _types(damaged + second) == [1]


def test_junk_at_the_start_is_corrupt() -> None:
    with pytest.raises(CorruptDataError, match="no block"):
        list(iter_blocks(b"garbage, more of it", "p"))
    assert _types(b"") == []


def test_an_unsound_inside_is_corrupt() -> None:
    first, _ = _file()
    header_count = len(MAGIC) + 16
    for at, flip in ((header_count + 3, 0x40), (len(MAGIC) + 8 + 3, 2), (len(MAGIC) + 12 + 3, 0x60)):
        damaged = first[:at] + bytes([first[at] ^ flip]) + first[at + 1 :]
        with pytest.raises(CorruptDataError, match="log block"):
            _types(damaged)


def test_a_header_that_is_not_known_is_refused() -> None:
    """It may say how the rows are meant; hudi-rs and Hudi refuse it, too."""
    block = encode_block(BlockType.PARQUET_DATA, {Header.INSTANT_TIME: "20240101000000000", 9: "x"}, b"rows")
    with pytest.raises(CorruptDataError, match="header key 9"):
        list(iter_blocks(block))
