"""HFiles: byte for byte what Java writes, and lookups that find every key and no other."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudilake.errors import CorruptDataError, LakeError, UnsupportedError
from hudilake.format.files.hfile import layout
from hudilake.format.files.hfile.columns import all_entries
from hudilake.format.files.hfile.layout import Codec
from hudilake.format.files.hfile.reader import HFileReader
from hudilake.format.files.hfile.writer import HFileWriter, encode_hfile
from hudilake.format.files.log_file import BlockType, iter_blocks
from hudilake.format.files.varint import read_varint, write_varint
from tests.paths import GOLDEN

VECTORS: list[dict[str, Any]] = json.loads((GOLDEN / "vectors.json").read_text())["hfile"]
METADATA = GOLDEN / "tbl_hudi120" / ".hoodie" / "metadata"
_JAVA_BYTES_PER_CHECKSUM = 16384


def _entries(vector: dict[str, Any]) -> list[tuple[bytes, bytes]]:
    return [(key.encode(), bytes.fromhex(value)) for key, value in vector["kv"]]


def _java_file(vector: dict[str, Any]) -> bytes:
    """The vector's file: its trailer is kept apart, and padded to 4096 bytes ending with the version."""
    trailer = bytes.fromhex(vector["trailer_hex"])
    body = bytes.fromhex(vector["file_hex_without_trailer_padding"])
    body = body[: vector["total_len"] - 4096]
    return body + trailer + bytes(4095 - len(trailer)) + b"\x03"


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["name"])
def test_writes_java_bytes(vector: dict[str, Any]) -> None:
    writer = HFileWriter(Codec[vector["compression"]], vector["block_size"], _JAVA_BYTES_PER_CHECKSUM)
    for key, value in _entries(vector):
        writer.append(key, value)
    info = {name: text.encode() for name, text in vector["file_info"].items()}
    meta = {name: bytes.fromhex(value) for name, value in vector["meta"].items()}
    assert writer.finish(info, vector["creation_time_ms"], meta) == _java_file(vector)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["name"])
def test_reads_java_files(vector: dict[str, Any]) -> None:
    reader = HFileReader.from_bytes(_java_file(vector))
    assert list(reader.scan()) == _entries(vector)
    assert reader.entries == len(vector["kv"])
    assert reader.schema == vector["file_info"]["schema"]
    for key, value in _entries(vector):
        assert reader.get(key) == value
        assert reader.get(key + b"\x00") is None
    for name, value in vector["meta"].items():
        assert reader.meta_block(name) == bytes.fromhex(value)
    assert reader.meta_block("absent") is None


def test_reads_the_gzip_files_of_a_real_metadata_table() -> None:
    blocks = 0
    for path in sorted(METADATA.rglob("*.log.*")):
        for block in iter_blocks(path.read_bytes(), str(path)):
            if block.block_type is BlockType.HFILE_DATA:
                reader = HFileReader.from_bytes(bytes(block.content))
                keys = [key for key, _ in reader.scan()]
                assert keys == sorted(keys)
                assert len(keys) == reader.entries > 0
                assert reader.get_many(keys) == dict(reader.scan())
                blocks += 1
    assert blocks == 39
    (base,) = METADATA.glob("files/*.hfile")
    assert [key for key, _ in HFileReader.from_bytes(base.read_bytes()).scan()] == [b"__all_partitions__"]


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("block_size", [300, layout.BLOCK_SIZE])
def test_lookups_over_many_blocks(codec: Codec, block_size: int) -> None:
    entries = [(b"key%06d" % number, b"v" * (number % 97)) for number in range(0, 6000, 2)]
    data = encode_hfile(entries, "{}", 0, codec, block_size)
    reads: list[int] = []

    def read_range(start: int, length: int) -> bytes:
        reads.append(length)
        return data[start : start + length]

    reader = HFileReader(read_range, len(data))
    assert list(reader.scan()) == entries
    assert reader.get_many([key for key, _ in entries]) == dict(entries)
    absent = [b"", b"key", b"key000001", b"key005999", b"key999999", b"z"]
    assert reader.get_many(absent) == {}
    reads.clear()
    assert reader.get(b"key003000") == b"v" * (3000 % 97)
    assert len(reads) <= 1


