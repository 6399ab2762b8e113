"""Canal's and Maxwell's messages through whole batches into tables, judged by hudi-rs, fsck and audit."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from binlake.decode.changes import SourceTable
from hudilake.errors import ConfigError
from hudilake.storage import StorageError
from tests.binlake.decode.formats import format_recordings as formats
from tests.binlake.stream.format_feed import TOPIC, Feed, canal, maxwell, unequal

TYPES = {"id": "int(11)", "name": "varchar(20)", "amount": "decimal(8,2)"}


def insert(*rows: tuple[str | None, str, str]) -> dict[str, Any]:
    data = [dict(zip(TYPES, row, strict=True)) for row in rows]
    return canal("t", "INSERT", data, types=TYPES, key=["id"])


@pytest.mark.first(1)
@pytest.mark.parametrize("form", ["canal", "maxwell"])
def test_a_recording_becomes_the_source(tmp_path: Path, form: str) -> None:
    feed = Feed(tmp_path, source={"format": form})
    values = formats.messages("shop", form).values
    for start in range(0, len(values), 900):
        for value in values[start : start + 900]:
            feed.put(value or b"")
        feed.batch()
    assert not (tmp_path / "_quarantine").exists()
    lost = {("orders", "pick_time")} if form == "maxwell" else set()  # what Maxwell wraps
    differ, more_rows = unequal(feed.rows, formats.truth("shop"))
    assert differ == lost
    assert more_rows == ({"scratch": 5} if form == "maxwell" else {}), "Maxwell writes no TRUNCATE"


def test_a_changed_key_takes_the_old_row_away(tmp_path: Path) -> None:
    """Also in a table that is not partitioned, and when the keys swap places within one statement."""
    feed = Feed(tmp_path)
    feed.put(insert(("1", "a", "1.00"), ("2", "b", "2.00"), ("3", "c", "3.00")))
    feed.batch()
    rows = [{"id": "4", "name": "c", "amount": "3.00"}, {"id": "3", "name": "b", "amount": "2.00"}]
    feed.put(canal("t", "UPDATE", rows, [{"id": "3"}, {"id": "2"}], TYPES, ["id"]))
    progress = feed.table("t")
    assert (progress.events_read, progress.applied, progress.superseded) == (2, 2, 0)
    assert feed.values("t", "id", "name") == [(1, "a"), (3, "b"), (4, "c")]


def test_a_changed_partition_column_moves_the_row(tmp_path: Path) -> None:
    feed = Feed(tmp_path, tables={"overrides": [{"match": "shop.t", "partition": {"column": "name"}, "buckets": 2}]})
    feed.put(insert(("1", "a", "1.00"), ("2", "b", "2.00")))
    row = {"id": "1", "name": "b", "amount": "1.00"}
    feed.put(canal("t", "UPDATE", [row], [{"name": "a"}], TYPES, ["id"]))
    feed.batch()
    feed.put(canal("t", "UPDATE", [row | {"amount": "9.99"}], [{"amount": "1.00"}], TYPES, ["id"]))
    feed.put(canal("t", "UPDATE", [row | {"name": "c"}], [{"name": "b"}], TYPES, ["id"]))
    feed.batch()
    assert feed.values("t", "id", "name", "amount") == [(1, "c", Decimal("1.00")), (2, "b", Decimal("2.00"))]


def test_a_message_is_quarantined_whole_once_and_replayed_whole_once(tmp_path: Path) -> None:
    feed = Feed(tmp_path)
    feed.put(insert(("1", "a", "1.00")))
    unknown = canal("t", "INSERT", [{"id": "2", "name": "b", "amount": "2.00"}, {"id": "3", "name": "c"}], key=["id"])
    feed.put(unknown)  # nobody knows its types
    bad = insert(("4", "d", "4.00"), ("x", "e", "5.00"), ("6", "f", "six"))
    feed.put(bad)
    feed.put(insert(("5", "g", "5.00")))
    progress = feed.table("t")
    assert (progress.events_read, progress.applied, progress.quarantined) == (4, 2, 2)
    assert feed.quarantined() == [(1, "no_schema"), (2, "bad_value")]
    (held,) = [h for h in feed.held() if h.offset == 2]
    assert held.detail.startswith("rows 1, 2 of 3 (from 0), the first: column id (int(11)) cannot take")
    assert held.value == json.dumps(bad).encode()
    assert feed.values("t", "id") == [(1,), (5,)]
    feed.start(source={"schemas": {"shop.t": {"columns": TYPES, "key": ["id"]}}})
    for applied, failed in ((1, 1), (0, 1)):
        replayed = feed.replay()
        assert (replayed.applied, replayed.failed) == (applied, failed)
        assert feed.values("t", "id") == [(1,), (2,), (3,), (5,)]
    assert feed.quarantined() == [(2, "bad_value")]


def test_a_replayed_message_never_beats_newer_rows(tmp_path: Path) -> None:
    feed = Feed(tmp_path)
    feed.put(canal("t", "INSERT", [dict(zip(TYPES, ("1", "old", "1"), strict=True))], key=["id"]))
    feed.put(insert(("1", "new", "2.00")))
    feed.batch()
    feed.start(source={"schemas": {"shop.t": {"columns": TYPES, "key": ["id"]}}})
    assert feed.replay().applied == 1
    assert feed.values("t", "id", "name") == [(1, "new")]


def test_a_row_without_its_key_takes_its_message_along(tmp_path: Path) -> None:
    """The key is the settings', so it is found after decoding: the record stays one."""
    feed = Feed(tmp_path, tables={"overrides": [{"match": "shop.t", "key": ["name"], "buckets": 2}]})
    feed.put(insert(("1", "a", "1.00")))
    data = [{"id": "2", "name": "b", "amount": "1"}, {"id": "3", "name": None, "amount": "1"}]
    feed.put(canal("t", "INSERT", data, types=TYPES, key=["id"]))  # type: ignore[arg-type]
    progress = feed.table("t")
    assert (progress.events_read, progress.applied, progress.quarantined) == (2, 1, 1)
    assert feed.quarantined() == [(1, "null_key")]
    assert feed.values("t", "name") == [("a",)]


