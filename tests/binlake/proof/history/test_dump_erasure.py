"""A row is erased from dumps of every form: its records alone, in their places, and replays know the files again."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from binlake.load.replay.runner import replay_stream, replaying
from binlake.position.lease import StreamLease
from binlake.proof.history.erasure import DUMPS, RowErasure, plan_row_erasure
from binlake.settings import Settings
from binlake.source import dump_versions
from binlake.source.dump_layout import DumpFile, DumpLayout, Window
from binlake.source.dump_read import read_dump
from binlake.tables.catalog import catalog_table
from hudilake.errors import BadInputError, LostOwnershipError, TransientError
from hudilake.services.erasure.erase import ErasureReport
from hudilake.services.restore import restore
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.binlake.load.replay.dumped import FORMS, HOUR, Record, as_avro, as_json, lines_of, replay, settings, write
from tests.binlake.load.replay.test_replay import dumped
from tests.binlake.stream.test_exactly_once import EXPECTED, row, rows_of
from tests.binlake.stream.topic_log import event

LAYOUT = {"path": "{database}.{table}/dt={date}/hour={hour}/*"}
TOPIC = "s.shop.accounts"
Row = tuple[Any, ...]


@pytest.fixture
def place(tmp_path: Path) -> tuple[Path, Path, Settings]:
    lake, dumps = tmp_path / "lake", tmp_path / "dumps"
    return lake, dumps, settings(lake, dumps, dump=LAYOUT)


Place = tuple[Path, Path, Settings]


def asked(config: Settings, key: str, table: str = "shop.accounts") -> RowErasure:
    return plan_row_erasure(config, catalog_table(config, open_storage(config.lake.uri), table), key)


def erase(config: Settings, key: str, table: str = "shop.accounts") -> ErasureReport:
    """Erase a row everywhere; the report of the dumps."""
    reports = dict(asked(config, key, table).carry_out(release_savepoints=False))
    assert reports[table].is_done
    return reports[DUMPS]


def records_in(dumps: Path) -> dict[tuple[str, str, int, int], tuple[bytes | None, bytes | None]]:
    """File, topic, partition and offset -> key and value, of all records of a dump."""
    storage, held = open_storage(str(dumps)), {}
    for file in DumpLayout(LAYOUT["path"]).find(storage, Window()):
        for chunk in read_dump(storage, file, 7):
            for offset, key, value in zip(chunk.offsets.tolist(), chunk.keys, chunk.values, strict=True):
                held[file.path, chunk.topic, chunk.partition, offset] = (key, value)
    return held


def named(payload: bytes | None, key: int) -> bool:
    """Whether a Kafka key or an event names a row."""
    try:
        said = json.loads(payload or b"null")
    except ValueError:
        return False
    images = [said, *(said.get(name) for name in ("before", "after"))] if isinstance(said, dict) else []
    return any(isinstance(one, dict) and one.get("id") == key for one in images)


def fresh(config: Settings, lake: Path) -> dict[str, list[Row]]:
    """The rows of all tables of a new lake into which the dump is replayed."""
    other = settings(lake, str(config.dump.uri), dump=LAYOUT)
    replay(other)
    return {table: rows_of(lake, table) for table in EXPECTED}


@pytest.mark.full
@pytest.mark.parametrize("name", FORMS)
def test_the_row_leaves_the_dump_and_a_replay_finds_nothing_new(place: Place, name: str, tmp_path: Path) -> None:
    lake, dumps, config = place
    dumped(dumps, name)
    replay(config)
    before = records_in(dumps)
    report = erase(config, "7")
    assert report.scan.finds == {}, report.scan
    assert {held.path.split("/")[0] for held in report.record.files} == {"shop.accounts"}
    after = records_in(dumps)
    assert after.keys() == before.keys()
    gone = {at for at, (key, value) in before.items() if at[1] == TOPIC and (named(key, 7) or named(value, 7))}
    assert len(gone) == 2
    assert {at for at in before if after[at] != before[at]} == gone
    assert all(after[at] == (None, None) for at in gone)
    again = replay(config)
    assert (again.covered, again.taken) == (4, [])
    left = {table: [r for r in rows if table != "accounts" or r[0] != 7] for table, rows in EXPECTED.items()}
    assert {table: rows_of(lake, table) for table in EXPECTED} == left
    assert fresh(config, tmp_path / "other") == left
    shutil.rmtree(dumps / "_binlake")  # control: without the note it is a file that somebody has written again
    with pytest.raises(BadInputError, match="written again"):
        replay(config)


@pytest.mark.full
def test_a_file_that_is_erased_from_twice_is_known(place: Place) -> None:
    lake, dumps, config = place
    dumped(dumps)
    replay(config)
    for key in ("7", "8", "7"):
        erase(config, key)
    assert (replay(config).covered, replay(config).taken) == (4, [])
    path = next(dumps.glob("shop.accounts/*/*/a.jsonl.gz"))
    path.write_bytes(FORMS["a.jsonl.gz"]([(TOPIC, 0, 0, 1, None, None)]))
    with pytest.raises(BadInputError, match="written again"):
        replay(config)
    assert [r[0] for r in rows_of(lake, "accounts")] == [n for n in range(20) if n not in (3, 7, 8)]


def test_tombstones_go_with_their_delete(place: Place) -> None:
    """Also into another file than the delete, and of a row that the lake has no more."""
    _, dumps, config = place
    gone = [event("accounts", "c", 100, row(5)), event("accounts", "d", 200, row(5))]
    first = [(TOPIC, 0, n, 1, b'{"id": 5}', json.dumps(e).encode()) for n, e in enumerate(gone)]
    other = (TOPIC, 0, 3, 1, b'{"id": 6}', json.dumps(event("accounts", "c", 300, row(6))).encode())
    write(dumps, "accounts", HOUR, "a.jsonl", as_json(first))
    write(dumps, "accounts", HOUR + 1, "a.jsonl", as_json([(TOPIC, 0, 2, 1, b'{"id": 5}', None), other]))
    write(dumps, "orders", HOUR, "a.jsonl", as_json([("s.shop.orders", 0, 0, 1, b'{"id": 5}', None)]))
    replay(config)
    assert erase(config, "5").is_done
    held = {at[1:]: record for at, record in records_in(dumps).items()}
    assert [held[TOPIC, 0, n] for n in range(3)] == [(None, None)] * 3
    assert held[TOPIC, 0, 3][0] == b'{"id": 6}'
    assert held["s.shop.orders", 0, 0] == (b'{"id": 5}', None)  # a row of another table


def test_events_without_coordinates_keep_their_places(place: Place) -> None:
    lake, dumps, config = place
    events = [event("accounts", "c", 100 + n, row(n)) for n in range(4)]
    path = write(dumps, "accounts", HOUR, "a.jsonl", lines_of([*events, b"{broken"]))
    replay(config)
    report = erase(config, "1")
    assert report.scan.finds[path][0].where == "1 record of no known row"
    assert (dumps / path).read_bytes().splitlines()[1] == b"null"
    held = list(records_in(dumps).values())
    assert [value is None for _, value in held] == [False, True, False, False, False]
    assert replay(config).taken == []
    assert [r[0] for r in rows_of(lake, "accounts")] == [0, 2, 3]


def test_a_record_of_two_rows_stays_and_is_named(place: Place) -> None:
    """A row that changed its key: without the record a replay would lack the other row."""
    lake, dumps, config = place
    moved = canal([row(2, "person", "5.00")], "UPDATE", [{"id": "1"}])
    values = [canal([row(1, "person", "5.00")]), moved]
    records: list[Record] = [(TOPIC, 0, n, 1_760_000_000_000, None, value) for n, value in enumerate(values)]
    path = write(dumps, "accounts", HOUR, "a.jsonl", as_json(records))
    replay(config)
    assert [r[0] for r in rows_of(lake, "accounts")] == [2]
    plan = asked(config, "1").plans[DUMPS]
    assert plan.unread == {path: "1 record of the row and of another one"}
    report = erase(config, "1")
    assert [one.where for one in report.scan.finds[path]] == ["1 record of the row and of another one"]
    assert [value for _, value in records_in(dumps).values()] == [None, moved]
    assert replay(config).taken == []


def canal(rows: Sequence[dict[str, Any]], kind: str = "INSERT", old: Sequence[dict[str, Any]] | None = None) -> bytes:
    types = {"id": "bigint", "owner": "varchar(40)", "balance": "decimal(12,2)", "region": "varchar(10)"}
    return json.dumps(
        {
            "data": [{name: str(value) for name, value in r.items()} for r in rows],
            "database": "shop",
            "es": 1_760_000_000_000,
            "id": 7,
            "isDdl": False,
            "mysqlType": types,
            "old": old,
            "pkNames": ["id"],
            "sql": "",
            "sqlType": dict.fromkeys(types, 12),
            "table": "accounts",
            "ts": 1_760_000_000_001,
            "type": kind,
        }
    ).encode()


def test_other_rows_of_a_message_of_canal_stay(place: Place, tmp_path: Path) -> None:
    lake, dumps, config = place
    news = [row(n, f"o{n}", "5.00") for n in range(4)]
    changed = [row(n, f"p{n}", "5.00") for n in (1, 2)]
    values = [
        canal(news),
        canal(changed, "UPDATE", [{"owner": "o1"}, {"owner": "o2"}]),
        canal([row(1, "x", "5.00")], "UPDATE", [{"owner": "p1"}]),
    ]
    records: list[Record] = [(TOPIC, 0, n, 1_760_000_000_000, None, value) for n, value in enumerate(values)]
    write(dumps, "accounts", HOUR, "a.jsonl.gz", FORMS["a.jsonl.gz"](records))
    replay(config)
    assert erase(config, "1").is_done
    first, second, third = (value for _, value in records_in(dumps).values())
    assert third is None
    assert [one["id"] for one in json.loads(first or b"")["data"]] == ["0", "2", "3"]
    assert json.loads(second or b"")["old"] == [{"owner": "o2"}]
    assert replay(config).taken == []
    left = [(n, {0: "o0", 2: "p2", 3: "o3"}[n], "5.00", "eu") for n in (0, 2, 3)]
    assert rows_of(lake, "accounts") == left
    other = settings(tmp_path / "other", dumps, dump=LAYOUT)
    replay(other)
    assert rows_of(tmp_path / "other", "accounts") == left


def test_texts_of_the_row_beside_its_records_are_left(place: Place) -> None:
    """The statement in another row's event, and a file that is none of records; what other rows have proves nothing."""
    _, dumps, config = place
    quoted = event("accounts", "u", 300, row(2, "someone", region="everywhere"))
    quoted["source"]["query"] = "UPDATE accounts SET owner = 'Zoë \"Quux\" Ng' WHERE id IN (1, 2)"
    events = [event("accounts", "c", 100, row(1, 'Zoë "Quux" Ng', region="everywhere")), quoted]
    path = write(dumps, "accounts", HOUR, "a.jsonl", lines_of(events))
    (dumps / "notes.txt").write_text('ask Zoë "Quux" Ng')
    replay(config)
    report = erase(config, "1")
    assert report.scan.finds.keys() == {path, "notes.txt"}
    assert report.scan.shared == 1  # everywhere
    assert not report.is_done


