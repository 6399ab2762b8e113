"""Rules lead from names that clients see to databases of backends, and back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from lakemetastore.router.rules import Place, Rules
from lakemetastore.settings.router import RouterSettings


def rules(*entries: dict[str, Any], **backends: dict[str, Any]) -> Rules:
    given_backends = backends or {"lake": {}, "old": {"uri": "thrift://old:9083"}}
    return Rules(RouterSettings.model_validate({"backends": given_backends, "primary": "lake", "rules": entries}))


def where(found: Place | None) -> tuple[str, str] | None:
    return None if found is None else (found.backend, found.name)


def test_the_first_rule_that_matches_counts() -> None:
    table = rules({"match": "ods_*", "to": "lake"}, {"match": "*", "to": "old"})
    assert where(table.place("ods_shop")) == ("lake", "ods_shop")
    assert where(table.place("shop")) == ("old", "shop")
    assert table.seen_as("old", "ods_shop") is None
    assert table.seen_as("lake", "shop") is None


def test_names_are_renamed_in_both_directions() -> None:
    table = rules(
        {"match": "raw_*", "to": "old", "as": "old_*"}, {"match": "*", "to": "old"}, {"match": "*", "to": "lake"}
    )
    assert where(table.place("old_a")) == ("old", "raw_a")
    seen = table.seen_as("old", "RAW_A")
    assert seen is not None
    assert seen.seen == "old_a"
    assert where(table.place("raw_a")) == ("lake", "raw_a"), "the old one has another name, so the name is the lake's"


def test_a_clash_is_told_with_both_sides_and_the_winner() -> None:
    table = rules({"match": "*", "to": "lake"}, {"match": "*", "to": "old"})
    [clash] = table.clashes({"lake": ["default", "a"], "old": ["default"]})
    assert str(clash) == "Database default leads to default of lake, which hides default of old"
    renamed = rules({"match": "default", "to": "old", "as": "old_default"}, {"match": "*", "to": "lake"})
    assert renamed.clashes({"lake": ["default"], "old": ["default"]}) == []


def test_read_only_is_of_a_rule_or_of_a_backend() -> None:
    table = rules(
        {"match": "a*", "to": "lake", "read_only": True},
        {"match": "b*", "to": "lake"},
        {"match": "*", "to": "old"},
        lake={},
        old={"uri": "thrift://old:9083", "read_only": True},
    )
    found = [table.place(name) for name in ("a1", "b1", "c1")]
    assert [place and place.read_only for place in found] == [True, False, True]


NAMES = st.text(alphabet="ab_", min_size=1, max_size=4)
GLOBS = st.one_of(NAMES, st.tuples(NAMES, NAMES).map("*".join), st.just("*"), NAMES.map("{}*".format))


@st.composite
def entries(draw: st.DrawFn) -> dict[str, Any]:
    match = draw(GLOBS)
    entry = {"match": match, "to": draw(st.sampled_from(("lake", "old")))}
    if draw(st.booleans()):
        entry["as"] = draw(GLOBS.filter(lambda glob: ("*" in glob) == ("*" in match)))
    return entry


@given(st.lists(entries(), min_size=1, max_size=4), NAMES)
def test_there_and_back_is_the_same_name(entry_list: list[dict[str, Any]], name: str) -> None:
    table = rules(*entry_list)
    if place := table.place(name):
        assert place.seen == name
        assert table.seen_as(place.backend, place.name) == place
    for backend in ("lake", "old"):
        if seen := table.seen_as(backend, name):
            assert table.place(seen.seen) == seen
            assert seen.name == name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rules": [{"match": "A*", "to": "lake"}]}, "lower case"),
        ({"rules": [{"match": "a*b*", "to": "lake"}]}, "one \\*"),
        ({"rules": [{"match": "a", "to": "other"}]}, "there is no backend other; backends are lake, old"),
        ({"rules": [{"match": "a", "to": "lake", "as": "b*"}]}, "match and as must both have"),
        ({"primary": "none"}, "there is no backend none"),
        ({"backends": {"lake": {}, "old": {}}}, "only one backend may be the service's own"),
        ({"backends": {"lake": {}, "old": {"uri": "old:9083"}}}, "addresses like thrift://host:9083"),
    ],
)
def test_mistakes_in_the_settings_are_told(change: dict[str, Any], message: str) -> None:
    good = {
        "backends": {"lake": {}, "old": {"uri": "thrift://a:9083, thrift://b:9083"}},
        "primary": "lake",
        "rules": [{"match": "*", "to": "lake"}],
    }
    assert RouterSettings.model_validate(good).backends["old"].addresses == (("a", 9083), ("b", 9083))
    with pytest.raises(ValidationError, match=message):
        RouterSettings.model_validate(good | change)