def test_a_key_of_the_settings_may_change_too(tmp_path: Path) -> None:
    """The decoder knows the source's key alone: before images are asked for where the lake has another one."""
    feed = Feed(tmp_path, tables={"overrides": [{"match": "shop.t", "key": ["name"], "buckets": 2}]})
    feed.put(insert(("1", "a", "1.00"), ("2", "b", "2.00")))
    feed.batch()
    feed.put(canal("t", "UPDATE", [{"id": "1", "name": "c", "amount": "1.00"}], [{"name": "a"}], TYPES, ["id"]))
    feed.batch()
    assert feed.values("t", "id", "name") == [(1, "c"), (2, "b")]


def test_truncate_and_statements(tmp_path: Path) -> None:
    feed = Feed(tmp_path)
    feed.put(insert(("1", "a", "1.00"), ("2", "b", "2.00")))
    feed.batch()
    feed.put(insert(("3", "c", "3.00")))
    feed.put(canal("t", "TRUNCATE", None, sql="TRUNCATE TABLE t"))
    feed.put(canal("", "QUERY", None, database="", isDdl=False, sql="INSERT INTO t VALUES (4)"))
    feed.put(insert(("4", "d", "4.00")))
    event = feed.batch()
    (progress,) = [t for t in event.tables if t.table == "shop.t"]
    assert (progress.events_read, progress.applied, progress.superseded) == (3, 2, 1)
    assert event.filtered == {"query": 1}
    assert feed.values("t", "id") == [(4,)]


@pytest.mark.parametrize("lost", [False, True], ids=["ledger", "no ledger"])
def test_a_table_without_a_key_keeps_equal_rows(tmp_path: Path, lost: bool) -> None:
    """Rows of one message have one offset: they are told apart by their place in it."""
    feed = Feed(tmp_path)
    types = {"who": "varchar(9)", "n": "int(11)"}
    twin, other = {"who": "a", "n": "1"}, {"who": "b", "n": None}
    data: list[dict[str, Any]] = [twin, twin, twin, other]
    feed.put(canal("log", "INSERT", data, types=types))
    feed.batch()
    changed: list[dict[str, str | None]] = [{"who": "a", "n": "2"}] * 2
    feed.put(canal("log", "UPDATE", changed, [{"n": "1"}] * 2, types))
    feed.put(canal("log", "DELETE", [{"who": "b", "n": None}], types=types))
    feed.batch()
    if lost:
        (tmp_path / ".binlake/shop/ledger.json").unlink()
    feed.start()
    feed.put(canal("log", "INSERT", [{"who": "c", "n": "7"}], types=types))
    feed.batch()
    assert feed.values("log", "who", "n") == [("a", 1), ("a", 2), ("a", 2), ("c", 7)]


# -- Maxwell ---------------------------------------------------------------------------------------------------------


def created(*columns: dict[str, Any], sql: str, position: int, kind: str = "table-create") -> dict[str, Any]:
    definition = {"database": "shop", "charset": "utf8mb4", "table": "t", "columns": columns, "primary-key": ["id"]}
    place = {"ts": 1_795_241_823_000, "position": f"bin.000001:{position}", "sql": sql}
    return {"type": kind, "database": "shop", "table": "t", "def": definition, **place}


