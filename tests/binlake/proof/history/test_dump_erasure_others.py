"""An erasure from dumps leaves every record of other rows, and says what it cannot tell of no row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from binlake.proof.history.erasure import DUMPS
from binlake.settings import Settings
from hudilake.errors import BadInputError
from hudilake.storage import open_storage
from tests.binlake.load.replay.dumped import HOUR, Record, as_json, lines_of, replay, settings, write
from tests.binlake.proof.history.test_dump_erasure import LAYOUT, TOPIC, asked, canal, erase, place, records_in
from tests.binlake.schema.ddl_source import DdlSource, Follower
from tests.binlake.stream.test_exactly_once import row
from tests.binlake.stream.topic_log import event
from tests.judges import hudi_rs

__all__ = ["place"]
Place = tuple[Path, Path, Settings]
STAMP = 1_760_000_000_000


def record(offset: int, key: int | None, value: dict[str, Any] | bytes | None, topic: str = TOPIC) -> Record:
    data = json.dumps(value).encode() if isinstance(value, dict) else value
    return topic, 0, offset, STAMP, None if key is None else json.dumps({"id": key}).encode(), data


def test_the_number_of_a_message_of_canal_is_no_key(place: Place) -> None:
    """A message that is in quarantine has a member ``id``, the message's own number."""
    _, dumps, config = place
    bad = canal([{**row(1, "person", "5.00"), "balance": "no number"}])
    assert json.loads(bad)["id"] == 7
    good = canal([row(7, "seventh", "5.00"), row(2, "second", "5.00")])
    write(dumps, "accounts", HOUR, "a.jsonl", as_json([record(0, None, good), record(1, None, bad)]))
    replay(config)
    erase(config, "7")
    assert [value for _, value in records_in(dumps).values()][1] == bad


def test_a_broken_record_of_another_table_stays(place: Place) -> None:
    _, dumps, config = place
    write(dumps, "accounts", HOUR, "a.jsonl", as_json([record(0, 7, event("accounts", "c", 100, row(7)))]))
    topic = "s.shop.orders"
    good, broken = record(0, 1, event("orders", "c", 200, row(1)), topic), record(1, 7, b"{broken", topic)
    path = write(dumps, "orders", HOUR, "a.jsonl", as_json([good, broken]))
    own = write(dumps, "accounts", HOUR + 1, "a.jsonl", as_json([record(1, 7, b"{broken")]))
    replay(config)
    report = erase(config, "7")
    held = {at[1:]: value for at, (_, value) in records_in(dumps).items()}
    assert held == {(TOPIC, 0, 0): None, (topic, 0, 0): good[5], (topic, 0, 1): b"{broken", (TOPIC, 0, 1): None}
    assert [one.where for one in report.scan.finds[path]] == ["1 record of no known row"]
    assert own not in report.scan.finds


def test_a_bad_record_of_several_rows_stays(place: Place) -> None:
    """It is in quarantine as a whole, so what it says of the other row is not in the lake. Nor does it leave the
    quarantine, where it waits."""
    _, dumps, config = place
    bad = canal([row(1, "person", "5.00"), {**row(2, "second", "5.00"), "balance": "no number"}])
    good = canal([row(n, "someone", "5.00") for n in range(3, 9)])
    path = write(dumps, "accounts", HOUR, "a.jsonl", as_json([record(0, None, good), record(1, None, bad)]))
    replay(config)
    plan = asked(config, "1")
    assert (plan.quarantined, plan.unmatched) == (frozenset(), 1)
    report = dict(plan.carry_out(release_savepoints=False))[DUMPS]
    assert [value for _, value in records_in(dumps).values()] == [good, bad]
    assert [one.where for one in report.scan.finds[path] if one.text is None] == [
        "1 record of the row and of another one"
    ]


def test_another_record_with_the_same_coordinates_stays(place: Place) -> None:
    """A topic that was made again begins at 0; the file has more records than are read at once."""
    _, dumps, config = place
    first = record(0, 7, event("accounts", "c", 100, row(7)))
    fill = [record(n, 8, event("accounts", "u", 200 + n, row(8, f"o{n}"), row(8))) for n in range(1, 10_000)]
    again = record(0, 9, event("accounts", "c", 20_000, row(9)))
    path = write(dumps, "accounts", HOUR, "a.jsonl", as_json([first, *fill, again]))
    replay(config)
    erase(config, "7")
    lines = (dumps / path).read_bytes().splitlines()
    assert [json.loads(lines[n])["value"] for n in (0, -1)] == [None, again[5].decode() if again[5] else None]


