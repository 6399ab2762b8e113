"""What templates read is what the general decoder reads: the same rows, in the same order, and the same faults."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlake.decode.changes import DecodedRecords
from binlake.decode.options import DecodeOptions
from binlake.decode.templates import cells, scan
from binlake.decode.templates.template import template_of
from binlake.decode.templates.text_kernel import gather
from tests.binlake.decode.events import declared, envelope, raw_envelope, source
from tests.binlake.decode.mangled import changed_bytes, mangled
from tests.binlake.decode.recordings import history_of, options_of, records, topics
from tests.binlake.decode.ways import equal
from tests.selection import first

COLUMNS = {
    "id": "bigint",
    "small": "int",
    "flag": "boolean",
    "name": "varchar(50)",
    "f": "float",
    "d": "double",
    "amount": "decimal(10,2)",
    "at": "datetime(6)",
    "stamp": "timestamp",
    "day": "date",
    "shape": "point",
}
SCHEMA = declared(COLUMNS, ("id",))
ROW: dict[str, object] = {
    "id": 1,
    "small": -7,
    "flag": 1,
    "name": "ok",
    "f": 0.5,
    "d": 1.25,
    "amount": "AZA=",
    "at": 1_760_000_000_000_000,
    "stamp": "2025-10-09T08:00:00Z",
    "day": 20_000,
    "shape": None,
}
VALUES = """
    0 -0 7 -5 00 01 - + +1 1. .5 1.0 -0.0 1e2 1E+2 1e-2 1e 1e+ 1e999 0x1 1_0 1a NaN Infinity
    null true false nul nulll tru falsy {} [] [1] '' 123456789012345678 999999999999999999
    1000000000000000000 9223372036854775807 9223372036854775808 -9223372036854775808 2147483648
    0.1 3.4028236e38 16777217 16777217.0 9007199254740993 9007199254740993.0 179769313486231580793e289
    2.2250738585072011e-308 5e-324 1.00000017881393432617187499 4.9406564584124654e-324
    "1" "" "\\n" "\\\\" "\\"" "\\u00e9" "\\u00E9" "\\u00g9" "\\ud83d\\ude00"
    "\\ud83d" "\\udc00" "\\ud83d\\ud83d" "\\ud83dx" "\\x" "\\u12" "\\
    "é" "🧪" "AZA=" "A*A=" "2025-10-09T08:00:00Z" " 5, 5,"id":2 "a","b":1 {"x":1,"y":2,"wkb":"AQ==","srid":null}
