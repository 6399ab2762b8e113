"""A transaction that MySQL 9.7 compressed, as recorded: its rows, its places, and what is refused of a damaged one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from binlake.source.binlog.charsets import charsets_of
from binlake.source.binlog.compression import events_of
from binlake.source.binlog.definitions import DefinitionReader
from binlake.source.binlog.dump import BinlogEvent, EventType
from binlake.source.binlog.places import ROW_BITS, offset_of
from binlake.source.binlog.prepared import PreparedTransactions
from binlake.source.binlog.records import RecordMaker, RecordPiece
from binlake.source.binlog.tables_then import TableThen
from hudilake.errors import CorruptDataError, LakeError, UnsupportedError

FILE, SECONDS, SERVER = "mysql-bin.000002", 1_795_529_860, 4712
GTID = bytes.fromhex(
    "00ca8e5749e81111f18d1602fc0000000105000000000000000204000000000000000500000000000000bf39885f066106fc440150620100"
)
#: BEGIN; INSERT INTO shop.t of (n, REPEAT('é', n)) for 1 to 5; UPDATE SET a = 'x' WHERE id > 3; DELETE of 1; COMMIT.
PAYLOAD = bytes.fromhex(
    "0201000303fcf0010101d20028b52ffd60f000450600c2492028806b1a03309111d95360e5a47456ca47ed7fd50330930d10"
    "a11503d18a0186684a11da90bdb79429ffff0141604499666f421651027ef87394ceef8e32caf7ef51eeafcf7d2f4c141a15"
    "ac0f45a9cac2f7dcb85d7597ecc0ed98be75cb8d872a8305372df29824c7984b753da1e7a3b0cb3952e6484ffc3bf0f3f450"
    "b516dcb41e00a004e2d408a1b208007f60b17818d43382211e19de020998eec033b044780cc231bf720b5a8b5b66b12dab83"
    "3e30f6102c27d50eac06ee716e23cb7a403c30f200bc"
)
BEGIN = BinlogEvent(EventType.GTID, SECONDS, SERVER, FILE, 1129, 1208, GTID)
PACKED = BinlogEvent(EventType.TRANSACTION_PAYLOAD, SECONDS, SERVER, FILE, 1208, 1453, PAYLOAD)
CHANGES = [
    *(("c", None, {"id": n, "a": "é" * n}) for n in range(1, 6)),
    *(("u", {"id": n, "a": "é" * n}, {"id": n, "a": "x"}) for n in (4, 5)),
    ("d", {"id": 1, "a": "é"}, None),
]


def pieces(events: Sequence[BinlogEvent], start: int = 0) -> list[RecordPiece]:
    charsets = charsets_of(dict.fromkeys((45, 255), ("utf8mb4", 4)))
    definitions = DefinitionReader(
        charsets, False, lambda *asked: TableThen({}), lambda *asked: "utf8mb4", selects=lambda table: True
    )
    maker = RecordMaker(definitions, start, PreparedTransactions(lambda *place: iter(()), list, charsets))
    return [piece for piece in maker.pieces(events) if piece is not None]


def changes(found: Sequence[RecordPiece]) -> list[tuple[str, Any, Any]]:
    envelopes = [json.loads(value) for piece in found for value in piece.values]
    return [(one["op"], one["before"], one["after"]) for one in envelopes]


def test_the_rows_of_a_compressed_transaction() -> None:
    [piece] = pieces([BEGIN, PACKED])
    assert changes([piece]) == CHANGES
    assert (piece.whole, piece.end) == (True, offset_of(FILE, 1453))
    rows = [json.loads(value)["source"] for value in piece.values]
    assert [(one["file"], one["pos"]) for one in rows] == [(FILE, 1208)] * len(CHANGES)
    assert [offset_of(FILE, 1208) + one["row"] for one in rows] == piece.offsets == sorted(set(piece.offsets))


@pytest.mark.parametrize("taken", range(len(CHANGES) + 1))
def test_reading_goes_on_at_any_row(taken: int) -> None:
    [whole] = pieces([BEGIN, PACKED])
    start = whole.offsets[taken] if taken < len(CHANGES) else whole.end
    assert changes(pieces([BEGIN, PACKED], start)) == CHANGES[taken:]


def test_a_piece_that_ends_inside_says_where_the_next_row_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """No such place looks like that of an event, so that the whole transaction is read again."""
    [whole] = pieces([BEGIN, PACKED])
    monkeypatch.setattr("binlake.source.binlog.records._PIECE_RECORDS", 1)
    ends = [piece.end for piece in pieces([BEGIN, PACKED])]
    assert len(ends) == 4  # three events with rows, and the end
    for end in ends[:-1]:
        assert end & ((1 << ROW_BITS) - 1)
        assert changes(pieces([BEGIN, PACKED], end)) == CHANGES[sum(offset < end for offset in whole.offsets) :]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (PAYLOAD[:-9], CorruptDataError),
        (PAYLOAD[:60] + b"\x00\x00\x00" + PAYLOAD[63:], CorruptDataError),
        (PAYLOAD.replace(b"\x02\x01\x00", b"\x02\x01\x07", 1), UnsupportedError),
        (b"\x01\x01\x05\x00abcde", UnsupportedError),
    ],
)
def test_what_is_damaged_or_not_known_is_refused(body: bytes, kind: type[LakeError]) -> None:
    with pytest.raises(kind, match=r"at mysql-bin\.000002:1208"):
        pieces([BEGIN, replace(PACKED, body=body)])


def test_another_event_is_itself() -> None:
    assert list(events_of(BEGIN)) == [BEGIN]