def test_a_schema_that_needs_values_is_refused(place: Place) -> None:
    _, dumps, config = place
    value = json.dumps(event("accounts", "c", 100, row(1, "person"))).encode()
    data = as_avro([(TOPIC, 0, 0, 1, b'{"id": 1}', value)], needs=True)
    path = write(dumps, "accounts", HOUR, "a.avro", data)
    replay(config)
    report = erase(config, "1")
    assert "allows no record without" in report.scan.unread[path]
    assert (dumps / path).read_bytes() == data


def test_a_record_whose_key_has_another_form_is_not_told_of_no_row(place: Place) -> None:
    """A broken record of a table whose key is a date, which its connector writes as a number of days."""
    lake, dumps, _ = place
    columns = {"day": "date", "owner": "varchar(40)"}
    schemas = {"shop.orders": {"columns": columns, "key": ["day"]}}
    config = settings(lake, dumps, dump=LAYOUT, source={"schemas": schemas})
    good = event("orders", "c", 100, {"day": 20_000, "owner": "person"})
    bad = event("orders", "u", 200, {"day": 20_000, "owner": ["no text"]})
    path = write(dumps, "orders", HOUR, "a.jsonl", lines_of([good, bad]))
    replay(config)
    with_bad = asked(config, "2024-10-04", "shop.orders")
    assert with_bad.unmatched == 1
    assert with_bad.plans[DUMPS].unread == {path: "1 record of no known row"}


