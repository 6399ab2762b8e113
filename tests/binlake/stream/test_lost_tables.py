"""Tables and files that vanish from the lake, and older copies in their place, while the ledger knows more of them."""

from __future__ import annotations

import dataclasses
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from binlake.cli.app import app
from binlake.decode.changes import SourceTable
from binlake.position.held_tables import ResyncStep
from binlake.position.table_requests import change_request, forgotten, load_requests
from binlake.settings import Settings
from binlake.stream.tables.between_batches import complain_of_tables
from binlake.tables.presence import LostTableError
from binlake.tables.resync_request import resync_request
from hudilake.errors import ConfigError, TableStoppedError
from hudilake.storage import open_storage
from tests.binlake.cli.fed_lake import TABLES, FedLake
from tests.binlake.stream.topic_log import event
from tests.hypothesis_profile import scaled
from tests.judges import hudi_rs

A, B = SourceTable("shop", "a"), SourceTable("shop", "b")


def rows_of(lake: FedLake, name: str) -> dict[int, str]:
    return {r["id"]: r["owner"] for r in hudi_rs.snapshot(f"{lake.path}/shop/{name}").to_pylist()}


def all_rows(lake: FedLake) -> dict[int, str]:
    last = lake.batches - 1
    return {key: f"o{last}" for key in range(last + 1) if key != last - 3}


def stands_right(lake: FedLake, name: str) -> bool:
    return rows_of(lake, name) == all_rows(lake)


def gone_directory(table: Path) -> None:
    shutil.rmtree(table)


def gone_definition(table: Path) -> None:
    shutil.rmtree(table / ".hoodie")


def gone_timeline(table: Path) -> None:
    shutil.rmtree(table / ".hoodie" / "timeline")


def gone_properties(table: Path) -> None:
    for file in (table / ".hoodie").glob("hoodie.properties*"):
        file.unlink()


LOSSES: tuple[Callable[[Path], None], ...] = (gone_directory, gone_definition, gone_timeline, gone_properties)


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("lose", "running"),
    [*((one, False) for one in LOSSES), (gone_directory, True), (gone_timeline, True)],
    ids=lambda one: getattr(one, "__name__", "while the stream runs" if one else "between two runs"),
)
def test_a_lost_table_stops_alone_and_every_command_says_so(
    tmp_path: Path, lose: Callable[[Path], None], running: bool
) -> None:
    lake = FedLake(tmp_path)
    lake.feed(4)
    kept = shutil.copytree(lake.path / "shop/a", tmp_path / "copy")
    lose(lake.path / "shop/a")
    if not running:
        lake.start()
    lake.batch()
    lake.start()
    lake.batch()
    assert [stop.kind for stop in lake.runner.ledger.stopped.values()] == ["LostTableError"]
    assert stands_right(lake, "b")
    with pytest.raises(TableStoppedError, match=r"shop\.a.*gone"):
        complain_of_tables(lake.runner.ledger)
    for command in ("audit", "status --no-kafka"):
        words = command.split()
        said = lake.run(words[0], *words[1:])
        assert said.exit_code == 66, said.output
        assert "shop.a" in said.output
        assert "gone" in said.output
    shutil.rmtree(lake.path / "shop/a", ignore_errors=True)
    shutil.copytree(kept, lake.path / "shop/a")
    lake.go_on()
    assert lake.runner.ledger.stopped == {}
    for name in TABLES:
        lake.check(name=name)
    assert lake.run("audit").exit_code == 0


def replayable(lake: FedLake) -> None:
    """Quarantine a record of ``shop.a`` that the settings take afterwards."""
    row = {"id": 7777, "owner": "strange", "balance": "AfQ=", "region": "eu", "colour": "red"}
    lake.log.add("s.shop.a", event("a", "u", 9, row), {"id": 7777})
    lake.feed(2)
    document = json.loads(lake.conf.read_text())
    document["source"]["schemas"]["shop.a"]["columns"]["colour"] = "varchar(10)"
    lake.conf.write_text(json.dumps(document))


def test_quarantined_records_do_not_begin_a_lost_table_anew(tmp_path: Path) -> None:
    lake = FedLake(tmp_path)
    lake.feed(1)
    replayable(lake)
    gone_directory(lake.path / "shop/a")
    done = lake.run("quarantine replay")
    assert (done.exit_code != 0, isinstance(done.exception, LostTableError)) == (True, True), done.output
    assert not (lake.path / "shop/a").exists()
    assert [group["waiting"] for group in lake.json("quarantine list")] == [1]