ID = {"type": "int", "name": "id", "signed": True}
NAME = {"type": "varchar", "name": "name", "charset": "utf8mb4"}
AMOUNT = {"type": "decimal", "name": "amount"}
CREATE = created(ID, AMOUNT, sql="CREATE TABLE t (id INT PRIMARY KEY, amount DECIMAL(8,2))", position=10)
WIDEN = created(
    {**ID, "type": "bigint"},
    AMOUNT,
    NAME,
    sql="ALTER TABLE t MODIFY id BIGINT NOT NULL, ADD name VARCHAR(20)",
    position=1_000,
    kind="table-alter",
)


def test_maxwell_says_what_its_tables_are_among_their_rows(tmp_path: Path) -> None:
    feed = Feed(tmp_path)
    feed.put(CREATE)
    feed.put(maxwell("t", "insert", {"id": 1, "amount": 1.5}, position=100))
    feed.batch()
    assert feed.values("t", "id", "amount") == [(1, Decimal("1.50"))]
    feed.put(maxwell("t", "insert", {"id": 2, "amount": 2}, position=200))
    feed.batch()
    feed.start()  # the topic is not read again: what it said of the table is in the stream's state
    feed.put(maxwell("t", "update", {"id": 2, "amount": 2.25}, {"amount": 2}, position=300))
    feed.put(WIDEN)
    feed.put(maxwell("t", "insert", {"id": 1 << 40, "amount": 3, "name": "wide"}, position=1_100))
    feed.batch()
    assert not (tmp_path / "_quarantine").exists()
    assert feed.values("t", "id", "amount") == [(1, Decimal("1.50")), (2, Decimal("2.25")), (1 << 40, Decimal("3.00"))]
    assert {row["name"] for row in feed.rows("t")} == {None, "wide"}


def test_the_definition_may_be_in_another_partition(tmp_path: Path) -> None:
    feed = Feed(tmp_path)
    feed.put(maxwell("t", "insert", {"id": 1, "amount": 1}, position=100), partition=0)
    feed.put(CREATE, partition=1)
    feed.batch()
    assert feed.values("t", "id") == [(1,)]
    assert feed.engine.calls == 2, "the batch was run again when the definition was known"


def test_lost_definitions_lose_no_row(tmp_path: Path) -> None:
    feed = Feed(tmp_path)
    feed.put(CREATE)
    feed.put(maxwell("t", "insert", {"id": 1, "amount": 1}, position=100))
    feed.batch()
    (tmp_path / ".binlake/shop/definitions.json").unlink()
    feed.start()
    feed.put(maxwell("t", "insert", {"id": 2, "amount": 2}, position=200))
    feed.batch()
    assert feed.quarantined() == [(2, "no_schema")]
    feed.start(source={"schemas": {"shop.t": {"columns": {"id": "int", "amount": "decimal(8,2)"}, "key": ["id"]}}})
    assert feed.replay().applied == 1
    assert feed.values("t", "id") == [(1,), (2,)]


def test_definitions_that_the_store_did_not_take_are_kept_by_the_next_try(tmp_path: Path) -> None:
    feed, stored = Feed(tmp_path), tmp_path / ".binlake/shop/definitions.json"
    feed.put(CREATE)
    feed.put(maxwell("t", "insert", {"id": 1, "amount": 1}, position=100))
    feed.batch()
    stored.rename(aside := tmp_path / "aside")
    stored.mkdir()  # no file can be there now
    feed.put(WIDEN)
    feed.put(maxwell("t", "insert", {"id": 2, "amount": 2, "name": "b"}, position=1_100))
    with pytest.raises(StorageError):
        feed.batch()
    stored.rmdir()
    aside.rename(stored)
    feed.batch()
    feed.start()
    feed.put(maxwell("t", "insert", {"id": 1 << 40, "amount": 3, "name": "wide"}, position=1_200))
    feed.batch()
    assert feed.values("t", "id", "name") == [(1, None), (2, "b"), (1 << 40, "wide")]
    assert "ALTER TABLE t" in stored.read_text()


def test_a_changed_key_of_maxwell(tmp_path: Path) -> None:
    feed = Feed(tmp_path)
    feed.put(CREATE)
    feed.put(maxwell("t", "insert", {"id": 1, "amount": 1}, position=100))
    feed.batch()
    feed.put(maxwell("t", "update", {"id": 2, "amount": 1}, {"id": 1}, position=200))
    feed.batch()
    assert feed.values("t", "id") == [(2,)]


