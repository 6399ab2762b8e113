"""Our server beside recorded answers of real metastores, and controls: what differs is seen."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.lakemetastore.judged.allowed import ALLOWED
from tests.lakemetastore.judged.beside import difference
from tests.lakemetastore.judged.normal import Normal
from tests.lakemetastore.judged.ours import differences, our_server
from tests.lakemetastore.judged.plain import CLASS, Plain
from tests.lakemetastore.judged.recorded import SEED, Recorded, path_of, read
from tests.lakemetastore.judged.scripts.all import calls_of, scripts_of
from tests.paths import ROOT

CASES = [(release, script) for release in ("3.1.3", "4.0.1") for script in scripts_of(release)]


@pytest.mark.first(2)
@pytest.mark.parametrize(("release", "script"), CASES)
def test_our_answers_are_those_of_a_real_metastore(release: str, script: str, tmp_path: Path) -> None:
    with our_server(tmp_path) as ours:
        found = [one for one in differences(ours, read(path_of(release, script))) if not one.allowed]
    assert not found, "\n".join(map(str, found))


@pytest.mark.parametrize(("release", "script"), CASES)
def test_recorded_calls_are_those_of_the_script(release: str, script: str) -> None:
    assert [one.made for one in read(path_of(release, script))] == calls_of(script, SEED)


@pytest.mark.full
def test_every_allowed_difference_occurs_and_is_documented(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "metastore-differences.md").read_text()
    assert [rule.name for rule in ALLOWED if f"**{rule.name}**" not in page] == []
    recorded = [one for release, script in CASES for one in read(path_of(release, script))]
    with our_server(tmp_path) as ours:
        seen = {one.allowed.name for one in differences(ours, recorded) if one.allowed}
    assert seen == {rule.name for rule in ALLOWED}


def _changed_leaves(value: Plain) -> list[Plain]:
    """Copies of an answer with one leaf changed, or one member left out."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1]
    if isinstance(value, str):
        return [f"{value}x"]
    if isinstance(value, list):
        changed = [[*value[:at], new, *value[at + 1 :]] for at, one in enumerate(value) for new in _changed_leaves(one)]
        return [*changed, *([value[1:]] if value else [[None]])]
    if isinstance(value, dict):
        keys = [key for key in value if key != CLASS]
        return [value | {key: new} for key in keys for new in _changed_leaves(value[key])]
    return []


@pytest.mark.parametrize("method", ["get_table", "get_partitions_by_filter", "get_all_tables", "get_databases"])
def test_a_changed_answer_is_seen(method: str) -> None:
    """The control: each leaf of a recorded answer is changed once; none of it passes for the same."""
    normal = Normal("/nowhere/else")
    every = [one for release, script in CASES for one in read(path_of(release, script))]
    answered = [one for one in every if one.made.method == method and one.came.answer]
    chosen = sorted(answered, key=lambda one: len(str(one.came.answer)))[:3]
    assert chosen
    for one in chosen:
        changed = [msgspec.structs.replace(one.came, answer=new) for new in _changed_leaves(one.came.answer)]
        assert changed
        assert [str(new) for new in changed if not _seen(normal, one, new)] == []


def _seen(normal: Normal, one: Recorded, new: object) -> bool:
    found = difference(one.made, one.came, normal.outcome(msgspec.convert(new, type(one.came), from_attributes=True)))
    return found is not None and found.allowed is None


def test_a_changed_error_is_seen() -> None:
    every = [one for one in read(path_of("3.1.3", "databases")) if one.came.error == "NoSuchObjectException"]
    assert every
    for one in every:
        other = msgspec.structs.replace(one.came, error="MetaException")
        words = msgspec.structs.replace(one.came, text=f"{one.came.text} ")
        for changed in (other, words, msgspec.structs.replace(one.came, error=None, text=None)):
            found = difference(one.made, one.came, changed)
            assert found
            assert found.allowed is None
