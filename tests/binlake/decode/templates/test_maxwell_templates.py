"""What templates read of Maxwell's messages is what is read one by one: the same rows, and the same faults."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlake.decode.changes import DecodedRecords
from binlake.decode.formats.reader import decode
from binlake.decode.options import DecodeOptions, EventFormat, MaxwellOrder
from binlake.decode.templates import maxwell
from tests.binlake.decode.events import declared
from tests.binlake.decode.formats.format_recordings import history
from tests.binlake.decode.formats.format_recordings import messages as recording
from tests.binlake.decode.mangled import changed_bytes, mangled
from tests.binlake.decode.recordings import cut, records
from tests.binlake.decode.ways import by_name, equal, same

COLUMNS = {
    "id": "int",
    "name": "varchar(50)",
    "amount": "decimal(30,4)",
    "d": "double",
    "f": "float",
    "j": "json",
    "at": "datetime(6)",
    "big": "bigint unsigned",
}
SCHEMA = declared(COLUMNS, ("id",))
KEYLESS = declared(COLUMNS, ())
ROW = (
    '"id":%d,"name":"ok","amount":12.5000,"d":-1.5E7,"f":0.5,"j":{"a":[1,"é"]},"at":"2026-11-21 06:31:00.5",'
    '"big":18446744073709551615'
)
OTHERS = """
    null true false 0 -0 7 -5 1.0 -0.0 1e2 1E-2 1e999 00 NaN 9223372036854775807 9223372036854775808
    12345678901234567890123
    "" "a" "\\"" "\\u00e9" "\\ud83d" "é" "1.5" "true" [] {} [1,2] {"a":1,"a":2} {"a":{"b":[1e5]}} [ ] {"a" : 1}