def test_a_bootstrap_never_beats_a_streamed_row(tmp_path: Path) -> None:
    feed = Feed(tmp_path)
    feed.put(CREATE)
    feed.put(maxwell("t", "bootstrap-start"))
    feed.put(maxwell("t", "bootstrap-insert", {"id": 1, "amount": 1}))
    feed.put(maxwell("t", "insert", {"id": 2, "amount": 22}, position=200))
    feed.put(maxwell("t", "delete", {"id": 3, "amount": 3}, position=300))
    feed.batch()
    for key in (2, 3, 4):
        feed.put(maxwell("t", "bootstrap-insert", {"id": key, "amount": key}))
    feed.put(maxwell("t", "bootstrap-complete"))
    feed.batch()
    assert feed.values("t", "id", "amount") == [(1, Decimal("1.00")), (2, Decimal("22.00")), (4, Decimal("4.00"))]


def test_a_maxwell_without_positions_goes_by_offset_if_told_to(tmp_path: Path) -> None:
    feed = Feed(tmp_path)
    feed.put(placeless(CREATE))
    feed.put(placeless(maxwell("t", "insert", {"id": 1, "amount": 1})))
    feed.batch()
    assert feed.quarantined() == [(1, "no_position")]
    assert "source.maxwell.order: offset" in feed.held()[0].detail
    feed.start(source={"maxwell": {"order": "offset"}})
    assert feed.replay().applied == 1
    feed.put(placeless(maxwell("t", "update", {"id": 1, "amount": 2}, {"amount": 1})))
    feed.put(placeless(maxwell("t", "update", {"id": 2, "amount": 3}, {"id": 1, "amount": 2})))
    feed.put(placeless(maxwell("t", "bootstrap-insert", {"id": 7, "amount": 7})))
    feed.batch()
    assert feed.values("t", "id", "amount") == [(2, Decimal("3.00")), (7, Decimal("7.00"))]


def of_t(kind: str, columns: str, sql: str, former: str = "") -> dict[str, Any]:
    """A statement about ``shop.t`` without a position; all columns are INT."""

    def defined(names: str) -> dict[str, Any]:
        listed = [{"name": name, "type": "int", "signed": True} for name in names.split()]
        return {"database": "shop", "charset": "utf8mb4", "table": "t", "columns": listed, "primary-key": ["id"]}

    old = {"old": defined(former)} if former else {}
    head = {"type": kind, "database": "shop", "table": "t", "ts": 1_760_000_000_000, "sql": sql}
    return head | {"def": defined(columns)} | old


def placeless(message: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in message.items() if k not in ("position", "xid", "commit")}


STATEMENTS: dict[str, tuple[str, str, dict[str, Any], list[tuple[Any, ...]]]] = {
    "rename": ("CHANGE a b INT", "id b", {"b": 2}, [(1, 1), (2, 2)]),
    "default": ("ADD b INT DEFAULT 7", "id a b", {"a": 2, "b": 3}, [(1, 7), (2, 3)]),
    "default and null": ("ADD b INT DEFAULT 7", "id a b", {"a": 2, "b": None}, [(1, 7), (2, None)]),
}


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_by_offset_changes_the_rows_before_it_alone(tmp_path: Path, name: str, restarts: bool) -> None:
    """Rows behind it, of the same second and of later batches, have the values of their messages."""
    text, columns, row, expected = STATEMENTS[name]
    by_offset = {"source": {"maxwell": {"order": "offset"}}}
    feed = Feed(tmp_path, **by_offset)
    feed.put(of_t("table-create", "id a", "CREATE TABLE t (id INT PRIMARY KEY, a INT)"))
    feed.put(placeless(maxwell("t", "insert", {"id": 1, "a": 1})))
    feed.put(of_t("table-alter", columns, f"ALTER TABLE t {text}", "id a"))
    feed.put(placeless(maxwell("t", "insert", {"id": 2, **row})))
    for key in (3, 4):
        feed.batch()
        if restarts:
            feed.start(**by_offset)
        feed.put(placeless(maxwell("t", "insert", {"id": key, **row})))
    feed.batch()
    assert feed.values("t", "id", "b") == [*expected, (3, expected[1][1]), (4, expected[1][1])]


def test_statements_of_another_topic_have_no_offset_among_the_rows(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="ddl_kafka_topic"):
        Feed(tmp_path, source={"maxwell": {"order": "offset"}}, kafka={"ddl_topics": ["ddl"]})


def test_all_formats_in_one_topic(tmp_path: Path) -> None:
    """Told message by message; each table has one writer."""
    feed = Feed(tmp_path)
    feed.put(CREATE)
    feed.put(canal("c", "INSERT", [{"id": "1"}], types={"id": "int(11)"}, key=["id"]))
    feed.put(maxwell("t", "insert", {"id": 1, "amount": 1}, position=100))
    feed.put(b'{"broken')
    event = feed.batch()
    assert feed.values("c", "id") == feed.values("t", "id") == [(1,)]
    assert feed.quarantined() == [(3, "malformed_json")]
    assert {p.topic for p in event.partitions} == {TOPIC}
    assert SourceTable("shop", "t") in feed.runner.ledger.tables