@pytest.mark.full
def test_a_dead_erasure_goes_on(place: Place) -> None:
    """It dies between the note and the file, and behind the first file."""
    lake, dumps, config = place
    dumped(dumps)
    replay(config)
    for calls in (1, 2, 3):
        with pytest.MonkeyPatch.context() as patch:
            _dying_after(calls, patch)
            with pytest.raises(TransientError):
                erase(config, "7")
        assert replay(config).taken == []
    assert erase(config, "7").is_done
    assert not any(at[1] == TOPIC and named(value, 7) for at, (_, value) in records_in(dumps).items())
    assert (replay(config).covered, replay(config).taken) == (4, [])
    assert 7 not in {r[0] for r in rows_of(lake, "accounts")}


def _dying_after(calls: int, patch: pytest.MonkeyPatch) -> None:
    """The calls that write note and file: the one with this number fails."""
    done = iter(range(1, 100))

    class Dying:
        def __init__(self, storage: Any) -> None:  # noqa: ANN401
            self._storage = storage

        def __getattr__(self, name: str) -> Any:  # noqa: ANN401
            return getattr(self._storage, name)

        def write(self, path: str, data: bytes) -> None:
            if next(done) == calls:
                raise TransientError("the process died", do_next="begin again")
            self._storage.write(path, data)

    rewrite = dump_versions.rewrite

    def dying(storage: Any, file: DumpFile, before: bytes, after: bytes) -> None:  # noqa: ANN401
        rewrite(Dying(storage), file, before, after)

    patch.setattr("binlake.proof.history.dump_erasure.rewrite", dying)