@given(
    st.dictionaries(st.binary(min_size=1, max_size=300), st.binary(max_size=400), max_size=60), st.sampled_from(Codec)
)
def test_round_trip(values: dict[bytes, bytes], codec: Codec) -> None:
    entries = sorted(values.items())
    reader = HFileReader.from_bytes(encode_hfile(entries, '"string"', 7, codec, block_size=500))
    assert list(reader.scan()) == entries
    for key in values:
        assert reader.get(key) == values[key]
        assert (reader.get(key + b"!") is None) == (key + b"!" not in values)


def test_one_checksum_of_four_bytes_for_any_block() -> None:
    """Hudi's reader loses the entries that fit into the checksum bytes; four are fewer than any entry has."""
    entries = [(b"%05d" % number, b"") for number in range(40_000)]
    data = encode_hfile(entries, "{}", 0, Codec.NONE)
    _, on_disk, plain, *_ = layout.BLOCK_HEADER.unpack_from(data)
    assert on_disk - plain == 4 < layout.ENTRY_EXTRA


@pytest.mark.parametrize("keys", [(b"b", b"a"), (b"a", b"a")])
def test_refuses_keys_out_of_order(keys: tuple[bytes, bytes]) -> None:
    with pytest.raises(CorruptDataError, match="ascending"):
        encode_hfile([(key, b"") for key in keys], "{}", 0)


def test_empty_file() -> None:
    reader = HFileReader.from_bytes(encode_hfile([], "{}", 0))
    assert list(reader.scan()) == []
    assert reader.get(b"a") is None


def test_damage_is_an_error_or_harmless() -> None:
    """Every cut and every flipped byte: the right entries, or an error of ours; never a silently shorter answer."""
    entries = [(b"k%03d" % n, b"value %d" % n) for n in range(50)]
    data = encode_hfile(entries, "{}", 0, Codec.GZIP, block_size=400)
    for cut in range(1, len(data), 37):
        with pytest.raises(LakeError):
            list(HFileReader.from_bytes(data[:-cut]).scan())
    wrong = 0
    for at in range(0, len(data) - 4096, 11):
        damaged = data[:at] + bytes((data[at] ^ 0xFF,)) + data[at + 1 :]
        try:
            wrong += list(HFileReader.from_bytes(damaged).scan()) != entries
        except LakeError:
            continue
    assert wrong == 0


def test_refuses_other_dialects() -> None:
    data = bytearray(encode_hfile([(b"a", b"b")], "{}", 0, Codec.NONE))
    at = data.rfind(b"\x60\x02")  # field 12, codec NONE
    data[at + 1] = 3  # SNAPPY
    with pytest.raises(UnsupportedError, match="codec 3"):
        HFileReader.from_bytes(bytes(data))


@pytest.mark.parametrize("number", [0, 1, 127, 128, 255, 256, 65535, 65536, 1 << 40])
def test_integers(number: int) -> None:
    assert layout.read_vint(layout.write_vint(number), 0) == (number, len(layout.write_vint(number)))
    assert read_varint(write_varint(number), 0) == (number, len(write_varint(number)))
    with pytest.raises(ValueError, match="range"):
        write_varint(-1 - number)


#: Keys of characters that Java orders otherwise than their bytes: U+E000 to U+FFFF, and those beyond.
UNLIKE_KEYS = st.lists(
    st.text("ay\ud7ff\ue000\uff21\uffff\U00010000\U0001f600", max_size=4), min_size=1, max_size=60, unique=True
)


@given(UNLIKE_KEYS, UNLIKE_KEYS, st.integers(60, 400), st.booleans())
def test_files_in_the_order_of_javas_texts_are_read_as_those_in_the_order_of_bytes(
    texts: list[str], others: list[str], block_size: int, java: bool
) -> None:
    """Hudi's JVM writers compact the metadata table into files whose keys ascend by UTF-16 units."""
    keys = [text.encode() for text in texts]
    writer = HFileWriter(Codec.NONE, block_size)
    for key in sorted(keys, key=layout.by_units if java else bytes):
        writer._last_key = b""
        writer.append(key, key * 2)
    data = writer.finish({}, 0)
    reader = HFileReader.from_bytes(data)
    wanted = {key: key * 2 for key in keys}
    assert list(reader.scan()) == sorted(wanted.items())
    assert reader.get_many([*keys, *(text.encode() for text in others)]) == wanted
    entries = all_entries(reader)
    assert dict(zip(entries.keys.to_pylist(), entries.values.to_pylist(), strict=True)) == wanted
    assert entries.keys.to_pylist() == sorted(keys)
