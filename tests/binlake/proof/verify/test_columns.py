"""Which columns of both sides are compared."""

from __future__ import annotations

import pyarrow as pa

from binlake.decode.changes import SourceTable
from binlake.decode.types.mysql_types import parse_type
from binlake.proof.verify.columns import plan_columns
from binlake.settings import SourceSettings, TablesSettings
from binlake.source.database.source_table import DescribedTable, SourceColumn

SOURCE = SourceTable("d", "t")


def test_names_are_compared_without_case() -> None:
    columns = tuple(SourceColumn(n, "int", parse_type("int"), nullable=True) for n in ("ID", "a-B", "new"))
    described = DescribedTable(SOURCE, columns, ("ID",), 1)
    lake = pa.schema([("id", pa.int32()), ("A_b", pa.int32()), ("gone", pa.int32())])
    plan = plan_columns(described, lake, ("id",), TablesSettings().rules(SOURCE), None, SourceSettings())
    assert [(c.source.name, c.lake_name) for c in plan.columns] == [("ID", "id"), ("a-B", "A_b")]
    assert plan.keys == 1
    assert {note.name: note.wrong for note in plan.notes} == {"new": True, "gone": False}
