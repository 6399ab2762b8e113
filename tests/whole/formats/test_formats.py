"""One history, written as each connector writes it, gives the same tables: those that the history says."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.hypothesis_profile import scaled
from tests.selection import first
from tests.whole.formats.history import Rows, Statement
from tests.whole.formats.playing import RULES, Played, expected, histories, in_order, play
from tests.whole.formats.render import CANAL, DEBEZIUM, FLAT, MAXWELL, Form

_BY_OFFSET = {"format": "maxwell", "maxwell": {"order": "offset"}}
FORMS: dict[str, Form] = {
    "canal": CANAL,
    "debezium": DEBEZIUM,
    "debezium in three partitions": replace(DEBEZIUM, partitions=3),
    "maxwell": MAXWELL,
    "maxwell that says its nulls": replace(MAXWELL, source={"format": "maxwell", "maxwell": {"output_nulls": True}}),
    "maxwell without key columns": replace(MAXWELL, keys=False),
    "maxwell by offset": replace(MAXWELL, position=False, xoffset=False, source=_BY_OFFSET),
}
#: Forms that do not say all: what differs in the lake is of records in the quarantine.
LACKING: dict[str, Form] = {
    "flat": FLAT,
    "flat in three partitions": replace(FLAT, partitions=3),
    "maxwell without nulls": replace(MAXWELL, nulls=False),
    "maxwell that says it has no nulls": replace(
        MAXWELL, nulls=False, source={"format": "maxwell", "maxwell": {"output_nulls": False}}
    ),
    "maxwell without row numbers": replace(MAXWELL, xoffset=False),
}
SOURCES = ["keyed", "parted", "copied", "global", "keyless", "keyless_parted", "rekeyed", "pairs", "rekeying"]
#: Several partitions have no order among changes at one position, and another key than the connector's needs it.
IN_ORDER = ["rekeyed"]
#: Maxwell writes no TRUNCATE.
EMPTIED = ["emptied", "emptied_keyless"]
OTHERS = ["summed", "partial", "first", "added", "versioned"]
#: Seeds of which ``make test`` takes the first.
SEEDS = range(scaled(24))


def given(form: Form, names: Sequence[str]) -> list[str]:
    """Those of the tables that a form gives whole."""
    return [name for name in names if form.partitions == 1 or name not in IN_ORDER]


def check(
    place: Path, seed: int, form: Form, names: Sequence[str], transactions: int, *, any_order: bool = False
) -> Played:
    dice = random.Random(seed)
    made = histories(dice, names, transactions)
    events = in_order(made, dice)
    played = play(place, form, events, names, random.Random(seed), any_order=any_order)
    quarantined = _ids(played, events)
    for name, (columns, rows) in expected(made).items():
        shown = played.rows(name, columns)
        differing = (shown - rows) + (rows - shown)
        if not quarantined:
            assert shown == rows, f"{name}, seed {seed}"
        elif name in SOURCES:
            surprising = [row for row in differing if dict(eval(row))["id"] not in quarantined]
            assert not surprising, f"{name}, seed {seed}: rows that no quarantined record has"
    return played


def _ids(played: Played, events: Sequence[Rows | Statement]) -> set[int]:
    """The values of ``id`` before and after each quarantined change."""
    by_place = {event.position: event for event in events if isinstance(event, Rows)}
    found = set()
    for value, _, _ in played.quarantined:
        message = json.loads(value or b"{}")
        position = message.get("__source_pos") or message.get("source", {}).get("pos")
        position = position or int(message["position"].rpartition(":")[2])
        found |= {row["id"] for pair in by_place[position].rows for row in pair if row is not None}
    return found


@pytest.mark.parametrize("seed", first(1, SEEDS))
@pytest.mark.parametrize("name", FORMS)
def test_tables_of_the_source(tmp_path: Path, name: str, seed: int) -> None:
    assert check(tmp_path, seed, FORMS[name], given(FORMS[name], SOURCES), 8).quarantined == []


@pytest.mark.parametrize("seed", first(1, SEEDS))
@pytest.mark.parametrize("name", FORMS)
def test_tables_that_are_made_of_changes(tmp_path: Path, name: str, seed: int) -> None:
    assert check(tmp_path, seed, FORMS[name], OTHERS, 8).quarantined == []


@pytest.mark.parametrize("seed", first(1, SEEDS))
@pytest.mark.parametrize("name", ["canal", "debezium"])
def test_tables_that_are_emptied(tmp_path: Path, name: str, seed: int) -> None:
    assert check(tmp_path, seed, FORMS[name], EMPTIED, 14).quarantined == []


@pytest.mark.parametrize("seed", first(1, SEEDS))
@pytest.mark.parametrize("name", LACKING)
def test_what_a_form_does_not_say_is_quarantined(tmp_path: Path, name: str, seed: int) -> None:
    played = check(tmp_path, seed, LACKING[name], given(LACKING[name], SOURCES), 8)
    assert {reason for _, reason, _ in played.quarantined} <= {"missing_image", "no_position"}


@pytest.mark.parametrize("seed", first(1, SEEDS))
@pytest.mark.parametrize("name", ["debezium", "debezium in three partitions"])
@pytest.mark.parametrize("tables", [SOURCES, OTHERS], ids=["of the source", "made of changes"])
def test_hours_in_any_order(tmp_path: Path, tables: list[str], name: str, seed: int) -> None:
    """What tables that count facts cannot take out of turn comes back from the quarantine, though no stream has run.
    The statements are apart from the rows, and read before."""
    form = FORMS[name]
    assert check(tmp_path, seed, form, given(form, tables), 8, any_order=True).quarantined == []


def test_control_every_table_is_of_a_test() -> None:
    assert {*SOURCES, *OTHERS, *EMPTIED} == {*RULES}
