"""What the watch of a stream sees, and what looking costs."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from binlake.cli.console import watch
from binlake.cli.console.lake_page import lake_rows
from binlake.cli.console.looked import waits_for
from binlake.cli.console.metrics import rendered_metrics
from binlake.cli.console.watch import LISTED_A_LOOK, StreamWatch
from binlake.decode.changes import SourceTable
from binlake.position.last_words import LastWords, leaving_last_words
from binlake.position.table_requests import change_request, paused
from binlake.settings import Settings
from binlake.source.offsets import NO_OFFSETS
from binlake.stream.monitoring import status
from binlake.stream.monitoring.held import KafkaFacts
from hudilake.errors import ConfigError
from hudilake.storage import open_storage
from tests.binlake.cli.console.watched_lake import Watched
from tests.binlake.cli.fed_lake import FedLake
from tests.hudilake.metadata.below import Counting

#: A run that takes the lease of a stream, says so, and waits to be killed.
RUN = """
import sys, time
from binlake.position.lease import StreamLease
from hudilake.storage import open_storage
StreamLease(open_storage(sys.argv[1]), "shop").take()
print("taken", flush=True)
time.sleep(600)
"""
A = SourceTable("shop", "a")


@pytest.fixture
def lake(tmp_path: Path) -> FedLake:
    lake = FedLake(tmp_path)
    lake.feed(2)
    return lake


def test_a_run_that_is_killed_is_seen_to_have_died_at_the_next_look(lake: FedLake) -> None:
    seen = Watched.of(lake.conf)
    assert seen.watch.view.state == "stopped"
    with subprocess.Popen(
        [sys.executable, "-c", RUN, f"{lake.path}/.binlake/shop"], stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "taken\n"
        assert seen.watch.look().state == "running"
        run.send_signal(signal.SIGKILL)
        run.wait()
        assert seen.watch.look().state == "died"
    page = seen.page("/")
    assert "down: its run died" in page
    assert f"process {run.pid} on" in page


def test_the_last_words_of_a_run_that_failed_are_shown(lake: FedLake) -> None:
    seen, state = Watched.of(lake.conf), open_storage(f"{lake.path}/.binlake/shop")
    with pytest.raises(ConfigError), leaving_last_words(state):
        raise ConfigError("the topic <b>is gone", do_next="make it again", topic="s.shop.a")
    seen.look()
    assert seen.watch.view.state == "failed"
    assert "the topic &lt;b&gt;is gone [topic=s.shop.a]. Next: make it again" in seen.page("/")
    with leaving_last_words(state):
        pass
    seen.look()
    assert seen.watch.view.state == "stopped"
    assert LastWords.load(state) is not None


def test_a_commit_a_pause_and_a_compaction_are_seen_at_the_next_look(lake: FedLake) -> None:
    seen = Watched.of(lake.conf)
    before = {one.name: one.status.commit for one in seen.watch.view.tables.values() if one.status is not None}
    assert set(before) == {"shop.a", "shop.b"}
    lake.feed(1, ("a",))
    after = {one.name: one.status.commit for one in seen.watch.look().tables.values() if one.status is not None}
    assert after["shop.a"] == lake.commits("a")[-1] != before["shop.a"]
    assert after["shop.b"] == before["shop.b"]
    change_request(open_storage(f"{lake.path}/.binlake/shop"), A, paused)
    lake.runner.tend()
    lake.feed(1)
    table = seen.watch.look().table("shop.a")
    assert table is not None
    assert table.status is not None
    assert table.status.state == "paused"
    lake.feed(2, ("b",))
    seen.watch.look()
    b = seen.watch.view.table("shop.b")
    assert lake.run("compact", "shop.b").exit_code == 0
    compacted = seen.watch.look().table("shop.b")
    assert b is not None
    assert compacted is not None
    assert b.status is not None
    assert compacted.status is not None
    assert compacted.status.log_bytes == 0 < b.status.log_bytes


def test_a_look_at_a_lake_at_rest_costs_a_fixed_number_of_calls(lake: FedLake, monkeypatch: pytest.MonkeyPatch) -> None:
    counting = Counting(open_storage(str(lake.path)))

    def opened(uri: str, options: object = None) -> Counting:
        inside = uri.removeprefix(str(lake.path)).strip("/")
        return counting.sub(inside) if inside else counting  # type: ignore[return-value]

    for module in (watch, status):
        monkeypatch.setattr(module, "open_storage", opened)
    seen = StreamWatch(Settings.load(lake.conf), "conf", ask_kafka=False)
    seen.look()
    first = len(counting.calls)
    counting.calls.clear()
    seen.look()
    at_rest = list(counting.calls)
    tables = len(seen.view.tables)
    assert tables == 2
    # the lease, the ledger, the requests, the last words, what is in hand; a listing for each table of this look's turn
    assert len(at_rest) == 5 + min(tables, LISTED_A_LOOK)
    assert len(at_rest) < first / 3  # the control: a look that takes in tables costs more, and is counted
    counting.calls.clear()
    lake.feed(1, ("a",))
    seen.look()
    assert len(counting.calls) > 2 * len(at_rest)


def test_what_waits_for_a_table_is_counted_in_its_own_topics(lake: FedLake) -> None:
    ledger = lake.runner.ledger
    ends = ledger.positions.merge({"s.shop.a": {0: ledger.positions.at("s.shop.a", 0) + 7}})
    facts = KafkaFacts(ends, NO_OFFSETS, {})
    assert [waits_for(SourceTable("shop", name), ledger, facts) for name in ("a", "b")] == [7, 0]
    assert waits_for(A, ledger, None) is None
    assert waits_for(SourceTable("shop", "none"), ledger, facts) is None


def test_all_tables_of_the_ledger_are_shown_before_the_first_is_read_and_the_worst_is_read_first(
    lake: FedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_request(open_storage(f"{lake.path}/.binlake/shop"), SourceTable("shop", "b"), paused)
    lake.runner.tend()
    lake.feed(1)
    monkeypatch.setattr(watch, "TABLES_A_LOOK", 1)
    seen = StreamWatch(Settings.load(lake.conf), "conf", ask_kafka=False)
    views, taken = [], StreamWatch._take_in

    def take_in(self: StreamWatch, paths: list[str], ledger: object, sparing: bool) -> None:
        views.append(self.view)
        taken(self, paths, ledger, sparing)  # type: ignore[arg-type]

    monkeypatch.setattr(StreamWatch, "_take_in", take_in)
    assert seen.look().unseen == 1
    [view] = views
    assert {one.name: one.state for one in view.tables.values()} == {"shop.a": "unread", "shop.b": "paused"}
    assert view.unseen == 2
    rows = {row.table: row for row in lake_rows(view, seen.settings)}
    assert {rows["shop.a"].cells()[name] for name in ("rows", "size", "verified")} == {"-"}
    b, a = seen.view.table("shop.b"), seen.view.table("shop.a")
    assert b is not None
    assert a is not None
    assert b.status is not None
    assert a.status is None
    assert 'binlake_console_unreadable{stream="shop",table="shop.a"} 0.0' in rendered_metrics([seen.view])
    assert seen.look().unseen == 0
    assert {one.state for one in seen.view.tables.values()} == {"ok", "paused"}
