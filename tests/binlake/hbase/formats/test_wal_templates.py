"""What templates read of WAL entries is what the general decoder reads: the same cells, in their order, and faults."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlake.decode.changes import DecodedRecords, RawRecords, SourceTable
from binlake.decode.formats.reader import decode
from binlake.decode.options import DecodeOptions, EventFormat
from binlake.decode.schemas.schemas import DeclaredSchemas
from binlake.hbase.formats import hbase_wal, wal_scan
from binlake.hbase.formats.cell_rows import LOGGED_KINDS
from tests.binlake.decode.mangled import changed_bytes, mangled
from tests.binlake.decode.recordings import records
from tests.binlake.hbase import recordings
from tests.binlake.hbase.formats.test_hbase_wal import BAD, b64, put

Cell = dict[str, Any]


def entry(cells: Any, table: str = "shop:orders", sequence: int = 5, written: int = 1_000, **more: Any) -> bytes:  # noqa: ANN401
    """As the endpoint writes it."""
    key = {"writeTime": written, "sequenceId": sequence, "tablename": table, "nonce": 0, "nonceGroup": 0}
    key |= {"origLogSeqNum": 0, "encodedRegionName": "YWM=", "writeEntry": None}
    edit = {"cells": cells, "families": ["Yw=="], "replay": False, "metafamily": "TUVUQUZBTUlMWQ=="} | more
    return json.dumps({"key": key, "edit": edit}, separators=(",", ":"), ensure_ascii=False).encode()


def generally(found: RawRecords, options: DecodeOptions) -> DecodedRecords:
    """As it is read without templates."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hbase_wal, "_scanned", lambda chunk, live, read_cells: live)
        return decode(found, DeclaredSchemas({}), options)


def tables(found: DecodedRecords) -> dict[str, pa.Table]:
    parts: dict[str, list[pa.Table]] = {}
    for batch in found.changes:
        batch.rows.validate(full=True)
        parts.setdefault(str(batch.schema.source), []).append(batch.rows)
    return {name: pa.concat_tables(rows).combine_chunks() for name, rows in parts.items()}


def same(one: DecodedRecords, other: DecodedRecords) -> None:
    assert one.quarantined == other.quarantined
    assert one.filtered == other.filtered
    mine, theirs = tables(one), tables(other)
    assert mine.keys() == theirs.keys()
    for name, rows in mine.items():
        assert rows.equals(theirs[name]), name


def check(values: list[bytes | None], **more: Any) -> DecodedRecords:  # noqa: ANN401 - of DecodeOptions
    """The same in both ways; returns what is read with templates."""
    options = DecodeOptions(**{"format": EventFormat.HBASE_WAL, **more})
    found = records([None] * len(values), values)
    ours = decode(found, DeclaredSchemas({}), options)
    same(ours, generally(found, options))
    return ours


GOOD: list[bytes] = [
    entry([put(b"a", b"value"), put(b"\0b\xff", b"")]),
    entry([put(b"a", type="DeleteColumn"), put(b"a") | {"type": "Delete", "value": None}]),
    entry([{name: held for name, held in put(b"a", type="DeleteFamily", qualifier="").items() if name != "value"}]),
    entry([dict(reversed(put(b"__null__", timeStamp=(1 << 63) - 2).items()))], table="clicks", families=[]),
]


def test_entries_in_the_usual_form_are_read() -> None:
    assert check([*GOOD, *GOOD]).by_template == 2 * len(GOOD)


@pytest.mark.full
def test_entries_that_are_left() -> None:
    note = put(b"region", family=b64(b"METAFAMILY"), qualifier=b64(b"HBASE::FLUSH"))
    bulk = put(b"region", family=b64(b"METAFAMILY"), qualifier=b64(b"HBASE::BULK_LOAD"))
    odd = [
        entry([]),
        entry([note]),
        entry([note, put()]),
        entry([bulk]),
        entry([put(extra=5)]),
        entry([put(b"")]),
        entry([put(family="")]),
        entry([put() | {"value": None}]),
        *(entry([put(), {name: held for name, held in put().items() if name != member}]) for member in put()),
        entry([put(timeStamp=-1)]),
        entry([put(timeStamp=(1 << 63) - 1)]),
        entry([put(type="Delete")]).replace(b'"value":"dg=="', b'"value":nill'),
        entry([put()]).replace(b'"cg=="', b'"cg==x').replace(b'"ZA=="', b'"ZA==x'),
        entry([put(), 5]),
        entry([put(), [put()]]),
        entry([put()], families=["é"]),
        entry([put()], families=[{"cells": 1}]),
        entry([put()], families="Yw=="),
        entry(None),
        entry([put()], table="a:b:c"),
        entry([put()], sequence=1 << 52),
        entry([put()], written=-1),
        entry([put()], replay=[1]),
        entry([put(family=b64(b"a:b"))]),
        entry([put(family=b64(b"\xff"))]),
        entry([put(type="DeleteFamily")]),
        entry([put()]).replace(b'"row":', b'"row":"","row":'),
        entry([put()]).replace(b'"YWM="', b'"\xff"'),
        entry([put()]).replace(b'"YWM="', b'"\\u00e9"'),
        entry([put()]).replace(b'"timeStamp":7', b'"timeStamp":7.0'),
        entry([put()]).replace(b'"timeStamp":7', b'"timeStamp":-0'),
        entry([put()]).replace(b'"timeStamp":7', b'"timeStamp": 7'),
        entry([put()]).replace(b'"edit":{', b'"edit":{"writeTime":5,'),
        entry([put()])[:-1] + b',"writeTime":5}',
        entry([put()]) + b" ",
        entry([put()]) + b"}",
        None,
        b"null",
        *(value for values in BAD.values() for value in values),
    ]
    found = check([*GOOD, *odd, *GOOD])
    assert found.by_template >= 2 * len(GOOD), "a bad entry leaves no other one to the general decoder"
    for value in odd:
        check([GOOD[0], value, GOOD[0]])
        check([value, GOOD[0]], ignored_tables=frozenset({SourceTable("shop", "orders")}))
    check([*GOOD, *odd, b'{"op":"c"}', *GOOD], format=EventFormat.AUTO)


