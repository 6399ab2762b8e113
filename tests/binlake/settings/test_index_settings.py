"""Indexes that are looked up, in the settings."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from binlake.settings import TablesSettings

BLOOM: dict[str, Any] = {"index": {"type": "bloom"}}
STITCHED: dict[str, Any] = {
    "table": "features.impressions",
    "key": ["id"],
    "sources": [{"name": "labels", "match": "clients.clicks", "columns": {"clicked": "clicked"}}],
}


@pytest.mark.parametrize(
    ("tables", "why"),
    [
        ({"defaults": {**BLOOM, "conflicts": "row"}}, "conflicts: row is not possible"),
        ({"defaults": {**BLOOM, "merge": {"engine": "first_row"}}}, "engine: first_row is not possible"),
        ({"defaults": {"conflicts": "row"}, "overrides": [{"match": "*", **BLOOM}]}, "conflicts: row is not possible"),
        ({"defaults": BLOOM, "overrides": [{"match": "*", "conflicts": "row"}]}, "conflicts: row is not possible"),
        (
            {"defaults": {"index": {"type": "record_index"}, "metadata": {"enabled": False}}},
            "kept in the metadata table",
        ),
        ({"defaults": BLOOM, "stitched": [STITCHED]}, "impressions: it cannot have index.type: bloom"),
    ],
)
def test_what_looked_up_tables_cannot_have(tables: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        TablesSettings(**tables)


def test_an_override_may_take_another_index() -> None:
    stock = {"match": "*.stock", "index": {"type": "bucket"}, "conflicts": "row"}
    tables = TablesSettings.model_validate({"defaults": BLOOM, "overrides": [stock]})
    assert tables.defaults.index.looks_up
    assert not tables.overrides[0].index.looks_up
