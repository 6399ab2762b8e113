"""Each legal form of a value: all ways of reading give the same cells, and none of them costs Python calls a row."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from bench.form_cases import Case
from bench.form_messages import FORMATS, Messages, cases, messages
from binlake.decode import slices
from binlake.decode.changes import RawRecords
from binlake.decode.templates import cells as objects
from tests.binlake.decode.mangled import mangled
from tests.binlake.decode.templates.test_templates import VALUES
from tests.binlake.decode.ways import by_name, equal
from tests.counting import calls_an_item

JSON_FORMATS = [form for form in FORMATS if form != "avro"]
MORE_VALUES = """
    [] [1,"a"] ["a","b"] [null] ["a",] [[] {"a":1} {"a":1,} {"a":1]} {"a":} {"a"} {1:2} {"wkb":"AQ==","srid":1}
    {"wkb":"AQ==","wkb":"AQ=="} {"wkb":"AQ==","more":1} {"wkb":null} {"wkb":1} {"srid":1e999,"wkb":"AQ=="}
    {"x":1e999,"wkb":"AQ=="} {"wkb":"\\u0041Q=="} {"wkb":"AQ==","srid":-1} {"a":{"b":[1,{}]}} {"a":"}"} {"a":"\\""}
    {"a":NaN} {"a":"\\ud800"} 18446744073709551615 18446744073709551616 -9223372036854775807 9223372036854775806
    1e45 1e46 1E-30 0E-80 1E-31 0.000000000000000000000000000001 "12.5" "1E2" "0x10" "AQI=" "AQ-_" "AQ+/" "00ff" "2" "3"
    "new" "a,b" "a\\\\,b" "2026-11-21" "0000-00-00" "06:31:00" "2026-11-21 06:31:00.5" "2026-11-21T06:31:00Z"
    "2026-11-21Z" "\\u00e9" "\\ud83e\\udde0" "é" "\\b\\f\\n\\r\\t\\/" "POINT(1-2)" "POINT(1)"
""".split()  # noqa: SIM905
SPACED = [
    '{ "wkb" : "AQ==" , "srid" : 2 }',
    '{"a": [1, 2]}',
    '[ "a" , "b" ]',
    '{"wkb":"AQ==",\n"srid":2}',
    '"POINT (1 2)"',
]
DEEP = ["[" * n + "]" * n for n in (16, 60, 61, 70)]
ODD = [*VALUES, *MORE_VALUES, *SPACED, *DEEP]


def in_turns(formats: Iterable[str]) -> list[Any]:
    """The cases of formats: ``make test`` takes each case in one format, ``make test-rest`` in the others."""
    each = [(form, case) for form in formats for case in cases(form)]
    forms: dict[str, list[str]] = {}
    for form, case in each:
        forms.setdefault(case.name, []).append(form)
    turn = {name: having[number % len(having)] for number, (name, having) in enumerate(forms.items())}
    marks = [() if turn[case.name] == form else pytest.mark.full for form, case in each]
    return [
        pytest.param(form, case, id=f"{form} {case.name}", marks=mark)
        for (form, case), mark in zip(each, marks, strict=True)
    ]


def with_values(made: Messages, values: list[bytes | None]) -> RawRecords:
    count = len(values)
    return dataclasses.replace(
        made.records,
        offsets=np.arange(count),
        timestamps_ms=np.zeros(count, dtype=np.int64),
        keys=[b'{"id":%d}' % i for i in range(count)],
        values=values,
    )


@pytest.mark.first(44)
@pytest.mark.parametrize(("form", "case"), in_turns(JSON_FORMATS))
def test_good_values(form: str, case: Case) -> None:
    made = messages(form, case, 60)
    found = equal(made.records, made.schemas, dataclasses.replace(made.options, before_of="all"))
    assert sum(batch.rows.num_rows for batch in found.changes) == 60


@pytest.mark.full
@pytest.mark.parametrize(("form", "case"), in_turns(JSON_FORMATS))
def test_every_other_value(form: str, case: Case) -> None:
    """Alone in its message, beside good values and among good messages."""
    made = messages(form, dataclasses.replace(case, value=lambda _: "@"), 1)
    (good,) = messages(form, case, 1).records.values
    (odd,) = made.records.values
    assert odd is not None
    assert good is not None
    texts = [odd.replace(b'"@"', text.encode("utf-8", "surrogatepass")) for text in ODD]
    only_one = [odd.replace(b'"@"', text.encode("utf-8", "surrogatepass"), 1) for text in ODD]
    rest = [one.replace(b'"@"', b"null") for one in only_one]
    values: list[bytes | None] = [good, *texts, *rest, good]
    found = equal(with_values(made, values), made.schemas, made.options)
    count = sum(batch.rows.num_rows for batch in found.changes)
    assert 2 < count < len(values), "some are good and some are bad"


@pytest.mark.first(1)
@pytest.mark.parametrize("form", JSON_FORMATS)
def test_mangled_messages(form: str) -> None:
    dice = random.Random(7)
    for case in dice.sample(cases(form), 8):
        made = messages(form, case, 6)
        good = [value for value in made.records.values if value is not None]
        values = [*good, *mangled(dice, good, 150), *good]
        equal(with_values(made, values), made.schemas, made.options)


def test_members_in_any_order_and_twice() -> None:
    made = messages("flat", cases("flat")[0], 40)
    dice = random.Random(3)
    values: list[bytes | None] = []
    for value in made.records.values:
        members = list(json.loads(value or b"").items())
        dice.shuffle(members)
        text = ",".join(f"{json.dumps(name)}:{json.dumps(item)}" for name, item in members)
        twice = f'"{dice.choice(members)[0]}":1'
        values += [f"{{{text}}}".encode(), f"{{{text},{twice}}}".encode(), f"{{ {text} }}".encode(), b"{}"]
    found = equal(with_values(made, values), made.schemas, made.options)
    assert found.quarantined
    assert sum(batch.rows.num_rows for batch in found.changes) >= 80


#: Calls from Python for each message more. Measured: envelopes 0.01, Canal 0.02, with a schema 1, unwrapped 14, Avro 15
#: (its floats are looked at one by one: 133 at most), and Maxwell 27 (35 for an update).
MOST_CALLS = {"plain": 0.1, "schema": 1.2, "flat": 15.0, "avro": 16.0, "canal": 0.1, "maxwell": 28.0}
MOST_OF_FLOATS, MOST_OF_UPDATES = 140.0, 36.0
#: Sets of members that are too many for templates: 1 measured.
MOST_OF_SETS = 2.0
FEW, MANY = 400, 1_200


def calls_a_message(form: str, case: Case, decoded: Callable[[Messages], int] = Messages.decode) -> float:
    """What messages more cost: what a chunk costs anyhow falls out."""
    made = {count: messages(form, case, count) for count in (FEW, MANY)}
    for some in made.values():
        assert decoded(some) == len(some.records)
    return calls_an_item(lambda count: decoded(made[count]), FEW, MANY)


def bound(form: str, case: Case) -> float:
    if form == "avro" and (case.connect or {})["type"] in ("float", "double", "struct"):
        return MOST_OF_FLOATS
    if form == "maxwell" and case.update:
        return MOST_OF_UPDATES
    if form in ("plain", "canal") and any(word in case.form for word in ("half are absent", "noblob", "minimal")):
        return MOST_OF_SETS
    return MOST_CALLS[form]


@pytest.mark.first(30)
@pytest.mark.parametrize(("form", "case"), in_turns(FORMATS))
def test_calls_a_message(form: str, case: Case) -> None:
    assert calls_a_message(form, case) <= bound(form, case)


BOOLEANS = next(case for case in cases("plain") if case.name == "tinyint(1): boolean or null")


@pytest.mark.parametrize("form", ["plain", "flat"])
def test_a_form_that_is_read_one_by_one_is_noticed(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: without the forms of a column, booleans are left to the reader, which takes them one by one."""
    assert calls_a_message(form, BOOLEANS) <= bound(form, BOOLEANS)

    def none_read(*_: Any) -> tuple[Any, list[Any]]:  # noqa: ANN401 - as read_images
        return np.empty(0, dtype=np.int64), []

    monkeypatch.setattr(objects, "read_images", none_read)
    monkeypatch.setattr(slices.Slices, "read", none_read)
    assert calls_a_message(form, BOOLEANS) > bound(form, BOOLEANS)


def test_cells_of_a_wrong_kind_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of the comparison: a false that is taken for true."""
    made = messages("flat", BOOLEANS, 20)
    equal(made.records, made.schemas, made.options)
    read = objects.read_images

    def careless(images: Any, *more: Any) -> Any:  # noqa: ANN401 - as read_images
        return read([bytes(image).replace(b"false,", b"true ,") for image in images], *more)

    monkeypatch.setattr(objects, "read_images", careless)
    changed = by_name(made.records, made.schemas, made.options)
    monkeypatch.undo()
    whole = by_name(made.records, made.schemas, made.options)
    assert not changed.changes[0].rows.equals(whole.changes[0].rows)