@pytest.mark.parametrize("command", ["compact", "clean", "archive", "cluster", "audit"])
def test_commands_say_that_a_named_table_is_lost_and_make_no_new_one(tmp_path: Path, command: str) -> None:
    lake = FedLake(tmp_path)
    lake.feed(2)
    gone_directory(lake.path / "shop/a")
    done = lake.run(command, "shop.a")
    assert (done.exit_code, "the table is gone: the ledger says that it has commits" in done.output) == (66, True)
    assert not (lake.path / "shop/a").exists()


def test_a_compaction_says_that_a_log_file_is_lost(tmp_path: Path) -> None:
    lake = FedLake(tmp_path, {"compaction": {"mode": "off"}})
    lake.feed(4)
    piece = next(piece for piece in lake.table().file_slices() if piece.log_files)
    (lake.path / "shop/a" / piece.log_files[0].path).unlink()
    done = lake.run("compact", "shop.a", "--now")
    assert (done.exit_code, "a file that the table names is gone" in done.output) == (66, True), done.output


def test_a_forgotten_table_begins_anew_with_the_records_that_wait(tmp_path: Path) -> None:
    lake = FedLake(tmp_path)
    lake.feed(4)
    assert isinstance(lake.run("table forget", "shop.a").exception, ConfigError)
    shutil.rmtree(lake.path / "shop/a")
    lake.start()
    lake.batch()
    said = lake.run("table forget", "shop.a")
    assert said.exit_code == 0, said.output
    lake.go_on()
    lake.feed(1)
    assert lake.runner.ledger.stopped == {}
    assert stands_right(lake, "a")  # here every batch names all rows
    assert lake.run("audit").exit_code == 0
    shutil.rmtree(lake.path / "shop/a")
    lake.start()
    lake.batch()
    assert list(lake.runner.ledger.stopped) == [A], "a request to forget is carried out once"


def test_what_is_left_of_a_table_must_be_moved_away_before_it_is_forgotten(tmp_path: Path) -> None:
    lake = FedLake(tmp_path)
    lake.feed(2)
    gone_definition(lake.path / "shop/a")
    lake.start()
    said = lake.run("table forget", "shop.a")
    assert "move the directory away" in str(said.exception)
    (lake.path / ".binlake/shop/ledger.json").unlink()
    lake.start()  # nothing knows of the table now, but its files are there
    (told,) = (t.error for t in lake.batch().tables if t.table == "shop.a")
    assert told is not None
    assert "there are files where the new table would be" in told


def test_a_lost_table_is_fetched_anew(tmp_path: Path) -> None:
    lake = FedLake(tmp_path)
    lake.feed(4)
    shutil.rmtree(lake.path / "shop/a")
    lake.start()
    document = lake.conf.read_text().replace(
        '"schemas"', '"debezium": {"signal_topic": "sig", "notification_topic": "note"}, "schemas"'
    )
    lake.conf.write_text(document)
    asked = resync_request(Settings.load(lake.conf), lake.runner.ledger, A)
    assert (asked.origin, asked.prefix) == (A, "s")
    state = open_storage(f"{lake.path}/.binlake/shop")
    change_request(state, A, lambda request: dataclasses.replace(forgotten(request), resync=asked))
    assert load_requests(state)[A].forget_ms
    lake.start()
    assert lake.runner.ledger.stopped == {}
    assert lake.runner.ledger.resyncs[A].step is ResyncStep.ASKED


def test_a_table_whose_path_changes_is_not_begun_anew(tmp_path: Path) -> None:
    lake = FedLake(tmp_path)
    lake.feed(3)
    lake.conf.write_text(lake.conf.read_text().replace('"tables": {', '"tables": {"path": "other/{table}", '))
    lake.settings = Settings.load(lake.conf)
    lake.start()
    assert {stop.kind for stop in lake.runner.ledger.stopped.values()} == {"LostTableError"}
    assert "another path than before (shop/a)" in lake.runner.ledger.stopped[A].what
    (lake.path / "shop").rename(lake.path / "other")
    lake.go_on()
    lake.feed(1)
    assert {r["id"] for r in hudi_rs.snapshot(f"{lake.path}/other/a").to_pylist()} == set(all_rows(lake))


def test_exchanged_directories_stop_both_tables(tmp_path: Path) -> None:
    lake = FedLake(tmp_path)
    lake.feed(3)
    for here, there in (("a", "c"), ("b", "a"), ("c", "b")):
        (lake.path / "shop" / here).rename(lake.path / "shop" / there)
    lake.start()
    lake.batch()
    assert lake.runner.ledger.stopped.keys() == {A, B}
    assert "holds shop.b, not shop.a" in lake.runner.ledger.stopped[A].what


