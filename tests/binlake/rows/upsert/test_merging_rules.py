"""How tables merge by their settings."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from binlake.decode.changes import Column, SourceTable, TableSchema
from binlake.rows.upsert.target import make_target, merging_of
from binlake.settings import TableRules
from binlake.settings.tables import TablesSettings
from hudilake.errors import UnsupportedError
from hudilake.format.definition.merging import ColumnGroup, Merging

SOURCE = SourceTable("db", "t")


def rules(**tables: Any) -> TableRules:  # noqa: ANN401 - any YAML value
    return TablesSettings.model_validate(tables).rules(SOURCE)


def test_a_plain_table_is_merged_by_its_readers() -> None:
    assert merging_of(rules()) == Merging()
    assert not merging_of(rules()).by_writer


def test_an_engine_with_its_functions() -> None:
    merge = {"engine": "aggregate", "columns": {"Total €": "sum", "n": "count"}}
    found = merging_of(rules(defaults={"merge": merge}))
    assert (found.engine, found.groups) == ("aggregate", ())
    assert found.functions == (("Total__u20ac", "sum"), ("n", "count"))  # as the lake spells them


def test_the_sources_are_the_groups_in_their_order() -> None:
    sources = [
        {"name": "rest", "match": "db.a"},
        {"name": "b", "match": "db.b", "columns": {"x y": "x"}, "on_delete": "row"},
    ]
    found = merging_of(rules(stitched=[{"table": "db.t", "key": ["id"], "sources": sources}]))
    assert found == Merging("stitched", (ColumnGroup("rest"), ColumnGroup("b", ("x_y",), "row")))


def test_a_table_without_a_key_has_no_engine() -> None:
    schema = TableSchema(SOURCE, (Column("a", "", pa.int64()),), ())
    assert make_target(schema, rules()).key == ()
    with pytest.raises(UnsupportedError, match="without a key cannot have the merge engine first_row"):
        make_target(schema, rules(defaults={"merge": {"engine": "first_row"}}))
