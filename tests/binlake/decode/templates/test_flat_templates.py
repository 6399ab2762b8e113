"""What templates read of flat messages is what is read one by one: the same rows, in order, and the same faults."""

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
from binlake.decode.templates import flat
from tests.binlake.decode.events import declared
from tests.binlake.decode.mangled import changed_bytes, mangled
from tests.binlake.decode.recordings import cut, history_of, options_of, records, topics
from tests.binlake.decode.ways import equal

COLUMNS = {"id": "bigint", "name": "varchar(50)", "n": "int", "d": "double", "amount": "decimal(10,2)", "j": "json"}
SCHEMA = declared(COLUMNS, ("id",))
#: A column that is named like an added field.
ODD_SCHEMA = declared(COLUMNS | {"__more": "varchar(9)", "__source_file": "varchar(20)"}, ("id",))
ROW: dict[str, object] = {"id": 1, "name": "ok", "n": -7, "d": 1.25, "amount": "AZA=", "j": '{"a": 1}'}
ADDED: dict[str, object] = {
    "__deleted": "false",
    "__op": "u",
    "__source_db": "db",
    "__source_table": "t",
    "__source_file": "bin.000007",
    "__source_pos": 100,
    "__source_row": 0,
    "__source_ts_ms": 1_700_000_000_000,
}
VALUES: list[Any] = [
    None,
    "",
    "é🧪",
    'a"\\\n',
    0,
    -1,
    2**31,
    2**63,
    1.5,
    1e300,
    True,
    False,
    "true",
    "d",
    [],
    {},
    {"a": [1]},
]
CELLS = st.sampled_from(VALUES) | st.text(max_size=6) | st.integers() | st.floats(allow_nan=False, allow_infinity=False)


def message(row: dict[str, Any], **more: object) -> bytes:
    text = json.dumps(row | more, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def check(values: list[bytes | None], schema: Any = SCHEMA, **options: Any) -> DecodedRecords:  # noqa: ANN401
    """The same in all ways; what templates have read is counted."""
    found, chosen = records([None] * len(values), values), DecodeOptions(**options)
    equal(found, schema, chosen)
    return decode(found, schema, chosen)


def mixed(dice: random.Random, n: int) -> bytes | None:
    """A message of any kind."""
    whole = ROW | {"id": n} | ADDED
    name, value = dice.choice([*whole, "more", "__more", "__source_gtid", "__op", "__deleted"]), dice.choice(VALUES)
    kinds: list[bytes | None] = [
        message(whole, name=dice.choice(["a", "é", None])),
        message(whole, __deleted="true"),
        message(whole | {name: value}),
        message({key: held for key, held in whole.items() if key != name}),
        message(dict(dice.sample([*whole.items()], len(whole)))),
        json.dumps(whole).encode(),
        message(whole).replace(b'"name":"ok"', b'"name":"ok","name":"b"'),
        message(whole).replace(b'"__op":"u"', b'"__op":"u","__op":"d"'),
        message(whole, __pos=5),
        message(whole, status="BEGIN", event_count=1),
        message(
            {"before": None, "after": ROW, "op": "c", "source": {"db": "db", "table": "t", "file": "f.1", "pos": n}}
        ),
        None,
        b"null",
        b'{"ts_ms":1}',
    ]
    return dice.choice(kinds if dice.random() < 0.5 else kinds[:2])


@pytest.mark.full
@pytest.mark.parametrize("seed", range(2))
def test_messages_of_all_kinds(seed: int) -> None:
    dice = random.Random(seed)
    values = [mixed(dice, n) for n in range(200)]
    for options in (
        {},
        {"epoch_of_server": ((1, 3),)},
        {"flat_tombstone_deletes": True},
        {"format": EventFormat.DEBEZIUM},
    ):
        found = check(values, **options)
        assert found.by_template > 60, "the way that is compared is taken"
    check(values, ODD_SCHEMA)
    check(values, flat_prefix="_")


def test_damaged_messages() -> None:
    dice = random.Random(5)
    good = [message(ROW | ADDED), message(ROW | ADDED, __deleted="true"), message({"id": 2} | ADDED)]
    check([*good, *mangled(dice, good, 300), *good])
    short = message({"id": 1, "__op": "c", "__pos": 5, "__file": "b.1"})
    check([short, *changed_bytes(short), short])


@given(st.lists(st.tuples(st.sampled_from([*ROW, *ADDED, "x", "__x"]), CELLS), min_size=1, max_size=6))
def test_any_values(found: list[tuple[str, Any]]) -> None:
    values: list[bytes | None] = [message(ROW | ADDED)]
    for name, value in found:
        values += [message(ROW | ADDED | {name: value}), message(ROW | ADDED)]
    check(values)
    check(values, ODD_SCHEMA)


def test_a_bad_value_is_told_whatever_the_first_message_adds() -> None:
    """A member that the connector adds to some messages only is no new column."""
    placeless = {name: value for name, value in (ROW | ADDED).items() if name != "__source_pos"}
    found = check([message(placeless), message(ROW | ADDED), message(ROW | ADDED, amount="")])
    assert [refused.reason for refused in found.quarantined] == ["bad_value"]
    assert found.unknown_columns == {}


def test_recordings() -> None:
    """Most rows of the recording are read by templates."""
    options, history = options_of("flat"), history_of("shop", "flat")
    read = rows = 0
    for topic, partitions in topics("shop", "flat").items():
        for part in partitions.values() if not topic.startswith("_history") else ():
            for chunk in cut(part, 1_000):
                equal(chunk, history, options)
                read += decode(chunk, history, options).by_template
                rows += sum(b'"__deleted":' in (value or b"") for value in chunk.values)
    assert read / rows > 0.9


def test_a_wrong_kernel_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a position of any kind is taken for a number."""
    values: list[bytes | None] = [message(ROW | ADDED), message(ROW | ADDED, __source_pos="100")]
    assert check(values).by_template == 1
    monkeypatch.setattr(flat, "_sound", lambda reading: reading.known)
    with pytest.raises(AssertionError):
        check(values)
