"""The steps from a change batch to parcels, in their order: every record has one fate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from binlake.decode.changes import META_FIELDS, ChangeBatch, Column, Op, SourceTable, TableSchema
from binlake.decode.ddl.columns import ColumnDefinition, Default
from binlake.decode.quarantine import Reason
from binlake.decode.types.mysql_types import parse_type
from binlake.rows.upsert.parcel import unpack
from binlake.rows.upsert.prepare import TABLE_REFUSED, UNCOUNTED_REASONS, PreparedBatch, TableFacts, prepare
from binlake.rows.upsert.route import Counts
from binlake.rows.upsert.target import make_target, needs_before_images
from binlake.rows.upsert.truncates import Truncates
from binlake.schema.rules.restatement import DDL_REFUSED, Refusal, Restatement, SourceDdl
from binlake.schema.rules.steps import Fill
from binlake.settings import PartitionSettings, TableRules
from binlake.settings.fanout import ColumnsRule, ShardRule
from binlake.settings.merging import MergeRule

SOURCE = SourceTable("shop", "orders")
SCHEMA = TableSchema(SOURCE, (Column("id", "", pa.int64()), Column("amount", "", pa.string())), ("id",))
RULES: dict[str, Any] = {"path": "p", "buckets": 1, "key": None, "partition": None, "compression": "zstd"}
RULES |= {"compression_level": 1, "immutable_partition": False, "hive_style": True}
NO_FACTS = TableFacts()


def batch(rows: list[tuple[int | None, str]], offsets: list[int] | None = None) -> ChangeBatch:
    """Upserts of (id, amount); their ordering values are 100, 101, ..., their offsets from 0 on."""
    count = len(rows)
    table = pa.Table.from_pylist([dict(zip(("id", "amount"), row, strict=True)) for row in rows], SCHEMA.arrow())
    meta: dict[str, Any] = {name: np.zeros(count) for name in (f.name for f in META_FIELDS)}
    meta |= {"__op": [int(Op.UPSERT)] * count, "__order": np.arange(100, 100 + count)}
    meta |= {"__offset": range(count) if offsets is None else offsets, "__source_ms": np.arange(count)}
    for field in META_FIELDS:
        table = table.append_column(field, pa.array(meta[field.name], field.type))
    return ChangeBatch(SCHEMA, "t", table)


def prepared(
    made: ChangeBatch,
    facts: TableFacts = NO_FACTS,
    shard: ShardRule | None = None,
    **rules: Any,  # noqa: ANN401 - fields of TableRules
) -> PreparedBatch:
    return prepare(made, TableRules(**{**RULES, **rules}), shard, facts)


def fates(done: PreparedBatch) -> list[tuple[str, list[int]]]:
    """(reason, offsets) of the rejected rows."""
    return [(one.reason, one.rows.column("__offset").to_pylist()) for one in done.left_out.rejected]


def stored(done: PreparedBatch) -> list[dict[str, Any]]:
    """The rows of the parcels, by id."""
    assert done.accepted is not None
    rows = unpack(list(done.accepted.parcels)).select(done.accepted.columns.names).to_pylist()
    return sorted(rows, key=lambda row: str(row["id"]))


def test_good_rows_are_routed() -> None:
    done = prepared(batch([(1, "5"), (2, "6"), (1, "7")]))
    assert stored(done) == [{"id": 1, "amount": "7"}, {"id": 2, "amount": "6"}]
    assert done.left_out.rejected == []
    assert done.accepted is not None
    assert done.accepted.counts == Counts(read=3, superseded=1)
    assert done.accepted.columns == pa.schema([("id", pa.int64()), ("amount", pa.string())])
    assert done.accepted.target.key == ("id",)
    assert (done.accepted.oldest_ms, done.accepted.newest_ms) == (1, 2)  # 0 is no time


def test_each_step_rejects_what_is_left_by_the_one_before() -> None:
    """One row behind a refused statement, one that cannot be computed, one without a key; the others go on."""
    ddl = SourceDdl(refusals=(Refusal(104, None, "because"),))
    columns = ColumnsRule(computed=(("whole", "CAST(amount AS INTEGER)"),))
    rows: list[tuple[int | None, str]] = [(1, "1"), (2, "no number"), (None, "3"), (4, "4"), (None, "refused first")]
    done = prepared(batch(rows), TableFacts(ddl), key=("id",), columns=columns)
    assert fates(done) == [(DDL_REFUSED, [4]), (Reason.BAD_COMPUTED, [1]), (Reason.NULL_KEY, [2])]
    assert {one.reason for one in done.left_out.rejected} & UNCOUNTED_REASONS == {DDL_REFUSED}
    assert stored(done) == [{"id": 1, "amount": "1", "whole": 1}, {"id": 4, "amount": "4", "whole": 4}]


@pytest.mark.parametrize("bad", [(2, "no number"), (None, "2")], ids=["computed", "key"])
def test_a_record_is_rejected_whole(bad: tuple[int | None, str]) -> None:
    columns = ColumnsRule(computed=(("whole", "CAST(amount AS INTEGER)"),))
    done = prepared(batch([(1, "1"), bad, (3, "3")], offsets=[7, 7, 8]), key=("id",), columns=columns)
    assert [offsets for _, offsets in fates(done)] == [[7]]
    assert [row["id"] for row in stored(done)] == [3]


def test_rows_are_restated_before_they_are_shaped() -> None:
    """A statement speaks of the source's columns: a computed column sees what it filled in."""
    added = ColumnDefinition("rate", "int", parse_type("int"), False, Default.CONSTANT, "3")
    ddl = SourceDdl(restatements=(Restatement(102, None, (Fill(added),)),))
    columns = ColumnsRule(computed=(("twice", "rate * 2"),))
    assert stored(prepared(batch([(1, "1")]), TableFacts(ddl), columns=columns))[0]["twice"] == 6


