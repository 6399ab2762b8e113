"""A row of tables that are not as their source's leaves dumps: stitched, merged by an engine, masked; beside a dump."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from binlake.load.replay.dump import DumpService
from binlake.proof.history.erasure import DUMPS
from binlake.settings import Settings
from hudilake.storage import open_storage
from tests.binlake.load.replay.dumped import HOUR, Record, as_json, replay, settings, write
from tests.binlake.load.replay.test_dump import Records
from tests.binlake.proof.history.test_dump_erasure import LAYOUT, asked, erase, records_in
from tests.binlake.proof.history.test_dump_erasure_others import STAMP
from tests.binlake.stream.test_exactly_once import row
from tests.binlake.stream.topic_log import event
from tests.judges import hudi_rs

ACCOUNTS, ORDERS = "s.shop.accounts", "s.shop.orders"
#: Columns of both tables; the second one's ``region`` has the key of the first one's row.
STITCHED = {
    "table": "wide.people",
    "key": ["id"],
    "sources": [
        {"name": "main", "match": "shop.accounts"},
        {"name": "orders", "match": "shop.orders", "key": ["person"], "columns": {"item": "item"}},
    ],
}
SCHEMAS = {
    "shop.accounts": {"columns": {"id": "bigint", "owner": "varchar(40)"}, "key": ["id"]},
    "shop.orders": {"columns": {"id": "bigint", "person": "bigint", "item": "varchar(40)"}, "key": ["id"]},
}


def record(topic: str, offset: int, key: int, value: dict[str, Any] | bytes | None) -> Record:
    data = json.dumps(value).encode() if isinstance(value, dict) else value
    return topic, 0, offset, STAMP, json.dumps({"id": key}).encode(), data


def by_place(dumps: Path) -> dict[tuple[str, int], bytes | None]:
    return {(at[1], at[3]): value for at, (_, value) in records_in(dumps).items()}


def rows_of(lake: Path, path: str, *names: str) -> list[tuple[Any, ...]]:
    rows = hudi_rs.snapshot(lake / path).select(list(names)).to_pylist()
    return sorted(tuple(one.values()) for one in rows)


def test_a_row_of_a_stitched_table_leaves_the_records_of_all_its_sources(tmp_path: Path) -> None:
    """The key of one source's records is the number of an order: order 5 is not of person 5."""
    lake, dumps = tmp_path / "lake", tmp_path / "dumps"
    tables = {"stitched": [STITCHED]}
    config = settings(lake, dumps, dump=LAYOUT, tables=tables, source={"schemas": SCHEMAS})
    people: list[dict[str, Any]] = [{"id": n, "owner": f"person {n}"} for n in range(4, 7)]
    orders: list[dict[str, Any]] = [
        {"id": 5, "person": 6, "item": "item of six"},
        {"id": 8, "person": 5, "item": "item of five"},
    ]
    first = [record(ACCOUNTS, n, one["id"], event("accounts", "c", 100 + n, one)) for n, one in enumerate(people)]
    second = [record(ORDERS, n, one["id"], event("orders", "c", 200 + n, one)) for n, one in enumerate(orders)]
    second.append(record(ORDERS, 2, 5, None))
    write(dumps, "accounts", HOUR, "a.jsonl", as_json(first))
    write(dumps, "orders", HOUR, "a.jsonl", as_json(second))
    replay(config)
    report = erase(config, "5", "wide.people")
    assert report.is_done, report.scan
    held = by_place(dumps)
    assert [place for place in held if held[place] is None] == [(ACCOUNTS, 1), (ORDERS, 1), (ORDERS, 2)]
    assert records_in(dumps)[_file_of(dumps, ORDERS), ORDERS, 0, 2] == (b'{"id": 5}', None)  # the tombstone of order 5
    left = [(4, "person 4", None), (6, "person 6", "item of six")]
    assert rows_of(lake, "wide/people", "id", "owner", "item") == left
    other = settings(tmp_path / "other", dumps, dump=LAYOUT, tables=tables, source={"schemas": SCHEMAS})
    replay(other)
    assert rows_of(tmp_path / "other", "wide/people", "id", "owner", "item") == left


