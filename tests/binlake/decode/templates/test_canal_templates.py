"""What templates read of Canal's messages is what is read one by one: the same rows, in order, and the same faults."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlake.decode.changes import DecodedRecords
from binlake.decode.formats.reader import decode
from binlake.decode.options import DecodeOptions, EventFormat
from binlake.decode.schemas.schemas import SchemaHistory
from binlake.decode.templates import canal
from tests.binlake.decode.formats.format_recordings import messages as recording
from tests.binlake.decode.mangled import changed_bytes, mangled
from tests.binlake.decode.recordings import cut, records
from tests.binlake.decode.ways import equal

Row = dict[str, str | None]
TYPES = {
    "id": "int(11)",
    "k": "varchar(9)",
    "name": "varchar(50)",
    "amount": "decimal(10,2)",
    "at": "datetime(6)",
    "stamp": "timestamp",
    "kind": "enum('new','paid')",
    "d": "double",
    "big": "bigint(20) unsigned",
}
ROW: Row = {
    "id": "1",
    "k": "a",
    "name": "ok",
    "amount": "1.50",
    "at": "2026-11-21 06:31:00.5",
    "stamp": "2026-11-21 06:31:00",
    "kind": "2",
    "d": "-1.5E7",
    "big": "18446744073709551615",
}
TEXTS = st.text() | st.text(alphabet='"\\\n\té🧪ab/', max_size=8)


def message(rows: list[Any], old: list[Any] | None = None, **more: object) -> bytes:
    """A message as Canal's producer writes it."""
    head: dict[str, object] = {"data": rows, "database": "shop", "es": 1_795_241_823_000, "gtid": "", "id": 7}
    head |= {"isDdl": False, "mysqlType": TYPES, "old": old, "pkNames": ["id", "k"], "sql": ""}
    head |= {"sqlType": dict.fromkeys(TYPES, 12), "table": "orders", "ts": 1_795_241_823_835}
    head |= {"type": "INSERT" if old is None else "UPDATE"} | more
    return json.dumps(head, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def check(values: list[bytes | None], **options: Any) -> DecodedRecords:  # noqa: ANN401 - of DecodeOptions
    """The same in all ways; what templates have read is counted."""
    found, chosen = records([None] * len(values), values), DecodeOptions(**{"format": EventFormat.CANAL} | options)
    equal(found, SchemaHistory(), chosen)
    return decode(found, SchemaHistory(), chosen)


def mixed(dice: random.Random, n: int) -> bytes | None:
    """A message of any kind."""
    row = ROW | {"id": str(n), "name": dice.choice(["ok", 'b "\\\n', "é🧪", None])}
    kinds = [
        message([row]),
        message([row, row | {"k": "b"}, row | {"k": "c"}]),
        message([row], type="DELETE"),
        message([row], [{"name": "was"}]),
        message([row], [{}]),
        message([row], [{"id": "99", "name": None}]),
        message([row, row | {"k": "b"}], [{"name": "x"}, {"k": "old"}]),
        message([row, row | {"k": "b"}], [{"name": "x"}]),
        message([row], [{"surprise": "x"}]),
        message([row], [None]),
        message([row], [{"name": {"a": [1]}}]),
        message([row | {"amount": "x"}]),
        message([row, row | {"amount": "x"}]),
        message([row | {"more": "1"}]),
        message([]),
        message([1]),
        message([row, None]),
        message([row], None, type="UPDATE"),
        message([row], [{"name": "x"}], type="INSERT"),
        message([row], table="other"),
        message([row], table="hidden"),
        message([row], pkNames=None),
        message([row], gtid="0-1-5"),
        message([row], es=None),
        message([row], es=1.5),
        message([row], sql="INSERT"),
        message([row], mysqlType={"id": "int(11)"}),
        message([row], extra={"a": 1}),
        json.dumps(json.loads(message([row])), indent=1).encode(),
        message([{"id": "1", "k": "a"}]),
        message([row]).replace(b'"k":"a"', b'"k":"a","k":"a"'),
        message([row], [{"name": "x"}]).replace(b'[{"name":"x"}]', b'[ {"name" : "x"} ]'),
        message([row], [{"name": "x"}]).replace(b'{"name":"x"}', b'{"name":"x","name":"y"}'),
        message([row], [{"name": "x"}]).replace(b'{"name":"x"}', b'{"name":"x",}'),
        None,
        b"null",
        message([], type="QUERY", table="", database="", sql="INSERT"),
        message([], isDdl=True, type="ALTER", sql="ALTER TABLE orders ADD x int"),
    ]
    return dice.choice(kinds if dice.random() < 0.5 else kinds[:6])


@pytest.mark.full
@pytest.mark.parametrize("seed", range(4))
def test_messages_of_all_kinds(seed: int) -> None:
    dice = random.Random(seed)
    values = [mixed(dice, n) for n in range(400)]
    for options in ({}, {"before_of": "all"}, {"epoch_of_gtid_domain": (("0", 3),)}, {"format": EventFormat.AUTO}):
        found = check(values, **options)
        assert found.by_template > 200, "the way that is compared is taken"


@pytest.mark.full
def test_damaged_messages() -> None:
    dice = random.Random(5)
    good = [
        message([ROW]),
        message([ROW, ROW | {"k": "é"}], [{"name": "x"}, {"id": "2"}]),
        message([ROW], [{"k": "x"}]),
    ]
    check([*good, *mangled(dice, good, 600), *good], before_of="all")
    short = message([{"id": "1"}], [{"id": "2"}], mysqlType={"id": "int(11)"}, sqlType={"id": 4}, pkNames=["id"])
    check([short, *changed_bytes(short), short])


@given(st.lists(st.tuples(TEXTS | st.none(), st.lists(TEXTS | st.none(), max_size=3)), min_size=1, max_size=6))
def test_any_texts(found: list[tuple[str | None, list[str | None]]]) -> None:
    values: list[bytes | None] = []
    for n, (name, more) in enumerate(found):
        row = ROW | {"id": str(n)}
        values.append(message([row | {"name": text} for text in [name, *more]]))
        values.append(message([row], [{"name": name, "k": "ok"}]))
    check(values)


@pytest.mark.first(1)
@pytest.mark.parametrize("database", ["bank", "shop"])
def test_recordings(database: str) -> None:
    """Nearly all rows of the recordings are read by templates."""
    options = DecodeOptions(format=EventFormat.CANAL)
    read = rows = 0
    for chunk in cut(recording(database, "canal"), 1_000):
        equal(chunk, SchemaHistory(), options)
        read += decode(chunk, SchemaHistory(), options).by_template
        rows += sum(b'"data":[' in (value or b"") for value in chunk.values)
    assert read / rows > 0.95


def test_a_wrong_kernel_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: an update of which only old values of the key would tell is taken for one that keeps its key."""
    values: list[bytes | None] = [message([ROW], [{"id": "99"}]) for _ in range(5)]
    assert check(values).by_template == 5
    monkeypatch.setattr(canal.CanalRows, "unchanged", lambda _, olds, *__: olds >= 0)
    with pytest.raises(AssertionError):
        check(values)