def test_a_file_that_changes_meanwhile_is_not_written(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was looked through before; what it has now is not in the tables."""
    _, dumps, config = place
    events = [event("accounts", "c", 100 + n, row(n)) for n in range(3)]
    path = write(dumps, "accounts", HOUR, "a.jsonl", lines_of(events))
    replay(config)
    plan = asked(config, "1")
    assert plan.dumps is not None
    more = lines_of([*events, event("accounts", "c", 200, row(1, "again")), event("accounts", "c", 210, row(5))])
    tombstones = plan.dumps._tombstones

    def meanwhile() -> frozenset[tuple[str, bytes]]:
        (dumps / path).write_bytes(more)
        return tombstones()

    monkeypatch.setattr(plan.dumps, "_tombstones", meanwhile)
    report = dict(plan.carry_out(release_savepoints=False))[DUMPS]
    assert not report.is_done
    assert (dumps / path).read_bytes() == more
    with pytest.raises(BadInputError, match="written again"):
        replay(config)
    assert erase(config, "1").is_done


def day_of(offset: int, days: int, order: int | None, *, framed: bool = False) -> Record:
    """A record of a table whose key is a date; without ``order`` a tombstone."""
    key = {"schema": None, "payload": {"day": days}} if framed else {"day": days}
    value = None if order is None else json.dumps(event("orders", "c", order, {"day": days, "n": 1})).encode()
    return "s.shop.orders", 0, offset, STAMP, json.dumps(key).encode(), value


@pytest.mark.parametrize("framed", [False, True])
def test_a_tombstone_whose_key_may_be_the_row_is_named(tmp_path: Path, *, framed: bool) -> None:
    """The tombstone spells the key as the row's record, or otherwise. That of another row is known by its record."""
    lake, dumps = tmp_path / "lake", tmp_path / "dumps"
    schemas = {"shop.orders": {"columns": {"day": "date", "n": "int"}, "key": ["day"]}}
    config = settings(lake, dumps, dump=LAYOUT, source={"schemas": schemas})
    records = [day_of(0, 20_000, None), day_of(1, 20_001, 100), day_of(2, 20_001, None)]
    write(dumps, "orders", HOUR, "a.jsonl", as_json(records))
    write(dumps, "orders", HOUR + 1, "a.jsonl", as_json([day_of(3, 20_000, 50, framed=framed)]))
    replay(config)
    report = erase(config, "2024-10-04", "shop.orders")
    held = {at[3]: record for at, record in records_in(dumps).items()}
    assert held[3] == (None, None)
    assert (held[0] == (None, None), report.is_done) == (not framed, not framed)
    assert held[2] == (records[2][4], None)
    if framed:
        assert list(report.scan.unread.values()) == ["1 tombstone may have the row's key in other words"]


def test_what_rows_records_do_not_name_is_said(tmp_path: Path) -> None:
    """The versions of a history table are erased alone: the dump feeds the table of the rows, too."""
    lake, dumps = tmp_path / "lake", tmp_path / "dumps"
    tables = {"history": [{"table": "shop.accounts", "to": "shop.accounts_history"}]}
    config = settings(lake, dumps, dump=LAYOUT, tables=tables)
    write(dumps, "accounts", HOUR, "a.jsonl", as_json([record(0, 7, event("accounts", "c", 100, row(7)))]))
    replay(config)
    assert "only files with one of its texts are known" in str(erase(config, "7", "shop.accounts_history").scan.unread)
    assert erase(config, "7").is_done


PLAIN = {
    "kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": ["app.people"]},
    "source": {
        "format": "json",
        "plain": [
            {
                "topics": ["app.people"],
                "table": "shop.accounts",
                "columns": {"id": "bigint", "owner": "varchar(40)"},
                "key": ["id"],
            }
        ],
    },
}


def test_plain_records_that_were_emptied_are_no_bad_input(tmp_path: Path) -> None:
    lake, dumps = tmp_path / "lake", tmp_path / "dumps"
    config = settings(lake, dumps, dump=LAYOUT, **PLAIN)
    records = [record(n, n, {"id": n, "owner": f"person{n}"}, "app.people") for n in range(4)]
    records.append(record(4, 2, None, "app.people"))
    records.append(record(5, 1, {"id": 1, "owner": "again"}, "app.people"))
    write(dumps, "accounts", HOUR, "a.jsonl", as_json(records))
    replay(config)
    assert erase(config, "1").is_done
    assert erase(config, "2").is_done
    assert erase(config, "3").is_done
    other = settings(tmp_path / "other", dumps, dump=LAYOUT, **PLAIN)
    replay(other)
    assert [one["id"] for one in hudi_rs.snapshot(tmp_path / "other/shop/accounts").to_pylist()] == [0]
    assert not (tmp_path / "other" / other.quarantine_path).exists()


def test_a_row_of_a_dropped_table_of_the_same_name_leaves_too(tmp_path: Path) -> None:
    """A replay leaves out what came before DROP TABLE; the dump has it."""
    source = DdlSource()
    source.create("t", {"id": "int", "n": "int"})
    lake, dumps = tmp_path / "lake", tmp_path / "dumps"
    dump = {"uri": str(dumps), "options": {"fsync": "false"}, **LAYOUT}
    stream = Follower(source, lake, more={"dump": dump})
    source.put("t", 1, n=1)
    source.put("t", 2, n=1)
    stream.run()
    source.drop_table("t")
    stream.run()
    source.create("t", {"id": "int", "n": "int"}, snapshot=False)
    source.put("t", 3, n=1)
    stream.run()
    records: list[Record] = [
        (topic, partition, offset, STAMP, key, value)
        for (topic, partition), held in source.log.records.items()
        for offset, (key, value) in enumerate(held)
    ]
    write(dumps, "t", HOUR, "a.jsonl", as_json(records))
    ddl: list[Record] = [("s", 0, n, STAMP, None, value) for n, value in enumerate(source.ddl)]
    open_storage(str(dumps)).write("_ddl/s.jsonl", as_json(ddl))
    before = records_in(dumps)
    assert erase(stream.settings(), "1", "shop.t").is_done
    after = records_in(dumps)
    gone = [at for at in before if after[at] != before[at]]
    assert [before[at][0] for at in gone] == [b'{"id": 1}']
    assert all(after[at] == (None, None) for at in gone)