def test_a_rule_that_cannot_hold_rejects_what_is_left() -> None:
    columns = ColumnsRule(computed=(("whole", "CAST(amount AS INTEGER)"),))
    done = prepared(batch([(1, "1"), (2, "no number")]), columns=columns, key=("nowhere",))
    assert done.accepted is None
    assert fates(done) == [(Reason.BAD_COMPUTED, [1]), (TABLE_REFUSED, [0])]
    assert "'nowhere' is named by the key" in done.left_out.rejected[1].detail


def test_a_refused_table_takes_nothing() -> None:
    done = prepared(batch([(1, "1"), (2, "2")]), TableFacts(refused="its schema"))
    assert done.accepted is None
    assert fates(done) == [(TABLE_REFUSED, [0, 1])]
    assert done.left_out.rejected[0].detail.startswith("its schema")


def test_a_batch_behind_a_refused_statement_goes_no_further() -> None:
    done = prepared(batch([(1, "1")]), TableFacts(SourceDdl(refusals=(Refusal(0, None, "because"),))))
    assert (done.accepted, fates(done)) == (None, [(DDL_REFUSED, [0])])


def test_rows_that_are_gone_or_applied_are_counted() -> None:
    facts = TableFacts(applied_until={0: 1}, truncates=Truncates(shards={("shard", "a"): 101}))
    shard = ShardRule("shard", "a", in_key=True)
    done = prepared(batch([(1, "1"), (2, "2"), (3, "3")]), facts, shard)
    assert stored(done) == [{"id": 3, "amount": "3", "shard": "a"}]
    assert done.accepted is not None
    assert done.accepted.counts == Counts(read=2, superseded=1, already_applied=1)


def test_rows_of_a_dropped_table_are_left_out() -> None:
    """DROP TABLE takes the rows before it, whatever TRUNCATE has taken; they may lack the columns of the new key."""
    ddl = SourceDdl(restatements=(Restatement(102, None, (), deletes=True),))
    done = prepared(batch([(1, "1"), (2, "2"), (3, "3")]), TableFacts(ddl))
    assert [row["id"] for row in stored(done)] == [3]
    assert done.accepted is not None
    assert (done.accepted.counts, done.left_out.dropped) == (Counts(read=1), 2)


def test_rows_after_a_statement_that_is_held_wait() -> None:
    facts = TableFacts(SourceDdl(held=(102, None)), applied_until={0: 1})
    done = prepared(batch([(1, "1"), (2, "2"), (3, "3"), (4, "4")]), facts)
    assert [row["id"] for row in stored(done)] == [2]
    assert done.left_out.held is not None
    assert done.left_out.held.column("__offset").to_pylist() == [2, 3]
    done = prepared(batch([(1, "1"), (2, "2"), (3, "3")]), TableFacts(SourceDdl(held=(99, None)), applied_until={0: 2}))
    assert done.accepted is None
    assert done.left_out.held is not None
    assert done.left_out.held.column("__offset").to_pylist() == [2]


@pytest.mark.parametrize(
    ("rules", "key", "needed"),
    [
        ({}, ("id",), False),
        ({"key": ("id",)}, ("id",), False),
        ({"key": ("amount",)}, ("id",), True),
        ({"partition": PartitionSettings(column="amount")}, ("id",), True),
        ({"partition": PartitionSettings(column="amount"), "immutable_partition": True}, ("id",), False),
        ({}, (), True),
    ],
    ids=["plain", "same key", "other key", "partition", "immutable partition", "no key"],
)
def test_who_needs_images_from_before(rules: dict[str, Any], key: tuple[str, ...], needed: bool) -> None:
    schema = TableSchema(SOURCE, SCHEMA.columns, key)
    known = TableRules(**{**RULES, **rules})
    assert needs_before_images(schema, make_target(schema, known), known) is needed


@pytest.mark.parametrize("key", [("id", "amount"), ("amount",)], ids=["two", "one"])
@pytest.mark.parametrize("merge", [MergeRule(), MergeRule(engine="scd2")], ids=["newest", "scd2"])
def test_a_row_whose_record_key_others_have_is_rejected(key: tuple[str, ...], merge: MergeRule) -> None:
    """An empty text and the word for it: one would replace the other. In a history table every key has a place, too."""
    made = batch([(1, ""), (1, "__empty__"), (1, "__null__"), (2, "a,id:1"), (3, "a,start_at:1")])
    shared = len(key) > 1 or merge.engine == "scd2"
    done = prepared(made, key=key, merge=merge)
    assert fates(done) == ([(Reason.AMBIGUOUS_KEY, [1])] if shared else [])
    assert len(stored(done)) == (4 if shared else 5)
