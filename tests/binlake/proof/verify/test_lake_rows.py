"""A look at some keys finds their rows where the writer puts them, and in the file groups that are named to it."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from binlake.decode.changes import SourceTable
from binlake.decode.types.mysql_types import parse_type
from binlake.proof.verify.columns import ColumnPlan, ComparedColumn
from binlake.proof.verify.lake_rows import LakeRows
from binlake.proof.verify.places import GroupName
from binlake.settings import SourceSettings
from binlake.source.database.source_table import SourceColumn
from binlake.source.database.values import ValueReader
from binlake.tables.lake_table import LakeTable
from hudilake.storage import open_storage
from tests.binlake.proof.verify.file_plants import FilePlants
from tests.binlake.schema.ddl_source import DdlSource, Follower

ROWS = 40


def column(name: str, text: str) -> ComparedColumn:
    kind = parse_type(text)
    reader = ValueReader.of(name, kind, SourceSettings(), nullable=True, in_key=name == "id")
    return ComparedColumn(SourceColumn(name, text, kind, True), reader, name, kind.lake_type)


PLAN = ColumnPlan((column("id", "int"), column("name", "varchar(9)")), 1, ())


@pytest.fixture
def plants(tmp_path: Path) -> FilePlants:
    source = DdlSource()
    source.create("t", {"id": "int", "name": "varchar(9)"})
    for number in range(ROWS):
        source.put("t", number, name=f"n{number}")
    follower = Follower(source, tmp_path, {"buckets": 4})
    follower.run()
    rules = follower.settings().table_rules(SourceTable("shop", "t"))
    storage = open_storage(str(tmp_path)).sub(rules.path)
    return FilePlants(LakeTable.open(storage, rules), Random(1), ROWS)


def held(plants: FilePlants, keys: list[int], whole: set[GroupName]) -> list[tuple[int, bool]]:
    """The rows of some keys that a look finds, and whether they are astray."""
    rows = LakeRows.open(plants.table.storage, PLAN)
    asked = pa.table({"id": pa.array(keys, pa.int32())})
    found = [
        (number, stray)
        for part in rows.of_keys(asked, whole)
        if part.astray is not None
        for number, stray in zip(part.rows.column("id").to_pylist(), part.astray.tolist(), strict=True)
    ]
    return sorted(pair for pair in found if pair[0] in keys)


def test_rows_in_other_file_groups_are_found_where_they_are_named(plants: FilePlants) -> None:
    plants.compact()
    plants.in_bases(["in another group too", "in another group", "twice", "other record key"], [1, 2, 3, 4], [])
    rows = LakeRows.open(plants.table.storage, PLAN)
    every = [(part, name) for part in rows.all() for name in rows.groups.of(part.groups)]
    strays = {name for part, name in every if part.astray is not None and part.astray.any()}
    assert held(plants, [1, 3, 5], set()) == [(1, False), (3, False), (3, False), (5, False)]
    wanted = [(1, False), (1, True), (2, True), (3, False), (3, False), (4, True), (5, False)]
    assert held(plants, [1, 2, 3, 4, 5], strays) == wanted
    assert held(plants, [1, 2, 3, 4, 5], {("", "a file group that was replaced")}) == wanted


def test_no_row_of_a_sound_table_is_astray(plants: FilePlants) -> None:
    assert held(plants, list(range(ROWS)), set()) == [(number, False) for number in range(ROWS)]