@pytest.mark.first(1)
@pytest.mark.parametrize("seed", range(scaled(2)))
def test_random_losses_and_older_copies(tmp_path: Path, seed: int) -> None:
    """Whatever becomes of directories between two batches: a table has all its rows afterwards, or it is stopped."""
    chance = random.Random(seed)
    lake, copies = FedLake(tmp_path), dict[str, list[Path]]()
    for step in range(12):
        lake.feed_any()
        for name in TABLES:
            place = lake.path / "shop" / name
            if place.exists() and SourceTable("shop", name) not in lake.runner.ledger.stopped and chance.random() < 0.5:
                copies.setdefault(name, []).append(shutil.copytree(place, tmp_path / f"copy-{name}-{step}"))
        name = chance.choice(TABLES)
        place = lake.path / "shop" / name
        what = chance.choice(("nothing", "lose", "older", "newest"))
        if what == "lose" and place.exists():
            lose = chance.choice(LOSSES)
            if lose is gone_directory or (place / ".hoodie/timeline").exists():
                lose(place)
        elif what in ("older", "newest") and name in copies:
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(copies[name][-1] if what == "newest" else chance.choice(copies[name]), place)
        if chance.random() < 0.6:
            lake.start()
    lake.start()
    lake.feed_any()
    for source in lake.runner.tables.due():
        lake.runner.catch_up(source, lake.engine)
    stopped = lake.runner.ledger.stopped
    for name in TABLES:
        source = SourceTable("shop", name)
        assert source in stopped or stands_right(lake, name), (name, what)
    assert lake.runner.ledger.late == []
    audited = lake.run("audit")
    lost = [source for source, stop in stopped.items() if stop.kind == "LostTableError"]
    assert all(str(source) in audited.output for source in lost)
    assert (audited.exit_code != 0) >= bool(lost)


def data_files(table: Path) -> list[Path]:
    return [f for f in table.rglob("*") if f.is_file() and (f.suffix == ".parquet" or ".log." in f.name)]


@pytest.mark.first(2)
@pytest.mark.parametrize(
    "rules",
    [
        {"type": "copy_on_write"},
        {"index": {"type": "record_index"}},
        {"merge": {"engine": "partial_update"}},
    ],
    ids=lambda rules: next(iter(rules)),
)
def test_a_lost_data_file_stops_its_table_alone(tmp_path: Path, rules: dict[str, Any]) -> None:
    lake = FedLake(tmp_path, rules)
    lake.feed(3)
    place = lake.path / "shop/a"
    kept = shutil.copytree(place, tmp_path / "copy")
    for file in data_files(place):
        if ".hoodie" not in file.parts:
            file.unlink()
    lake.start()
    lake.feed_any()
    (stop,) = lake.runner.ledger.stopped.values()
    assert (stop.kind, list(lake.runner.ledger.stopped), lake.runner.ledger.late) == ("LostFileError", [A], [])
    assert "restore the file" in stop.do_next
    assert stands_right(lake, "b")
    for file in data_files(kept):
        shutil.copy(file, place / file.relative_to(kept))
    lake.go_on()
    lake.check(name="a")


def test_a_lost_metadata_table_stops_its_table_alone(tmp_path: Path) -> None:
    lake = FedLake(tmp_path)
    lake.feed(3)
    shutil.rmtree(lake.path / "shop/a/.hoodie/metadata/files")
    lake.start()
    lake.feed_any()
    (stop,) = lake.runner.ledger.stopped.values()
    assert (list(lake.runner.ledger.stopped), lake.runner.ledger.late) == ([A], [])
    assert "binlake repair" in stop.do_next
    assert stands_right(lake, "b")
    repaired = CliRunner().invoke(app, ["repair", str(lake.path / "shop/a"), "--yes"])
    assert repaired.exit_code == 0, repaired.output
    lake.go_on()
    lake.check(name="a")


def test_the_only_table_with_a_lost_file_is_no_outage(tmp_path: Path) -> None:
    lake = FedLake(tmp_path, {"type": "copy_on_write"})
    lake.feed(3, ("a",))
    for file in data_files(lake.path / "shop/a"):
        if ".hoodie" not in file.parts:
            file.unlink()
    lake.start()
    lake.batch(("a",))
    assert [stop.kind for stop in lake.runner.ledger.stopped.values()] == ["LostFileError"]