def _file_of(dumps: Path, topic: str) -> str:
    return next(at[0] for at in records_in(dumps) if at[1] == topic)


def test_a_bad_record_of_a_source_with_another_key_stays_and_is_named(tmp_path: Path) -> None:
    """Order 5 cannot be read. Its number is the key of a row that it says nothing of."""
    lake, dumps = tmp_path / "lake", tmp_path / "dumps"
    config = settings(lake, dumps, dump=LAYOUT, tables={"stitched": [STITCHED]}, source={"schemas": SCHEMAS})
    good = record(ACCOUNTS, 0, 5, event("accounts", "c", 100, {"id": 5, "owner": "person 5"}))
    bad = record(ORDERS, 0, 5, event("orders", "c", 200, {"id": 5, "person": "no number", "item": "an item"}))
    write(dumps, "accounts", HOUR, "a.jsonl", as_json([good]))
    path = write(dumps, "orders", HOUR, "a.jsonl", as_json([bad]))
    replay(config)
    plan = asked(config, "5", "wide.people")
    assert (plan.quarantined, plan.unmatched) == (frozenset(), 1)
    report = dict(plan.carry_out(release_savepoints=False))[DUMPS]
    assert [one.where for one in report.scan.finds[path]] == ["1 record of no known row"]
    assert by_place(dumps)[ORDERS, 0] == bad[5]


@pytest.mark.parametrize(
    "merge",
    [
        {"engine": "aggregate", "columns": {"balance": "sum", "id": "count", "region": "last_non_null"}},
        {"engine": "partial_update"},
        {"engine": "first_row"},
    ],
    ids=lambda merge: merge["engine"],
)
def test_all_events_of_a_merged_row_leave(tmp_path: Path, merge: dict[str, Any]) -> None:
    """The lake's row has the key ``owner``, the source's rows have others."""
    lake, dumps = tmp_path / "lake", tmp_path / "dumps"
    tables = {"overrides": [{"match": "shop.accounts", "key": ["owner"], "merge": merge, "buckets": 2}]}
    config = settings(lake, dumps, dump=LAYOUT, tables=tables)
    owners = ["a person", "another", "a person", "a third", "another"]
    events = [event("accounts", "c", 100 + n, row(n, owner)) for n, owner in enumerate(owners)]
    events.append(event("accounts", "d", 200, row(2, "a person")))
    records = [record(ACCOUNTS, n, (one["after"] or one["before"])["id"], one) for n, one in enumerate(events)]
    records.append(record(ACCOUNTS, 6, 2, None))
    write(dumps, "accounts", HOUR, "a.jsonl", as_json(records))
    replay(config)
    before = rows_of(lake, "shop/accounts", "owner", "id", "balance")
    assert erase(config, "a person").is_done
    gone = [place for place, value in by_place(dumps).items() if value is None]
    assert gone == [(ACCOUNTS, n) for n in (0, 2, 5, 6)]
    left = [one for one in before if one[0] != "a person"]
    assert rows_of(lake, "shop/accounts", "owner", "id", "balance") == left
    other = settings(tmp_path / "other", dumps, dump=LAYOUT, tables=tables)
    replay(other)
    assert rows_of(tmp_path / "other", "shop/accounts", "owner", "id", "balance") == left


def test_a_bad_record_of_a_table_with_a_masked_key_may_be_of_the_row(tmp_path: Path) -> None:
    """The lake has a hash where the record has a name: that they differ says nothing."""
    lake, dumps = tmp_path / "lake", tmp_path / "dumps"
    masks = {"owner": {"how": "hash", "salt": "pepper"}}
    tables = {"overrides": [{"match": "shop.accounts", "key": ["owner"], "columns": {"mask": masks}, "buckets": 2}]}
    config = settings(lake, dumps, dump=LAYOUT, tables=tables, quarantine={"seal": "a secret of quarantine"})
    good = record(ACCOUNTS, 0, 1, event("accounts", "c", 100, row(1, "a person")))
    bad = record(ACCOUNTS, 1, 1, event("accounts", "u", 110, {**row(1, "a person"), "balance": ["no number"]}))
    path = write(dumps, "accounts", HOUR, "a.jsonl", as_json([good, bad]))
    replay(config)
    ((hashed,),) = rows_of(lake, "shop/accounts", "owner")
    plan = asked(config, hashed)
    assert plan.unmatched == 1
    report = dict(plan.carry_out(release_savepoints=False))[DUMPS]
    assert "1 record of no known row" in [one.where for one in report.scan.finds[path]]
    assert by_place(dumps) == {(ACCOUNTS, 0): None, (ACCOUNTS, 1): bad[5]}


