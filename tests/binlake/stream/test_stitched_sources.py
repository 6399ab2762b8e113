"""Sources of stitched tables on their way to the parcels of one lake table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from binlake.decode.changes import SourceTable
from binlake.rows.tasks.decode_and_route import decode_records
from binlake.rows.tasks.plan import BatchPlan
from binlake.rows.upsert.computed import ComputedColumns, compute
from binlake.rows.upsert.fanout import truncates_of
from binlake.rows.upsert.parcel import unpack
from binlake.rows.upsert.route import GROUP, KEY, ORDER_COLUMNS
from binlake.settings import Settings
from binlake.stream.batches.table_inputs import Outcome
from binlake.stream.definitions.schemas import SchemaRegistry
from tests.binlake.stream.topic_log import TopicLog, event

WIDE = SourceTable("features", "impressions")
SCHEMAS: dict[str, Any] = {
    "shop.orders": {"columns": {"id": "bigint", "owner": "varchar(40)", "cents": "int"}, "key": ["id"]},
    "shop.clicks": {"columns": {"no": "bigint", "order_id": "int", "clicked": "tinyint(1)"}, "key": ["no"]},
}
ORDERS: dict[str, Any] = {
    "name": "orders",
    "match": "shop.orders",
    "columns": {"customer": "owner", "amount": "cents / 100.0"},
}
CLICKS: dict[str, Any] = {"name": "clicks", "match": "shop.clicks", "key": ["order_id"], "on_delete": "row"}
STITCHED: dict[str, Any] = {"table": str(WIDE), "key": ["id"], "sources": [ORDERS, CLICKS]}


def settings(**changes: Any) -> Settings:  # noqa: ANN401 - any YAML value
    """A stream of the two tables into one lake table; changes are those of ``STITCHED``, ``tables`` and ``schemas``."""
    tables = {"defaults": {"buckets": 1}, **changes.pop("tables", {})}
    schemas = SCHEMAS | changes.pop("schemas", {})
    return Settings.parse(
        json.dumps(
            {
                "name": "shop",
                "lake": {"uri": "/nowhere"},
                "kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": ["s.shop.orders", "s.shop.clicks"]},
                "source": {"schemas": schemas},
                "tables": {**tables, "stitched": [{**STITCHED, **changes}]},
            }
        )
    )


def decoded(conf: Settings, log: TopicLog, before_of: Sequence[str] = ()) -> Outcome:
    """What a task makes of all records."""
    registry, ranges = SchemaRegistry(conf), log.end()
    plan = BatchPlan(
        decoding=registry.options(frozenset(SourceTable("shop", name) for name in before_of)),
        schemas=registry.schemas_for(ranges),
        tables=conf.tables,
        states={},
        kafka={},
        lake_uri="",
        lake_options={},
    )
    whole = {topic: dict.fromkeys(parts, 0) for topic, parts in ranges.items()}
    return Outcome.of(list(decode_records(plan, log.read(type(ranges)(whole).ranges_to(ranges)))))


def rows_of(outcome: Outcome) -> list[dict[str, Any]]:
    """The rows of the parcels of the stitched table, without places."""
    rows = unpack(outcome.parcels["features/impressions"])
    return [{n: v for n, v in row.items() if n not in ORDER_COLUMNS[2:]} for row in rows.to_pylist()]


def two_sources() -> TopicLog:
    log = TopicLog()
    log.add("s.shop.orders", event("orders", "c", 100, {"id": 1, "owner": "ann", "cents": 1250}), {"id": 1})
    log.add("s.shop.clicks", event("clicks", "c", 110, {"no": 7, "order_id": 1, "clicked": 1}), {"no": 7})
    return log


def test_events_of_two_sources_are_parcels_of_one_table() -> None:
    outcome = decoded(settings(), two_sources())
    orders, clicks = sorted(rows_of(outcome), key=lambda row: row[GROUP])
    base = 3 << 32  # the binlog's file
    assert orders | {"amount": float(orders["amount"])} == {
        KEY: "1", "id": 1, "customer": "ann", "amount": 12.5, "no": None, "clicked": None,
        "__op": 0, "__order": base + 100, GROUP: 0,
    }  # fmt: skip
    assert clicks == {
        KEY: "1", "id": 1, "customer": None, "amount": None, "no": 7, "clicked": 1,
        "__op": 0, "__order": base + 110, GROUP: 1,
    }  # fmt: skip
    assert unpack(outcome.parcels["features/impressions"]).schema.field(GROUP).type == pa.int8()
    report = outcome.report.tables[WIDE]
    assert set(outcome.report.tables) == {WIDE}
    assert report.clash is None
    assert report.counts.read == 2
    assert report.topics == {"s.shop.orders", "s.shop.clicks"}
    assert report.origins == {SourceTable("shop", "orders"), SourceTable("shop", "clicks")}
    assert set(report.columns.names) == {"id", "customer", "amount", "no", "clicked"}
    assert report.columns.field("id").type == pa.int64()
    assert [(g.name, g.columns, g.on_delete) for g in report.target.merging.groups] == [
        ("orders", ("customer", "amount"), "columns"),
        ("clicks", None, "row"),
    ]
    assert report.before_images  # the key of clicks is not that of its source


def test_a_change_of_the_key_moves_the_columns_of_its_group() -> None:
    log = TopicLog()
    old, new = {"no": 7, "order_id": 1, "clicked": 1}, {"no": 7, "order_id": 2, "clicked": 1}
    log.add("s.shop.clicks", event("clicks", "u", 120, new, old), {"no": 7})
    rows = {(row[KEY], row["__op"], row[GROUP]) for row in rows_of(decoded(settings(), log, ["clicks"]))}
    assert rows == {("1", 2, 1), ("2", 0, 1)}


def test_a_source_by_another_key_in_several_partitions_is_in_doubt() -> None:
    """A delete and an insert of one position and one key of the lake may lie in two partitions, without an order."""
    log = two_sources()
    assert decoded(settings(), log).report.tables[WIDE].doubts() == []
    log.records["s.shop.clicks", 1] = list(log.records["s.shop.clicks", 0])
    assert "message.key.columns" in str(decoded(settings(), log).report.tables[WIDE].doubts())
    log.records["s.shop.orders", 1] = log.records.pop(("s.shop.orders", 0))
    log.records["s.shop.clicks", 0] = log.records.pop(("s.shop.clicks", 1))
    assert decoded(settings(), log).report.tables[WIDE].doubts() == []


def test_a_plain_rename_needs_no_expression(monkeypatch: pytest.MonkeyPatch) -> None:
    def unexpected(*args: object) -> None:
        raise AssertionError("an expression was evaluated")

    monkeypatch.setattr("binlake.rows.upsert.computed.compute", unexpected)
    renames = {**ORDERS, "columns": {"customer": "OWNER", "cents": "cents"}}
    first = decoded(settings(sources=[renames, CLICKS]), two_sources())
    assert {row["customer"] for row in rows_of(first)} == {"ann", None}


def test_one_evaluation_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def counted(rows: pa.Table, expressions: Sequence[tuple[str, str]], source: SourceTable) -> ComputedColumns:
        calls.append(len(expressions))
        return compute(rows, expressions, source)

    monkeypatch.setattr("binlake.rows.upsert.computed.compute", counted)
    several = {**ORDERS, "columns": {"a": "cents + 1", "b": "upper(owner)", "c": "id * 2"}}
    rows = rows_of(decoded(settings(sources=[several, CLICKS]), two_sources()))
    assert [(row["a"], row["b"], row["c"]) for row in rows if row[GROUP] == 0] == [(1251, "ANN", 2)]
    assert calls == [3]


def test_rows_that_cannot_be_evaluated_are_quarantined() -> None:
    log = two_sources()
    log.add("s.shop.orders", event("orders", "c", 130, {"id": 2, "owner": "x", "cents": 1}), {"id": 2})
    number = {**ORDERS, "columns": {"length": "CAST(replace(owner, 'ann', '3') AS INTEGER)"}}
    outcome = decoded(settings(sources=[number, CLICKS]), log)
    assert [(str(q.source), q.reason, q.offset) for q in outcome.report.quarantined] == [(str(WIDE), "bad_computed", 1)]
    assert sorted(row["length"] or 0 for row in rows_of(outcome)) == [0, 3]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"schemas": {"shop.orders": {**SCHEMAS["shop.orders"], "key": []}}}, "a table without a key cannot be"),
        ({"sources": [ORDERS, {**CLICKS, "key": ["order_no"]}]}, "lacks the key column order_no"),
        ({"sources": [{**ORDERS, "columns": {"x": "nowhere + 1"}}, CLICKS]}, "expressions for x cannot be evaluated"),
        ({"sources": [{**ORDERS, "columns": {"clicked": "cents"}}, CLICKS]}, "has the column clicked, which"),
        ({"sources": [{**ORDERS, "match": "shop.other"}, CLICKS], "table": "shop.orders"}, "stitched from other"),
    ],
)
def test_a_source_that_does_not_fit_is_quarantined_alone(changes: dict[str, Any], why: str) -> None:
    outcome = decoded(settings(**changes), two_sources())
    (bad,) = outcome.report.quarantined
    assert bad.reason == "table_refused"
    assert why in bad.detail
    assert sum(len(unpack(parcels)) for parcels in outcome.parcels.values()) == 1


def test_keys_that_are_spelled_in_two_ways_clash() -> None:
    text = {"columns": {**SCHEMAS["shop.clicks"]["columns"], "order_id": "decimal(10,2)"}, "key": ["no"]}
    log = two_sources()
    log.records["s.shop.clicks", 0].clear()
    log.add("s.shop.clicks", event("clicks", "c", 110, {"no": 7, "order_id": "ZA==", "clicked": 1}), {"no": 7})
    report = decoded(settings(schemas={"shop.clicks": text}), log).report.tables[WIDE]
    assert "the key column 'id' comes as" in str(report.clash)


def test_a_truncate_is_of_a_group() -> None:
    log, conf = two_sources(), settings()
    truncate = event("clicks", "t", 140, {}) | {"before": None, "after": None}
    log.add("s.shop.clicks", truncate, None)
    found = truncates_of(decoded(conf, log).report.controls, conf.tables)[WIDE]
    assert (found.whole, found.shards, found.groups) == (-1, {}, {"clicks": (3 << 32) + 140})
    assert type(found).from_text(found.to_text()) == found


@pytest.mark.parametrize(
    ("tables", "why"),
    [
        ({"overrides": [{"match": str(WIDE), "partition": {"column": "customer"}}]}, "must be one of its key"),
        ({"defaults": {"columns": {"computed": {"x": "1 + 1"}}}}, "no columns.computed"),
        ({"defaults": {"merge": {"engine": "first_row"}}}, "no merge engine of its own"),
    ],
)
def test_settings_that_a_stitched_table_cannot_have(tables: dict[str, Any], why: str) -> None:
    settings(tables={"overrides": [{"match": str(WIDE), "partition": {"column": "id"}}]})
    with pytest.raises(Exception, match=why):
        settings(tables=tables)


def test_a_source_that_is_made_again_feeds_the_same_columns() -> None:
    tables, source = settings().tables, SourceTable("shop", "orders@@2")
    found = tables.destination(source)
    assert found is not None
    assert (found.database, found.table, found.part) == ("features", "impressions", tables.rules(WIDE).groups[0])
    assert tables.selects(source)


def test_rules_of_the_lake_table() -> None:
    rules = settings(tables={"overrides": [{"match": str(WIDE), "buckets": 3}]}).table_rules(WIDE)
    assert (rules.path, rules.buckets, rules.key) == ("features/impressions", 3, ("id",))