def test_a_portion_that_was_begun_goes_on_after_an_erasure(place: Place) -> None:
    """One table has lost the portion's commit: its rows come again, the erased one does not."""
    lake, dumps, config = place
    dumped(dumps)
    replay(config, Window(HOUR, HOUR + 1))
    table = HudiTable.open(open_storage(str(lake / "shop" / "accounts")))
    then = table.timeline.completed()[-1].requested_time
    replay(config)
    restore(HudiTable.open(open_storage(str(lake / "shop" / "accounts"))), then)
    assert rows_of(lake, "accounts") != EXPECTED["accounts"]
    assert len(erase(config, "7").record.files) == 2
    report = replay(config)
    assert (report.repeated, len(report.taken)) == (1, 2)
    assert rows_of(lake, "accounts") == [one for one in EXPECTED["accounts"] if one[0] != 7]
    assert replay(config).taken == []


def test_no_replay_runs_meanwhile(place: Place) -> None:
    _, dumps, config = place
    dumped(dumps)
    replay(config)
    before = records_in(dumps)
    state = open_storage(replaying(config).state_uri, config.state_options())
    with StreamLease(state, replay_stream(config.name)), pytest.raises(LostOwnershipError):
        erase(config, "7")
    assert records_in(dumps) == before


def _history(seed: int) -> list[dict[str, Any]]:
    """Random changes of some rows; keys change too, as Debezium writes it: a delete and an insert."""
    draw, held, events = random.Random(seed), dict[int, dict[str, Any]](), list[dict[str, Any]]()
    for position in range(100, 100 + 10 * draw.randint(5, 60), 10):
        key = draw.randrange(6)
        owner = draw.choice(["ann", "bob", "a longer name", 'quo"ted', "Zoë", ""])
        kind = draw.choice("cuudm")
        if key not in held:
            events.append(event("accounts", "c", position, row(key, owner)))
            held[key] = row(key, owner)
        elif kind == "d":
            events.append(event("accounts", "d", position, held.pop(key)))
        elif kind == "m" and (to := draw.randrange(6)) not in held:
            events.append(event("accounts", "d", position, held.pop(key)))
            held[to] = row(to, owner)
            events.append(event("accounts", "c", position + 1, held[to]))
        else:
            events.append(event("accounts", "u", position, row(key, owner), held[key]))
            held[key] = row(key, owner)
    return events


def _records(events: Iterable[dict[str, Any]]) -> list[Record]:
    records: list[Record] = []
    for one in events:
        key = json.dumps({"id": (one["after"] or one["before"])["id"]}).encode()
        records.append((TOPIC, 0, len(records), 1_760_000_000_000, key, json.dumps(one).encode()))
        if one["op"] == "d":
            records.append((TOPIC, 0, len(records), 1_760_000_000_000, key, None))
    return records


@pytest.mark.first(1)
@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(n, marks=pytest.mark.full) for n in range(6, 60))])
def test_random_dumps_without_a_row_give_the_other_rows(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    lake, dumps = tmp_path / "lake", tmp_path / "dumps"
    config = settings(lake, dumps, dump=LAYOUT)
    records = _records(_history(seed))
    for number in range(draw.randint(1, 3)):
        name = draw.choice([one for one in FORMS if not one.startswith("two")])
        cut = draw.randint(1, max(1, len(records))) if number < 2 else len(records)
        some, records = records[:cut], records[cut:]
        if some:
            write(dumps, "accounts", HOUR + number, name, FORMS[name](some))
    replay(config)
    rows, key = rows_of(lake, "accounts"), draw.randrange(6)
    left = [one for one in rows if one[0] != key]
    report = erase(config, str(key))
    assert report.is_done, report.scan
    assert rows_of(lake, "accounts") == left
    assert replay(config).taken == []
    other = settings(tmp_path / "other", dumps, dump=LAYOUT)
    if left or replay(other).taken:
        replay(other)
    found = rows_of(tmp_path / "other", "accounts") if (tmp_path / "other/shop/accounts").exists() else []
    assert found == left
    assert not any(named(one, key) for record in records_in(dumps).values() for one in record)