""".split()  # noqa: SIM905
VALUES += ['" "', '"\x7f"', '"\x01"', '"\t"', "5 ", " 5", '"a" ,"b":1']
Images = list[bytes | None]


def check(values: Images, keys: Images | None = None, **options: Any) -> DecodedRecords:  # noqa: ANN401 - of DecodeOptions
    found = records(keys or [None] * len(values), values)
    return equal(found, SCHEMA, DecodeOptions(**options))


def share(values: Images) -> float:
    """How many of the messages templates read."""
    there = [value for value in values if value is not None]
    found = scan.scan_envelopes(there, range(len(there)), traced=False, max_nesting=64)
    return 0.0 if found is None else len(found.rows) / len(there)


def message(n: int, **more: object) -> bytes:
    return envelope(ROW | {"id": n} | more, pos=100 + n)


@pytest.mark.full
@pytest.mark.parametrize(("database", "variant"), [("bank", "plain"), ("bank", "schema"), ("shop", "plain")])
def test_recordings(database: str, variant: str) -> None:
    options = options_of(variant, before_of="all")
    history = history_of(database, variant)
    for topic, partitions in topics(database, variant).items():
        for part in partitions.values() if not topic.startswith("_history") else ():
            equal(part, history, options)


def test_most_of_a_recording_is_read_by_templates() -> None:
    values = [v for parts in topics("bank", "plain").values() for part in parts.values() for v in part.values if v]
    events = [v for v in values if b'"op":' in v and b"[" not in v]
    by_table: dict[bytes, Images] = {}
    for value in events:
        by_table.setdefault(value.split(b'"table":')[1].split(b",")[0], []).append(value)
    shares = {table: share(found) for table, found in by_table.items() if len(found) > 100}
    assert shares
    assert min(shares.values()) > 0.95, shares


@pytest.mark.full
@pytest.mark.parametrize("column", first(5, [name for name in COLUMNS if name != "id"]))
def test_every_value_in_every_column(column: str) -> None:
    """Also such as are no JSON, and alone among good ones of both kinds."""
    row = json.dumps(ROW | {column: "@"}, separators=(",", ":")).encode()
    odd: Images = [raw_envelope(row.replace(b'"@"', text.encode("utf-8", "surrogatepass"))) for text in VALUES]
    found = check([message(1), *odd, message(2)])
    for value in odd:
        check([message(1), value, message(2)])
    rows = sum(batch.rows.num_rows for batch in found.changes)
    assert 2 < rows < len(odd), "some are good and some are bad"


def test_every_changed_byte_is_told_alike() -> None:
    update = envelope({"id": 1, "name": "a"}, {"id": 1, "name": "b"}, op="u")
    for good in (envelope({"id": 1, "name": "ok", "d": 1.5}), update, update.replace(b'"op":"u"', b'"op":"d"')):
        changed = list(changed_bytes(good))
        check([good, *changed, good], before_of="all")


@pytest.mark.first(2)
@pytest.mark.parametrize("seed", range(4))
def test_mangled_messages_are_told_alike(seed: int) -> None:
    dice = random.Random(seed)
    good = [message(1), envelope(None, {"id": 2, "name": "x"}, "d"), envelope({"id": 3}, {"id": 3, "name": ""}, "u")]
    values: Images = []
    for value in mangled(dice, good, 600):
        values += [value, dice.choice(good)]
    check(values, before_of="all")
    check(values, epoch_of_server=((1, 3),))


def test_all_kinds_of_messages_mixed() -> None:
    dice = random.Random(5)
    row, other = ROW | {"name": "a"}, ROW | {"name": 'b "\\\n'}
    kinds: list[Callable[[int], bytes | None]] = [
        lambda n: envelope(row, pos=n),
        lambda n: envelope(row, pos=n, op="r", ts_ms=1_700_000_000_000 + n),
        lambda n: envelope(other, row, op="u", pos=n),
        lambda n: envelope(None, row, op="d", pos=n),
        lambda n: envelope(None, None, op="d", pos=n),
        lambda n: envelope(row, row, op="d", pos=n),
        lambda n: envelope(row, op="m", pos=n),
        lambda n: envelope(None, None, op="t", pos=n),
        lambda n: envelope(row, pos=n, file="bin.000008", row=3),
        lambda n: envelope(row, pos=n, file="snäp.000008"),
        lambda n: envelope(row, pos=n, gtid=None, server_id=n % 3),
        lambda n: envelope(row, pos=n, table="other"),
        lambda n: envelope({"id": n, "name": "short"}, pos=n),
        lambda n: envelope({"id": n, "surprise": 1}, pos=n),
        lambda n: envelope(dict(reversed(row.items())), pos=n),
        lambda n: json.dumps(json.loads(envelope(row, pos=n)), indent=1).encode(),
        lambda n: json.dumps({"op": "c", "after": row, "source": source(n)}).encode(),
        lambda _: None,
        lambda _: b'{"ts_ms":1}',
    ]
    for weights in ([8, *[1] * (len(kinds) - 1)], [1] * len(kinds), [30, 0, 0, *[1] * (len(kinds) - 3)]):
        chosen = dice.choices(kinds, weights, k=400)
        keys: Images = [b'{"id":%d}' % n for n in range(len(chosen))]
        check([kind(n) for n, kind in enumerate(chosen, 5)], keys, before_of="all")


TEXTS = st.text() | st.text(alphabet='"\\\n\té🧪ab/', max_size=8)
NUMBERS = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9)


@given(st.lists(st.tuples(TEXTS | st.none(), NUMBERS, NUMBERS, st.booleans()), min_size=1, max_size=8))
def test_any_values(found: list[tuple[str | None, float, float, bool]]) -> None:
    values: Images = [
        json.dumps(
            {"before": None, "after": ROW | {"id": n, "name": name, "d": d, "f": f}, "source": source(n), "op": "c"},
            separators=(",", ":"),
            ensure_ascii=ascii_only,
        ).encode("utf-8", "surrogatepass")
        for n, (name, d, f, ascii_only) in enumerate(found)
    ]
    check(values)


def test_a_wrong_kernel_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of all of the above."""

    def careless(*arrays: Any) -> None:  # noqa: ANN401 - as the kernel's
        gather(*arrays)
        arrays[-1][-1:] ^= 1  # a letter of the last text

    values: Images = [message(n) for n in range(5)]
    check(values)
    monkeypatch.setattr(cells, "gather", careless)
    with pytest.raises(AssertionError):
        check(values)


def test_what_is_read_by_templates() -> None:
    both = [message(1), envelope(None, {"id": 2, "name": "x"}, "d"), envelope({"id": 3}, {"id": 3}, "u")]
    assert share([*both * 50]) == 1
    assert share([message(n, name='"\\\n') for n in range(9)]) == 1
    assert share([envelope({"id": n}, {"id": n, "name": "é\n"}, "u") for n in range(9)]) == 1
    assert share([message(n, shape={"wkb": "AQ=="}) for n in range(9)]) == 1
    assert share([message(n, shape=[{"a": [n]}, {}, []]) for n in range(9)]) == 1
    assert share([b'{"id":1,"__op":"u"}'] * 9) == 0
    assert share([message(1), message(2)[:-1], message(3)]) == pytest.approx(2 / 3)


def test_a_template_is_learned_once_for_all_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that looks like those of a kept template and is written otherwise gets one of its own."""
    learned: list[bytes] = []

    def counting(text: bytes, *further: Any) -> Any:  # noqa: ANN401 - as the function's
        learned.append(text)
        return template_of(text, *further)

    monkeypatch.setattr(scan, "template_of", counting)
    monkeypatch.setattr(scan, "_kept", {})
    both = [message(1), envelope(None, {"id": 2, "name": "x"}, "d")]
    for _ in range(3):
        assert share([*both * 5]) == 1
    assert len(learned) == 2
    spaced = [json.dumps(json.loads(one), separators=(", ", ":")).encode() for one in both]
    for values in (spaced, both, [*spaced, *both], [*both, *spaced], [both[0], spaced[0], both[1], spaced[1]]):
        assert share([*values * 5]) == 1
        check([*values])
    assert share([message(1, new=1), message(2, new=None)]) == 1


def test_the_first_message_of_a_chunk_is_as_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether its template is kept or not, and what its values are."""
    row = json.dumps(ROW | {"name": "@"}, separators=(",", ":")).encode()
    deep = "[" * 70 + "]" * 70
    for text in (*VALUES, deep):
        odd = raw_envelope(row.replace(b'"@"', text.encode("utf-8", "surrogatepass")))
        check([message(1)])
        check([odd, message(2)])
        monkeypatch.setattr(scan, "_kept", {})
        check([odd, message(2)])


@pytest.mark.full
def test_without_a_place_for_compiled_code(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "file" / "below")}
    done = subprocess.run(
        [sys.executable, "-c", "import binlake.decode.templates.scan"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
