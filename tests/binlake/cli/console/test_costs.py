"""What looks and pages cost beside a stream, in calls: nothing where nothing moved, little where much moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from binlake.cli.console import costs, table_picture, watch
from binlake.cli.console.costs import OpenTables, ProcessorShare
from binlake.cli.console.watch import StreamWatch
from binlake.settings import Settings
from hudilake.format.timeline.timeline import Timeline
from hudilake.read import TableReader
from hudilake.storage import open_storage
from hudilake.storage.local import LocalStorage
from tests.binlake.cli.console.watched_lake import Watched, rows_of
from tests.binlake.cli.fed_lake import FedLake

#: Two small tables, a page each second.
PAGES = ("/", "/stream", "/metrics", "/state.json")


@pytest.fixture
def lake(tmp_path: Path) -> FedLake:
    lake = FedLake(tmp_path)
    lake.feed(4)
    return lake


@contextmanager
def calls_of(owner: Any, *names: str) -> Iterator[Counter[str]]:  # noqa: ANN401 - any class
    """How often methods of a class are called."""
    counted: Counter[str] = Counter()

    def counting(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **more: Any) -> Any:  # noqa: ANN401
            counted[name] += 1
            return real(*given, **more)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.setattr(owner, name, counting(name, getattr(owner, name)))
        yield counted


def test_a_page_of_a_table_without_a_new_commit_reads_no_file(lake: FedLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProcessorShare, "rests", property(lambda self: False))
    seen = Watched.of(lake.conf)
    methods = ("read", "read_range", "list", "list_dirs", "stat")
    with calls_of(LocalStorage, *methods) as first:
        before = seen.page("/table", table="shop.a")
    with calls_of(LocalStorage, *methods) as again:
        assert rows_of(seen.page("/table", table="shop.a")) == rows_of(before)
    assert first["read"] > 10  # the control: making the picture is counted
    # the timeline, the heartbeats and the lock, of which a storage lock is a file that may be there
    assert again["list"] <= 2
    assert again.total() <= 6
    lake.feed(1)
    newest = lake.commits("a")[-1]
    with calls_of(LocalStorage, *methods) as moved:
        assert newest in seen.page("/table", table="shop.a")
    assert again.total() < moved.total() < first.total()  # what was read before is kept


def test_the_picture_of_a_table_that_moves_all_the_time_says_how_old_it_is(
    lake: FedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_picture, "PICTURE_SHARE", 1e-6)
    seen = Watched.of(lake.conf)
    seen.page("/table", table="shop.a")
    lake.feed(1)
    with calls_of(LocalStorage, "read") as counted:
        page = seen.page("/table", table="shop.a")
    assert lake.commits("a")[-1] not in page
    assert "ago; the table has moved since" in page
    assert counted["read"] <= 2  # a lock of either kind, if it is held
    assert lake.commits("a")[-1] in seen.page("/table", table="shop.a", where="id = 1")  # what is asked anew is of now


def test_rows_of_a_lake_in_motion_are_counted_within_a_share_and_exactly_when_it_rests(
    lake: FedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    rests = True
    monkeypatch.setattr(ProcessorShare, "rests", property(lambda self: rests and self is seen._counting))
    seen = StreamWatch(Settings.load(lake.conf), str(lake.conf), ask_kafka=False)
    seen.look(sparing=True)
    begun = {one.name: one.status.rows for one in seen.view.tables.values() if one.status is not None}
    assert begun == {"shop.a": 3, "shop.b": 3}  # a first look counts
    with calls_of(TableReader, "count") as counted:
        for _ in range(3):
            lake.feed(1)
            view = seen.look(sparing=True)
    assert counted.total() == 0
    for one in view.tables.values():
        assert one.status is not None
        assert one.status.commit == lake.commits(one.path.rpartition("/")[2])[-1]
        assert one.status.rows == 3
        assert one.counted_ms is not None
    rests = False
    with calls_of(TableReader, "count") as counted:
        for _ in range(4):
            view = seen.look(sparing=True)
    assert counted["count"] == 2
    assert [(one.status and one.status.rows, one.counted_ms) for one in view.tables.values()] == [(6, None)] * 2


def test_a_lake_page_says_how_old_a_number_of_rows_is(lake: FedLake, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Watched.of(lake.conf)
    monkeypatch.setattr(ProcessorShare, "rests", property(lambda self: self is seen.watch._counting))
    lake.feed(1)
    seen.watch.look(sparing=True)
    for cells in rows_of(seen.page("/")):
        assert cells[5].startswith("3 (")
        assert cells[5].endswith(" ago)")


def test_tables_that_were_seen_wait_while_their_share_is_used_up(
    lake: FedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Watched.of(lake.conf).watch
    lake.feed(1)
    with monkeypatch.context() as patch, calls_of(OpenTables, "at") as counted:
        patch.setattr(ProcessorShare, "rests", property(lambda self: True))
        assert seen.look(sparing=True).unseen == 0
        assert counted.total() == 0
    with calls_of(OpenTables, "at") as counted:
        seen.look()
    assert counted["at"] == 2


def test_a_look_after_a_commit_reads_what_is_new(lake: FedLake, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched.of(lake.conf).watch
    monkeypatch.setattr(ProcessorShare, "rests", property(lambda self: self is watched._counting))
    read = {}
    for kept in (True, False):
        lake.feed(1, ("a",))
        if not kept:
            watched._tables.close("shop/a")  # the control: what a table costs that is opened anew
        with calls_of(Timeline, "_body") as counted:
            watched.look(sparing=True)
        read[kept] = counted["_body"]
    assert 0 < read[True] < read[False]


def test_a_table_that_was_made_anew_at_its_path_is_opened_anew(lake: FedLake) -> None:
    tables = OpenTables(open_storage(str(lake.path)), kept=1)
    first = tables.at("shop/a")
    assert tables.at("shop/a") is first
    properties = lake.path / "shop/a/.hoodie/hoodie.properties"
    properties.write_text(properties.read_text() + "\n# written again\n")
    assert tables.at("shop/a") is not first
    second = tables.at("shop/b")
    assert tables.at("shop/b") is second
    assert set(tables._tables) == {"shop/b"}


def test_a_share_rests_as_long_as_its_work_was_dear(monkeypatch: pytest.MonkeyPatch) -> None:
    spent, now = [0.0], [100.0]
    monkeypatch.setattr(costs, "monotonic_s", lambda: now[0])
    monkeypatch.setattr("binlake.cli.console.costs.time.thread_time", lambda: spent[0])
    share = ProcessorShare(0.01)
    assert not share.rests
    with share.spending():
        spent[0] += 0.5
    rested = []
    for seconds in (49, 2):
        now[0] += seconds
        rested.append(share.rests)
    assert rested == [True, False]


def test_pages_are_refreshed_for_what_differs_and_for_ages_now_and_then(
    lake: FedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, now = Watched.of(lake.conf).watch, [1e6]
    monkeypatch.setattr(watch, "monotonic_s", lambda: now[0])
    seen.look()
    before = seen.look().version
    assert [seen.look().version for _ in range(3)] == [before] * 3
    now[0] += 6
    assert seen.look().version == before + 1
    lake.feed(1)
    assert seen.look().version == before + 2
