"""What statements make of rows by their places alone: the first fate that applies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from binlake.decode.changes import POSITION_BITS
from binlake.schema.rules.restatement import DDL_REFUSED, LATE_ROW, Refusal, Restatement, RowFates, SourceDdl

#: Ordering values of rows in binlog file 1, at these places.
ROWS = [10, 20, 30, 40, 50]


def at(place: int) -> int:
    """The ordering value of a place in binlog file 1."""
    return (1 << POSITION_BITS) + place


def fates(ddl: SourceDdl, fresh: Sequence[bool] = (True,) * len(ROWS)) -> RowFates:
    orders = pa.array([at(place) for place in ROWS], pa.int64())
    return ddl.fates(pa.table({"__order": orders, "__place": orders}), np.array(fresh))


def where(mask: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[int]:
    return [place for place, holds in zip(ROWS, mask.tolist(), strict=True) if holds]


def test_without_statements_all_rows_go_on() -> None:
    made = fates(SourceDdl())
    assert where(made.left) == ROWS
    assert (made.refused, where(made.dropped), where(made.waiting)) == ((), [], [])


def test_a_row_is_refused_by_the_first_statement_that_refuses_it() -> None:
    made = fates(SourceDdl(refusals=(Refusal(at(20), at(40), "one"), Refusal(at(30), None, "two"))))
    assert [(where(mask), reason, why) for mask, reason, why in made.refused] == [
        ([20, 30], DDL_REFUSED, "one"),
        ([40, 50], DDL_REFUSED, "two"),
    ]
    assert where(made.left) == [10]


def test_dropped_before_waiting_before_late() -> None:
    ddl = SourceDdl(
        restatements=(Restatement(at(15), None, (), deletes=True),), held=(at(40), None), keyless_since=(at(25), None)
    )
    made = fates(ddl)
    assert where(made.dropped) == [10]
    assert where(made.waiting) == [40, 50]
    assert [(where(mask), reason) for mask, reason, _ in made.refused] == [([20], LATE_ROW)]
    assert where(made.left) == [30]


def test_a_row_that_is_applied_does_not_wait_and_does_not_go_on() -> None:
    made = fates(SourceDdl(held=(at(30), None)), [True, True, True, False, True])
    assert where(made.waiting) == [30, 50]
    assert where(made.left) == [10, 20]


def test_a_refused_row_is_not_counted_as_dropped() -> None:
    ddl = SourceDdl(restatements=(Restatement(at(35), None, (), deletes=True),), refusals=(Refusal(at(20), None, "x"),))
    made = fates(ddl)
    assert where(made.dropped) == [10]
    assert where(made.refused[0][0]) == [20, 30, 40, 50]
    assert not made.left.any()