""".split()  # noqa: SIM905
MEMBERS = [
    "ts",
    "xid",
    "xoffset",
    "commit",
    "position",
    "server_id",
    "gtid",
    "primary_key",
    "query",
    "sql",
    "more",
    "type",
]
MEMBERS += ["table", "database", "primary_key_columns", "old", "data"]
CELLS = st.sampled_from(OTHERS) | st.text(max_size=6).map(json.dumps) | st.integers().map(str)
CELLS |= st.floats(allow_nan=False, allow_infinity=False).map(json.dumps)


def message(row: str, kind: str = "insert", old: str | None = None, **more: str | None) -> bytes:
    """A message of JSON texts; a member with None is left out."""
    head: dict[str, str | None] = {
        "database": '"db"',
        "table": '"t"',
        "type": f'"{kind}"',
        "ts": "1700000000",
        "xid": "5",
    }
    head |= {"commit": "true", "position": '"bin.000007:100"', "server_id": "1", "primary_key": "[1]"}
    head |= {"primary_key_columns": '["id"]', "data": f"{{{row}}}", "old": old}
    members = [f'"{name}":{value}' for name, value in (head | more).items() if value is not None]
    return ("{" + ",".join(members) + "}").encode("utf-8", "surrogatepass")


def check(values: list[bytes | None], schema: Any = SCHEMA, **options: Any) -> DecodedRecords:  # noqa: ANN401
    """The same in all ways; what templates have read is counted."""
    found, chosen = records([None] * len(values), values), DecodeOptions(**{"format": EventFormat.MAXWELL} | options)
    equal(found, schema, chosen)
    return decode(found, schema, chosen)


def mixed(dice: random.Random, n: int) -> bytes | None:
    """A message of any kind."""
    row, member, other = ROW % n, dice.choice(MEMBERS), dice.choice(OTHERS)
    cell = dice.choice([*COLUMNS])
    odd = json.dumps(cell) + ":" + other
    without: dict[str, Any] = {member: None}
    changed: dict[str, Any] = {member: other}
    kinds: list[bytes | None] = [
        message(row, position=f'"bin.000007:{n}"'),
        message(row, "update", '{"name":"was","amount":1.5}', xoffset=str(n), commit=None),
        message(row, "delete"),
        message(row, "bootstrap-insert", position=None, commit=None),
        message(row, "update", '{"id":99}'),
        message(row, "update", '{"name":1,"surprise":2}'),
        message(row, "update", "{}"),
        message(row, "update", "null"),
        message(row, "update"),
        message(row, "insert", '{"name":"x"}'),
        message(row, commit=None),
        message(row, **changed),
        message(row, **without),
        message('"id":1,' + odd if cell != "id" else odd),
        message(f"{row},{odd}"),
        message(row, table='"other"'),
        message(row, table='"hidden"'),
        message(row, xoffset="-1"),
        message(row, xoffset="-1099511627776"),
        message(row, position='"nothing"'),
        message(row, position='"a:b:12"'),
        message(row, position='"a:1234567890123456789"'),
        message(row, gtid='"0-1-5"', server_id=str(n % 3)),
        message(row).replace(b":", b" : "),
        message(row).replace(b'"ts":', b'"ts":1,"ts":'),
        message(row).replace(b'"data":', b'"data":{},"data":'),
        message(row, "update", '{"name":"x","name":"y"}'),
        message("", "bootstrap-complete"),
        None,
        b"null",
        b"[1]",
    ]
    return dice.choice(kinds if dice.random() < 0.5 else kinds[:5])


@pytest.mark.full
@pytest.mark.parametrize("seed", range(2))
def test_messages_of_all_kinds(seed: int) -> None:
    dice = random.Random(seed)
    values = [mixed(dice, n) for n in range(200)]
    for options in (
        {},
        {"before_of": "all"},
        {"epoch_of_gtid_domain": (("0", 3),)},
        {"epoch_of_server": ((1, 3),), "maxwell_order": MaxwellOrder.OFFSET},
        {"format": EventFormat.AUTO},
    ):
        found = check(values, **options)
        assert found.by_template > 60, "the way that is compared is taken"
    unnamed = [value and value.replace(b'"primary_key_columns":["id"],', b"") for value in values]
    check(unnamed, KEYLESS)


def test_damaged_messages() -> None:
    dice = random.Random(5)
    good = [message(ROW % 1), message(ROW % 2, "update", '{"name":"é"}'), message(ROW % 3, "update", '{"id":2}')]
    check([*good, *mangled(dice, good, 300), *good], before_of="all")
    short = message('"id":1', "update", '{"id":2}')
    check([short, *changed_bytes(short), short])


@given(st.lists(st.tuples(st.sampled_from([*COLUMNS]), CELLS), min_size=1, max_size=6))
def test_any_values(found: list[tuple[str, str]]) -> None:
    """Beside what is read by names: pyarrow's reader alone refuses 1.0 in a column of integers in some company only."""
    values: list[bytes | None] = [message(ROW % 1)]
    for name, text in found:
        row = ",".join(
            f'"{column}":{text if column == name else "1" if column == "id" else "null"}' for column in COLUMNS
        )
        values += [message(row), message(row, "update", f'{{"{name}":{text}}}'), message(ROW % 1)]
    read, options = records([None] * len(values), values), DecodeOptions(format=EventFormat.MAXWELL)
    same(decode(read, SCHEMA, options), by_name(read, SCHEMA, options))


@pytest.mark.first(1)
@pytest.mark.parametrize("database", ["bank", "shop"])
def test_recordings(database: str) -> None:
    """Most rows of the recordings are read by templates."""
    options = DecodeOptions(format=EventFormat.MAXWELL)
    schemas = history(database, options)
    read = rows = 0
    for chunk in cut(recording(database, "maxwell"), 1_000):
        equal(chunk, schemas, options)
        read += decode(chunk, schemas, options).by_template
        rows += sum(b'"data":{' in (value or b"") for value in chunk.values)
    assert read / rows > 0.9


def test_a_wrong_kernel_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: an update that changes its key is taken for one that keeps it."""
    values: list[bytes | None] = [message(ROW % 1, "update", '{"id":99}') for _ in range(5)]
    assert check(values).by_template == 5
    monkeypatch.setattr(maxwell.MaxwellRows, "keeps_key", lambda _, read, __: read >= 0)
    with pytest.raises(AssertionError):
        check(values)
