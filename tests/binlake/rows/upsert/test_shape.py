"""The columns of a batch as its lake table keeps them."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from binlake.decode.changes import META_FIELDS, ChangeBatch, Column, SourceTable, TableSchema, rows_where
from binlake.rows.upsert.shape import ShapeResult, shape
from binlake.settings import TableRules
from binlake.settings.fanout import ColumnsRule, MaskRule, ShardRule
from hudilake.errors import UnsupportedError

SOURCE = SourceTable("shop", "customers")
KINDS = {"id": pa.int64(), "Email": pa.string(), "country": pa.string(), "photo": pa.binary(), "born": pa.date32()}


def batch(rows: list[dict[str, Any]], before: dict[int, dict[str, Any]] | None = None) -> ChangeBatch:
    """Rows of the test table; before images by the index of their row."""
    schema = TableSchema(SOURCE, tuple(Column(n, "", t) for n, t in KINDS.items()), ("id",))
    table = pa.Table.from_pylist(rows, schema=schema.arrow())
    for field in META_FIELDS:
        table = table.append_column(field, pa.array(np.arange(len(rows)), field.type))
    if before is None:
        return ChangeBatch(schema, "t", table)
    old = pa.Table.from_pylist(list(before.values()), schema=schema.arrow())
    return ChangeBatch(schema, "t", table, old, np.array(list(before), dtype=np.int64))


def shaped(made: ChangeBatch, rule: ColumnsRule | None = None, shard: ShardRule | None = None) -> ShapeResult:
    return shape(made, TableRules("p", 1, None, None, "zstd", 1, False, True, columns=rule), shard)


def values(made: ChangeBatch) -> list[dict[str, Any]]:
    return list(made.rows.drop_columns([f.name for f in META_FIELDS]).to_pylist())


ROW = {"id": 7, "Email": "a@b.example", "country": "DE", "photo": b"\x00\xff", "born": None}


def test_nothing_asked_nothing_touched() -> None:
    made = batch([ROW])
    assert shaped(made).batch is made


def test_columns_are_chosen_whatever_their_case() -> None:
    rule = ColumnsRule(include=("ID", "e*", "COUNTRY"), exclude=("country",))
    good = shaped(batch([ROW], {0: ROW}), rule).batch
    assert values(good) == [{"id": 7, "Email": "a@b.example"}]
    assert [c.name for c in good.schema.columns] == ["id", "Email"]
    assert good.before is not None
    assert good.before.column_names == ["id", "Email"]


def test_a_key_cannot_be_left_out() -> None:
    with pytest.raises(UnsupportedError, match="key needs"):
        shaped(batch([ROW]), ColumnsRule(exclude=("id",)))


def test_hashes_are_keyed_and_the_same_for_the_same_value() -> None:
    rule = ColumnsRule(masks=tuple(MaskRule(c, "hash", "salt") for c in ("email", "photo", "id", "born")))
    rows = [ROW, {**ROW, "Email": "c@d.example"}, {**ROW, "Email": None}]
    good = shaped(batch(rows, {1: ROW}), rule).batch
    assert good.rows.column("Email").to_pylist() == [_hash(b"a@b.example"), _hash(b"c@d.example"), None]
    assert good.rows.column("photo").to_pylist() == [_hash(b"\x00\xff")] * 3
    assert good.rows.column("id").to_pylist() == [_hash(b"7")] * 3
    assert good.rows.column("born").to_pylist() == [None] * 3
    assert good.before is not None
    assert good.before.column("Email").to_pylist() == [_hash(b"a@b.example")]
    assert {c.lake_type for c in good.schema.columns if c.name != "country"} == {pa.string()}
    other = shaped(batch(rows), ColumnsRule(masks=(MaskRule("email", "hash", "other"),))).batch
    assert other.rows.column("Email")[0].as_py() != _hash(b"a@b.example")


def _hash(value: bytes) -> str:
    return hmac.new(b"salt", value, hashlib.sha256).hexdigest()


def test_redacted_text_is_replaced_and_other_values_are_null() -> None:
    masks = (MaskRule("email", "redact"), MaskRule("photo", "redact"), MaskRule("country", "null"))
    good = shaped(batch([ROW, {**ROW, "Email": None}]), ColumnsRule(masks=masks)).batch
    assert [(r["Email"], r["photo"], r["country"]) for r in values(good)] == [("***", None, None), (None, None, None)]
    with pytest.raises(UnsupportedError, match="the same for all rows"):
        shaped(batch([ROW]), ColumnsRule(masks=(MaskRule("ID", "redact"),)))


def test_a_mask_shows_no_salt() -> None:
    assert "pepper" not in repr(MaskRule("a", "hash", "pepper"))


def test_computed_columns_see_what_is_left_out_or_masked() -> None:
    rule = ColumnsRule(
        computed=(("domain", "split_part(Email, '@', 2)"), ("bucket", "id % 4")),
        exclude=("country",),
        masks=(MaskRule("email", "null"),),
    )
    good = shaped(batch([ROW, {**ROW, "id": 9, "Email": None}], {1: ROW}), rule).batch
    assert [(r["Email"], r["domain"], r["bucket"]) for r in values(good)] == [(None, "b.example", 3), (None, None, 1)]
    assert good.rows.column_names[-len(META_FIELDS) :] == [f.name for f in META_FIELDS]
    assert good.before is not None
    assert good.before.column("domain").to_pylist() == ["b.example"]
    assert [(c.name, c.lake_type) for c in good.schema.columns][-2:] == [
        ("domain", pa.string()),
        ("bucket", pa.int64()),
    ]


def test_rows_that_cannot_be_computed_go_alone() -> None:
    rows = [{**ROW, "id": n, "country": text} for n, text in enumerate(["1", "x", "3", "4", None])]
    before = {3: {**ROW, "country": "y"}, 4: {**ROW, "country": "5"}}
    made = shaped(batch(rows, before), ColumnsRule(computed=(("n", "country::int"),)))
    assert made.bad.tolist() == [False, True, False, True, False]
    good = rows_where(made.batch, ~made.bad)
    assert [(r["id"], r["n"]) for r in values(good)] == [(0, 1), (2, 3), (4, None)]
    assert good.before is not None
    assert good.before.column("n").to_pylist() == [5]
    assert good.before_at.tolist() == [2]
    assert "INT32" in made.why


@pytest.mark.parametrize(
    ("name", "expression", "message"),
    [
        ("n", "nowhere + 1", "cannot be evaluated"),
        ("n", "hash(id)", "uint64"),
        ("EMAIL", "1", "has already"),
        ("n", "[id]", "list"),
    ],
)
def test_expressions_that_fit_no_table(name: str, expression: str, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        shaped(batch([ROW]), ColumnsRule(computed=((name, expression),)))


def test_a_shard_column_comes_last_and_leads_the_key() -> None:
    good = shaped(batch([ROW], {0: ROW}), None, ShardRule("shard", "07")).batch
    assert values(good) == [{**ROW, "shard": "07"}]
    assert good.schema.key == ("shard", "id")
    assert good.before is not None
    assert good.before.column("shard").to_pylist() == ["07"]
    assert shaped(batch([ROW]), None, ShardRule("shard", "07", in_key=False)).batch.schema.key == ("id",)
    with pytest.raises(UnsupportedError, match="has already"):
        shaped(batch([ROW]), None, ShardRule("email", "07"))


def test_tables_without_a_key_are_not_merged() -> None:
    made = batch([ROW])
    keyless = ChangeBatch(TableSchema(SOURCE, made.schema.columns, ()), "t", made.rows, origin=SOURCE)
    with pytest.raises(UnsupportedError, match="without a key"):
        shaped(keyless, None, ShardRule("shard", "07"))
