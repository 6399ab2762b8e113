"""Random histories of tables whose index is looked up: after every commit the table is what the model says."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings

from hudilake.policies import FileSizePolicy, IndexType, TableType
from tests.binlake.rows.upsert.history import KEYED, ROUNDS, Plan, Round, plans, world
from tests.binlake.rows.upsert.ingest import Kind
from tests.hypothesis_profile import scaled

INDEXES: tuple[IndexType, ...] = (
    "simple",
    "global_simple",
    "bloom",
    "global_bloom",
    "in_memory",
    "record_index",
    "partitioned_record_index",
    "external",
)
TYPES: tuple[TableType, ...] = ("merge_on_read", "copy_on_write")
#: Files of any size, and a file group for nearly every row.
SIZES = (FileSizePolicy(), FileSizePolicy(target_bytes=1, small_bytes=1))
KINDS = [Kind(table_type, index, sizes) for table_type in TYPES for index in INDEXES for sizes in SIZES]


def test_rows_that_pass_keys_on_come_again_in_part() -> None:
    """One event deletes key 3 and inserts it again; the connector sends it again, and a batch ends after the delete.

    The row is gone until the rest has come again, and it is there at the end.
    """
    plan = Plan(KEYED["one key column"], 1, 2, 4, kind=Kind(index="simple"))
    insert, shift = ("insert", 0, 0, 0), ("shift_keys", 0, 0, 0)
    rounds = [
        Round([insert, shift], [], 0, (0, 0, 0), 1, shuffle=False, death="no"),
        Round([insert, insert], [], 9, (0, 0, 0), 1, shuffle=False, death="no"),
        Round([insert], [("restart_connector", 5)], 4, (0, 12, 0), 1, shuffle=False, death="no"),
    ]
    with world(plan) as here:
        here.live(rounds)
        assert "3" not in {row["_hoodie_record_key"] for row in here.pictures[0]}
        assert "3" in {row["_hoodie_record_key"] for row in here.pictures[-1]}


@pytest.mark.full
@settings(
    max_examples=scaled(100, divisor=10),
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(plans(KEYED, (0, 1, 2), KINDS), ROUNDS)
def test_looked_up_tables(plan: Plan, rounds: Sequence[Round]) -> None:
    with world(plan) as here:
        here.live(rounds)
