"""Dump files of every kind give the records that were put in; damaged ones are told, and lose nothing in silence."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from binlake.source.dump_edit import Replacements, replaced
from binlake.source.dump_layout import DumpFile
from binlake.source.dump_packing import HEAD_BYTES, packing_of
from binlake.source.dump_read import read_dump
from hudilake.errors import CorruptDataError
from hudilake.storage import open_storage
from tests.binlake.load.replay.dumped import FORMS, HOUR, Record, as_json, as_parquet

RECORDS: list[Record] = [
    ("s.shop.orders", 0, 5, 1_760_000_000_001, b'{"id": 1}', b'{"op": "c", "n": 1.10, "text": "\xc3\xa4\\u0000"}'),
    ("s.shop.orders", 1, 3, 1_760_000_000_002, b'{"id": 2}', None),
    ("s.shop.orders", 0, 4, 1_760_000_000_003, None, b'{"op":"d"}'),
    ("s.shop.orders", 0, 9, 1_760_000_000_004, b"\x00\x00\x07\xff", b"\x00\xfe not text"),
    ("s.shop.other", 0, 0, 1_760_000_000_005, b'{"id": 3}', b"{broken"),
]


def read(place: Path, data: bytes, chunk: int = 100, name: str = "f") -> list[Record]:
    (place / name).write_bytes(data)
    storage = open_storage(str(place))
    found = []
    for r in read_dump(storage, DumpFile(HOUR, name, len(data), 0), chunk):
        assert (r.offsets[1:] >= r.offsets[:-1]).all()
        columns = (r.offsets.tolist(), r.timestamps_ms.tolist(), r.keys, r.values)
        found += [(r.topic, r.partition, *row) for row in zip(*columns, strict=True)]
    return found


def _comparable(records: Sequence[Record], *, parsed: bool) -> list[object]:
    def text(content: bytes | None) -> object:
        try:
            return json.loads(content) if parsed and content is not None else content
        except ValueError:
            return content

    return sorted(((*r[:4], text(r[4]), text(r[5])) for r in records), key=repr)


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("chunk", [1, 2, 100])
def test_each_kind_gives_the_records(tmp_path: Path, name: str, chunk: int) -> None:
    found = read(tmp_path, FORMS[name](RECORDS), chunk, name)
    parsed = name == "a.json"  # a foreign writer's objects are the bytes that stand there, spaces and all
    assert _comparable(found, parsed=parsed) == _comparable(RECORDS, parsed=parsed)


def test_numbers_in_objects_stay_as_they_are_written(tmp_path: Path) -> None:
    line = b'{"topic":"t","partition":0,"offset":1,"value":{"n":1.100, "m": 12345678901234567890.10}}'
    assert read(tmp_path, line)[0][5] == b'{"n":1.100, "m": 12345678901234567890.10}'


def test_lines_that_are_events_are_known_by_their_place(tmp_path: Path) -> None:
    data = b'{"op":"c"}\r\n\n{"op":"d"}\n{"topic":"x","partition":1}'
    stamp = HOUR * 3_600_000
    assert read(tmp_path, data, 2) == [
        ("f", 0, 0, stamp, None, b'{"op":"c"}'),
        ("f", 0, 1, stamp, None, b'{"op":"d"}'),
        ("f", 0, 2, stamp, None, b'{"topic":"x","partition":1}'),
    ]


def test_a_line_that_is_no_record_is_kept_whole(tmp_path: Path) -> None:
    """Among records it is taken for an event: decoding will say what is wrong with it."""
    bad = b'{"topic":"t","partition":0,"offset":"seven","value":"v"}'
    found = read(tmp_path, as_json(RECORDS[:1]) + b"\n" + bad + b"\n" + b"\xff\xfe")
    assert found[1:] == [("f", 0, 1, HOUR * 3_600_000, None, bad), ("f", 0, 2, HOUR * 3_600_000, None, b"\xff\xfe")]


PACKED = [name for name in FORMS if name.startswith("a.") and not name.endswith((".json", ".jsonl"))]


@pytest.mark.parametrize("name", PACKED)
def test_a_file_that_was_cut_short_is_an_error(tmp_path: Path, name: str) -> None:
    data = FORMS[name](RECORDS * 40)
    for end in (9, len(data) // 2, len(data) - 3):
        with pytest.raises(CorruptDataError, match="cannot be read") as caught:
            read(tmp_path, data[:end], name=name)
        assert str(caught.value.where["path"]).endswith(f"/{name}")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.jsonl.snappy", b"\x00\x00\x01\x00"),
        ("a.jsonl.sz", b"\xff\x06\x00\x00sNaPpY"),
        ("a.tar.gz", gzip.compress(b"{}", mtime=0)),
        ("a.zip", b"PK\x03\x04"),
        ("a.lz4", b"\x00\x00\x01\x00"),  # blocks as Hadoop writes them
        ("a.Z", b"\x1f\x9d\x90"),
        ("a.orc", b"ORC\n"),
        ("a", b"ORC\n\x0b\n"),
        ("a", b"ARROW1\x00\x00"),
        ("a", b"SEQ\x06\x19org"),
        ("a", "{}\n".encode("utf-16")),
        ("a", b"\x89LZO\x00\r\n\x1a"),
        ("a.gz", gzip.compress(b"\x00\x01\x02", mtime=0)),
    ],
)
def test_a_file_of_another_form_is_refused_whole(tmp_path: Path, name: str, data: bytes) -> None:
    with pytest.raises(CorruptDataError, match="a dump file cannot be read") as caught:
        read(tmp_path, data, name=name)
    assert "move it out of the way" in str(caught.value)
    assert name in str(caught.value.where["path"])


@pytest.mark.parametrize("bad", [b"\xff\xfe{}", b"\x00\x01", b"\x80broken"])
def test_a_damaged_line_at_the_begin_is_a_line(tmp_path: Path, bad: bytes) -> None:
    good = as_json(RECORDS[:2])
    assert [r[5] for r in read(tmp_path, bad + b"\n" + b'{"op":"c"}')] == [bad, b'{"op":"c"}']
    assert len(list(read(tmp_path, bad + b"\n" + good, name="b.jsonl"))) == 3


@pytest.mark.parametrize(
    "text", [b"{broken", "ééé".encode(), b'\xef\xbb\xbf{"op":"c"}', b"aaaaa" + "漢".encode(), b"\t{}"]
)
def test_control_text_is_read_line_by_line(tmp_path: Path, text: bytes) -> None:
    assert [r[5] for r in read(tmp_path, text)] == [text]


def test_a_flipped_byte_of_gzip_is_an_error(tmp_path: Path) -> None:
    data = bytearray(gzip.compress(as_json(RECORDS * 40)))
    data[len(data) // 2] ^= 0x55
    with pytest.raises(CorruptDataError):
        read(tmp_path, bytes(data))


def test_parquet_without_coordinates(tmp_path: Path) -> None:
    data = as_parquet([(None, None, None, None, None, b"{}"), (None, None, None, None, None, b"[]")])  # type: ignore[list-item]
    stamp = HOUR * 3_600_000
    assert read(tmp_path, data) == [("f", 0, 0, stamp, None, b"{}"), ("f", 0, 1, stamp, None, b"[]")]


@pytest.mark.parametrize("absent", [1, 2])
def test_rows_of_parquet_without_an_offset_are_known_by_their_place(tmp_path: Path, absent: int) -> None:
    """As in Avro. All at offset 0 of the topic, none would be the newest."""
    rows = [list(record) for record in RECORDS[:3]]
    rows[1][absent] = rows[2][absent] = None
    data = as_parquet([tuple(row) for row in rows])  # type: ignore[misc]
    found = [(topic, offset, value) for topic, _, offset, _, _, value in read(tmp_path, data)]
    assert found == [("s.shop.orders", 5, RECORDS[0][5]), ("f", 1, RECORDS[1][5]), ("f", 2, RECORDS[2][5])]


def test_a_record_that_was_written_twice_is_one(tmp_path: Path) -> None:
    other = (*RECORDS[0][:5], b"another content")
    found = read(tmp_path, as_json([RECORDS[0], RECORDS[2], RECORDS[0], other]))
    assert [(record[2], record[5]) for record in found] == [
        (4, RECORDS[2][5]),
        (5, RECORDS[0][5]),
        (5, b"another content"),
    ]


def test_an_empty_file_holds_nothing(tmp_path: Path) -> None:
    assert read(tmp_path, b"") == []
    assert read(tmp_path, gzip.compress(b"")) == []
    assert read(tmp_path, b"\n\n") == []


LINES = [name for name in FORMS if not name.endswith((".parquet", ".avro"))]


@pytest.mark.parametrize("name", LINES)
def test_a_record_is_emptied_in_the_packing_of_its_file(tmp_path: Path, name: str) -> None:
    data = FORMS[name](RECORDS)
    topic, partition, offset, _, key, value = next(r for r in read(tmp_path, data, name=name) if r[4] == b'{"id": 1}')
    assert key is not None
    written = replaced(data, name, Replacements({((topic, partition, offset), value): None}))
    assert written is not None
    assert packing_of(written[:HEAD_BYTES], name) == packing_of(data[:HEAD_BYTES], name)
    left = [r for r in RECORDS if r[4] != key]
    found = [r for r in read(tmp_path, written, name=name) if r[4:] != (None, None)]
    parsed = name == "a.json"
    assert _comparable(found, parsed=parsed) == _comparable(left, parsed=parsed)
