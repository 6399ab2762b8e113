"""Which differences the oracle excuses: only those that the lake itself names."""

from __future__ import annotations

from demo.truth import TruthColumn, TruthTable
from pipeline.schema_changes.rules.undetermined import WHOLE_ROWS
from tests.oracle.exceptions import CASCADED, UNDETERMINED, Excuses

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


def test_rows_may_stay_where_a_foreign_key_removes_them() -> None:
    excuses = Excuses()
    may_stay = []
    for undetermined, cascaded in ((set[str](), {WHOLE_ROWS}), ({WHOLE_ROWS}, set[str]())):
        excuses.look_at(TRUTH, undetermined, cascaded)
        may_stay.append(excuses.rows_may_stay)
    assert may_stay == [True, False]
    assert not excuses.excused("p", 1, 2)
