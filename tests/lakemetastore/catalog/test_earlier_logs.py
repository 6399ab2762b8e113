"""Logs and snapshots written earlier stay readable: ``earlier_logs.json`` has their bytes and is never written anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lakemetastore.catalog.entries import (
    DatabaseDropped,
    DatabasePut,
    NameChange,
    NamedTable,
    PartitionRows,
    PartitionsChanged,
    StatisticsDropped,
    StatisticsPut,
    TableChange,
    TableDefined,
    TablesNamed,
)
from lakemetastore.catalog.names_state import FOLD
from lakemetastore.catalog.table_state import TableFold
from lakemetastore.log.fold import Fold, Versioned
from lakemetastore.model import Column, Database, Partition, SerDe, SortColumn, Storage, Table

EARLIER = Path(__file__).with_name("earlier_logs.json")

_STORAGE = Storage(
    columns=(Column("a", "int", "c"), Column("b", "struct<x:int>")),
    input_format="i",
    output_format="o",
    compressed=True,
    buckets=4,
    serde=SerDe("n", "l", {"p": "q"}),
    bucket_columns=("a",),
    sort_columns=(SortColumn("a", 0),),
    parameters={"k": "v"},
    stored_as_sub_directories=True,
)
_DEFINITION = Table(
    "d",
    "t",
    _STORAGE,
    location="file:/w/t",
    partition_keys=(Column("dt", "string"),),
    parameters={"EXTERNAL": "TRUE"},
    owner="o",
    owner_type=1,
    created=7,
    last_access=8,
    retention=9,
    kind="EXTERNAL_TABLE",
    view_original_text="v",
    view_expanded_text="w",
    rewrite_enabled=True,
)
_PARTITIONS = [Partition((v,), _STORAGE, f"file:/w/t/dt={v}", {"m": "1"}, 8, 9) for v in ("x", "y")]
_NAMED = NamedTable("id1", "EXTERNAL_TABLE", "c")

NAMES: list[NameChange] = [
    DatabasePut(Database("d", "x", "file:/w/d", {"k": "v"}, "o", 1, 7)),
    TablesNamed(named=(("d", "t", _NAMED),)),
    TablesNamed((("d", "t"),), (("d", "u", _NAMED),)),
    DatabasePut(Database("e")),
    DatabaseDropped("e"),
]
TABLE: list[TableChange] = [
    TableDefined(_DEFINITION),
    PartitionsChanged(put=PartitionRows.of(_PARTITIONS)),
    PartitionsChanged(("dt=x",)),
    StatisticsPut("", {"a": b"1", "b": b"2"}),
    StatisticsDropped("", "b"),
    TableDefined(_DEFINITION, cascade=True),
]


@pytest.mark.parametrize(("log", "fold", "changes"), [("names", FOLD, NAMES), ("table", TableFold(), TABLE)])
def test_changes_and_snapshots_of_earlier_logs_are_read(log: str, fold: Fold[Any, Any], changes: list[Any]) -> None:
    earlier = json.loads(EARLIER.read_text())[log]
    decoded = [fold.decode(bytes.fromhex(data)) for data in earlier["changes"]]
    assert decoded == changes
    folded = fold.apply(fold.empty(), [Versioned(i, change) for i, change in enumerate(decoded, 1)])
    loaded = fold.load(bytes.fromhex(earlier["snapshot"]))
    assert fold.dump(loaded) == fold.dump(folded)