@pytest.mark.parametrize("how", ["masked", "excluded"])
def test_texts_that_the_lake_does_not_have_are_looked_for_too(tmp_path: Path, how: str) -> None:
    lake, dumps = tmp_path / "lake", tmp_path / "dumps"
    columns = {"exclude": ["owner"]} if how == "excluded" else {"mask": {"owner": {"how": "redact"}}}
    tables = {"overrides": [{"match": "shop.accounts", "columns": columns, "buckets": 2}]}
    more = {} if how == "excluded" else {"quarantine": {"seal": "a secret of quarantine"}}
    config = settings(lake, dumps, dump=LAYOUT, tables=tables, **more)
    quoted = event("accounts", "c", 110, row(2, "another person"))
    quoted["source"]["query"] = "INSERT INTO accounts VALUES (1, 'a person of note')"
    both = [event("accounts", "c", 90 + n, row(n, "of both of them")) for n in (1, 3)]
    events = [*both, event("accounts", "u", 100, row(1, "a person of note"), row(1, "of both of them")), quoted]
    records = [record(ACCOUNTS, n, one["after"]["id"], one) for n, one in enumerate(events)]
    path = write(dumps, "accounts", HOUR, "a.jsonl", as_json(records))
    replay(config)
    report = erase(config, "1")
    assert {one.text for one in report.scan.finds[path]} == {b"a person of note"}
    assert report.scan.shared == 1


def dumping(config: Settings, records: list[Record]) -> None:
    DumpService(config, Records(records), open_storage(str(config.dump.uri), {"fsync": "false"})).run(once=True)


@pytest.mark.parametrize("of_the_row", [True, False])
def test_a_dump_that_runs_beside_an_erasure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, of_the_row: bool
) -> None:
    """A roll comes after the dump was looked through. A record of the row in it is named, and the next erasure takes
    it; the dump goes on and writes nothing of the first roll again."""
    lake, dumps = tmp_path / "lake", tmp_path / "dumps"
    layout = {"path": "{topic}/dt={date}/hour={hour}/*.jsonl", "roll_seconds": 1}
    config = settings(lake, dumps, dump=layout)
    records = [record(ACCOUNTS, n, n, event("accounts", "c", 100 + n, row(n, f"o{n}"))) for n in range(3)]
    dumping(config, records)
    replay(config)
    owner = 1 if of_the_row else 2
    later = record(ACCOUNTS, 3, owner, event("accounts", "u", 200, row(owner, "x"), row(owner, f"o{owner}")))
    plan = asked(config, "1")
    assert plan.dumps is not None
    tombstones = plan.dumps._tombstones

    def meanwhile() -> frozenset[tuple[str, bytes]]:
        dumping(config, [*records, later])
        return tombstones()

    monkeypatch.setattr(plan.dumps, "_tombstones", meanwhile)
    report = dict(plan.carry_out(release_savepoints=False))[DUMPS]
    assert report.is_done == (not of_the_row)
    if of_the_row:
        assert "it came meanwhile, and has records of the row" in str(report.scan.unread)
    replay(config)
    assert erase(config, "1").is_done
    dumping(config, [*records, later])
    said = b"".join(one.read_bytes() for one in dumps.glob("s.*/*/*/*"))
    assert b'\\"id\\": 1,' not in said
    assert said.count(b'\\"id\\": 2,') == (1 if of_the_row else 3)
