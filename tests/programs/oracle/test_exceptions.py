"""Which differences the oracle excuses: only those that the lake itself names."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pyarrow as pa
import pytest

from binlake.schema.rules.undetermined import WHOLE_ROWS
from demo.truth import TruthColumn, TruthTable
from tests.programs.oracle.comparison import by_determined_columns
from tests.programs.oracle.exceptions import CASCADED, UNDETERMINED, Excuses

TRUTH = TruthTable("d", "t", (TruthColumn("id", "int"), TruthColumn("p", "int")), ("id",), [("1", "2")])


def test_a_named_column_may_be_null_and_one_of_a_foreign_key_anything() -> None:
    excuses = Excuses()
    excuses.look_at(TRUTH, {"u"}, {"p"})
    assert excuses.excused("u", 1, None)
    assert not excuses.excused("u", 1, 2)
    assert excuses.excused("p", None, 2)
    assert not excuses.excused("id", 1, None)
    assert not excuses.rows_may_stay
    assert excuses.used == {UNDETERMINED.name: 1, CASCADED.name: 1}


@pytest.mark.parametrize(("undetermined", "cascaded", "may"), [((), {WHOLE_ROWS}, True), ({WHOLE_ROWS}, (), False)])
def test_rows_may_stay_where_a_foreign_key_removes_them(
    undetermined: Collection[str], cascaded: Collection[str], may: bool
) -> None:
    excuses = Excuses()
    excuses.look_at(TRUTH, undetermined, cascaded)
    assert excuses.rows_may_stay is may
    assert excuses.excused("p", 1, 2) is may


@pytest.mark.parametrize(
    ("key", "named", "left"),
    [
        (("id",), {"p"}, ["id", "p"]),  # rows are told apart by their key, and the cell is judged
        (("id",), {"id"}, ["p"]),
        ((), {"p"}, ["id"]),
        ((), set(), ["id", "p"]),  # the control
    ],
)
def test_rows_are_told_apart_by_what_the_log_determines(key: tuple[str, ...], named: set[str], left: list[str]) -> None:
    truth, rows = by_determined_columns(replace(TRUTH, key=key), pa.table({"id": [1], "p": [2]}), named)
    assert [column.name for column in truth.columns] == rows.column_names == left
    assert truth.key == (key if left == ["id", "p"] else ())
    assert truth.rows == [tuple({"id": "1", "p": "2"}[name] for name in left)]
