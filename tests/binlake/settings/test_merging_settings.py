"""Merge engines and stitched tables in the settings."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from binlake.settings.merging import MergeRule, MergeSettings, StitchedSettings

SOURCE: dict[str, Any] = {"name": "labels", "match": "clients.clicks", "columns": {"clicked": "clicked"}}
TABLE: dict[str, Any] = {"table": "features.impressions", "key": ["id"], "sources": [SOURCE]}


def test_a_merge_section_becomes_a_rule() -> None:
    assert MergeSettings().rule() == MergeRule()
    given = MergeSettings(engine="aggregate", columns={"amount": "sum"})
    assert given.rule() == MergeRule("aggregate", (("amount", "sum"),))


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"engine": "aggregate"}, "needs the function"),
        ({"engine": "newest", "columns": {"a": "sum"}}, "only with engine: aggregate"),
        ({"engine": "aggregate", "columns": {"a": "median"}}, "Input should be"),
    ],
)
def test_merge_sections_with_mistakes(values: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        MergeSettings(**values)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"table": "impressions"}, r"must be database\.table"),
        ({"sources": [SOURCE, SOURCE]}, "two sources have one name"),
        ({"sources": [SOURCE, {**SOURCE, "name": "b", "columns": {"CLICKED": "x"}}]}, "another source or the key"),
        ({"sources": [{**SOURCE, "columns": {"ID": "x"}}]}, "another source or the key"),
        ({"sources": [{**SOURCE, "columns": None}, {**SOURCE, "name": "b", "columns": None}]}, "only one source"),
        ({"sources": [{**SOURCE, "key": ["a", "b"]}]}, "as many columns"),
        ({"sources": [{**SOURCE, "name": "Labels"}]}, "small letter"),
        ({"sources": [{**SOURCE, "columns": {"r": "random()"}}]}, "r: "),
    ],
)
def test_stitched_tables_with_mistakes(change: dict[str, Any], why: str) -> None:
    StitchedSettings(**TABLE)
    with pytest.raises(ValidationError, match=why):
        StitchedSettings(**{**TABLE, **change})