def test_entries_that_are_nested_too_deeply() -> None:
    assert check(list(GOOD), max_nesting=2).by_template == 0


@pytest.mark.parametrize("sequence", ["5", None, True, 5.0, [5]])
def test_heads_that_are_no_numbers(sequence: Any) -> None:  # noqa: ANN401 - JSON
    """They are alike, so they have a template of their own."""
    odd = entry([put()]).replace(b'"sequenceId":5', b'"sequenceId":' + json.dumps(sequence).encode())
    assert check([odd, GOOD[0], odd]).by_template == 1


@pytest.mark.first(1)
@pytest.mark.parametrize("member", ["row", "family", "qualifier", "value"])
def test_text_that_is_and_is_no_base64(member: str) -> None:
    texts = ["", "=", "A", "AA", "AAA", "AAAA", "AA==", "AB==", "AAA=", "A===", "====", "AA=A", "A=AA", "=AAA", "AAAA="]
    texts += [
        "AAAAA",
        "AA==AAAA",
        "AAAAAA==",
        "+/+/",
        "-_-_",
        "AA A",
        "AA-=",
        "AAA\n",
        "AA\\/",
        "é===",
        '"',
        "AAAA" * 9 + "A",
    ]
    for text in texts:
        check([GOOD[0], entry([put() | {member: text}]), entry([put(), put() | {member: text}]), GOOD[0]])
        raw = entry([put() | {member: "@"}]).replace(b"@", text.encode())
        check([GOOD[0], raw, GOOD[0]])


@pytest.mark.first(2)
@pytest.mark.parametrize("seed", range(3))
def test_damaged_entries(seed: int) -> None:
    dice = random.Random(seed)
    check([*GOOD, *mangled(dice, GOOD, 500), *GOOD])


@pytest.mark.full
def test_every_changed_byte_is_told_alike() -> None:
    for good in GOOD[:2]:
        check([good, *changed_bytes(good), good])


CELLS = st.lists(
    st.builds(
        put,
        row=st.binary(min_size=1, max_size=6) | st.sampled_from([b"__empty__", b"a,b", b"\\"]),
        value=st.binary(max_size=9),
        timeStamp=st.integers(0, (1 << 63) - 2) | st.integers(-1, 3),
        qualifier=st.binary(max_size=5).map(b64),
        family=st.sampled_from([b64(name) for name in (b"d", b"cf2", b"METAFAMILY", b"METAFAMILZ", b"a:b", b"")]),
        type=st.sampled_from(["Put", "Put", "Delete", "DeleteColumn", "DeleteFamily", "Minimum"]),
    ),
    max_size=4,
)


@given(st.lists(st.tuples(CELLS, st.sampled_from(["shop:orders", "clicks", "a:b:c"]), st.integers(-1, 1 << 53))))
def test_any_entries(drawn: list[tuple[list[Cell], str, int]]) -> None:
    check([entry(cells, table, sequence) for cells, table, sequence in drawn])


def test_most_of_a_recording_is_read_by_templates() -> None:
    read = entries = 0
    for table in recordings.TABLES:
        for part in recordings.topic(table, "wal").values():
            options = DecodeOptions(format=EventFormat.HBASE_WAL)
            found = decode(part, DeclaredSchemas({}), options)
            same(found, generally(part, options))
            read += found.by_template
            entries += len([value for value in part.values if value])
    assert read / entries > 0.95


def test_a_wrong_reader_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: the kinds of cells are mixed up."""
    monkeypatch.setattr(wal_scan, "LOGGED_KINDS", ["Put", "DeleteColumn", "Delete", *LOGGED_KINDS[3:]])
    with pytest.raises(AssertionError):
        check([*GOOD])
