"""Where files are looked for: the hours asked for and no others, in any layout."""

from __future__ import annotations

import random
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from binlake.source.dump_layout import DumpLayout, Window, hour_text
from hudilake.errors import ConfigError
from hudilake.storage import open_storage
from tests.binlake.stream.dying_store import DyingStore, Fate

HOURLY = [
    "{database}.{table}/dt={date}/hour={hour}/*.jsonl.gz",
    "{topic}/{year}/{month}/{day}/{hour}/*",
    "dt={date}/hour={hour}/{database}/{table}/part-*",
    "all/{date}T{hour}/*",
]
DAILY = ["{database}.{table}/dt={date}/*.jsonl.gz", "{year}{month}{day}/{topic}/*"]
FIRST = int(datetime(2026, 11, 21, 20, tzinfo=UTC).timestamp()) // 3600
HOURS = 30
TOPICS = ["s.shop.orders", "s.shop.we-ird", "t.shop.orders", "ddl"]
NAMES = {"*": "f", "*.jsonl.gz": "f.jsonl.gz", "part-*": "part-1"}


def fill(place: Path, layout: DumpLayout, hours: range) -> DyingStore:
    store = DyingStore(open_storage(str(place), {"fsync": "false"}), Fate())
    for topic in TOPICS:
        for hour in hours:
            store.inner.write(f"{layout.directory(topic, hour)}/{NAMES[layout.pattern]}", topic.encode())
            store.inner.write(f"{layout.directory(topic, hour)}/_SUCCESS", b"")
            store.inner.write(f"{layout.directory(topic, hour)}/.{NAMES[layout.pattern]}.crc", b"x")
    return store


@pytest.mark.first(2)
@pytest.mark.parametrize("template", HOURLY + DAILY)
def test_a_window_gives_what_is_in_it(tmp_path: Path, template: str) -> None:
    layout = DumpLayout(template)
    fill(tmp_path, layout, range(FIRST, FIRST + HOURS))
    store = open_storage(str(tmp_path))
    whole = layout.find(store, Window())
    assert {f.hour // layout.step for f in whole} == set(
        range(FIRST // layout.step, (FIRST + HOURS - 1) // layout.step + 1)
    )
    chance = random.Random(template)
    for _ in range(8):
        first, end = sorted(chance.sample(range(FIRST - 12, FIRST + HOURS + 12), 2))
        if layout.step == 24:
            first, end = first // 24 * 24, -(-end // 24) * 24
        wanted = [f for f in whole if first <= f.hour < end]
        assert layout.find(store, Window(first, end)) == wanted
        assert layout.find(store, Window(first)) == [f for f in whole if first <= f.hour]
        assert layout.find(store, Window(None, end)) == [f for f in whole if f.hour < end]


@pytest.mark.parametrize(
    ("template", "directory"),
    [
        (HOURLY[0], "shop.orders/dt=2026-02-30"),
        (HOURLY[0], "shop.orders/dt=2026-11-21/hour=24"),
        (HOURLY[1], "s.shop.orders/2026/13/01"),
        (HOURLY[3], "all/2026-11-21T60"),
        (DAILY[1], "20261131"),
    ],
)
def test_a_time_that_no_calendar_has_is_refused(tmp_path: Path, template: str, directory: str) -> None:
    """Its files would be left out without a word. A window that names its hours does not meet it."""
    layout = DumpLayout(template)
    store = fill(tmp_path, layout, range(FIRST, FIRST + 24)).inner
    store.write(f"{directory}/05/{NAMES[layout.pattern]}", b"x")
    with pytest.raises(ConfigError, match="that no calendar has") as refusal:
        layout.find(store, Window())
    assert refusal.value.where["path"] == directory
    first = FIRST // layout.step * layout.step
    assert layout.find(store, Window(first, first + layout.step))


def test_only_the_hours_asked_for_are_listed(tmp_path: Path) -> None:
    layout = DumpLayout(HOURLY[0])
    store = fill(tmp_path, layout, range(FIRST, FIRST + HOURS))
    found = layout.find(store, Window(FIRST + 7, FIRST + 8))
    assert len(found) == len({DumpLayout(HOURLY[0]).directory(t, FIRST) for t in TOPICS})
    listed = [path for method, path in store.fate.calls if method == "list"]
    assert {p.partition("/")[2] for p in listed} == {"dt=2026-11-22/hour=03", "dt=2026-11-22/hour=3"}
    assert [c for c in store.fate.calls if c[0] != "list"] == [("list_dirs", "")]


@pytest.mark.parametrize("template", HOURLY)
def test_numbers_without_zeros_are_found_beside_those_with_them(tmp_path: Path, template: str) -> None:
    """Hive and Spark write ``hour=5`` for a column that is a number."""
    layout, first = DumpLayout(template), int(datetime(2026, 9, 30, 20, tzinfo=UTC).timestamp()) // 3600
    store, written = open_storage(str(tmp_path), {"fsync": "false"}), dict[str, int]()
    for hour in range(first, first + HOURS):
        padded = f"{layout.directory(TOPICS[0], hour)}/{NAMES[layout.pattern]}"
        for path in {padded, re.sub(r"(?<=\D)0(?=\d)", "", padded), re.sub(r"(?<=[/=T])0(?=\d)", "", padded)}:
            store.write(path, b"x")
            written[path] = hour
    assert len(written) > HOURS
    assert {f.path: f.hour for f in layout.find(store, Window())} == written
    for hour in range(first - 1, first + HOURS + 1):
        window = Window(hour, hour + 1)
        assert [f.path for f in layout.find(store, window)] == sorted(p for p, h in written.items() if h == hour)


def test_numbers_that_nothing_parts_have_their_zeros(tmp_path: Path) -> None:
    """``2026111`` is two days."""
    store = open_storage(str(tmp_path), {"fsync": "false"})
    for path in ("2026111/t/f", "20261101/t/f", "20260111/t/f"):
        store.write(path, b"x")
    layout, day = DumpLayout(DAILY[1]), int(datetime(2026, 11, 1, tzinfo=UTC).timestamp()) // 3600
    assert [f.path for f in layout.find(store, Window())] == ["20260111/t/f", "20261101/t/f"]
    assert [f.path for f in layout.find(store, Window(day, day + 24))] == ["20261101/t/f"]


def test_tables_are_told_by_paths(tmp_path: Path) -> None:
    layout = DumpLayout(HOURLY[0])
    fill(tmp_path, layout, range(FIRST, FIRST + 1))
    found = layout.find(open_storage(str(tmp_path)), Window())
    assert {(f.database, f.table) for f in found} == {("shop", "orders"), ("shop", "we-ird"), ("ddl", "ddl")}


def test_half_a_day_of_a_layout_by_day_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="whole days"):
        DumpLayout(DAILY[0]).find(open_storage(str(tmp_path)), Window(FIRST, FIRST + 1))


def test_what_is_no_time_is_passed_over(tmp_path: Path) -> None:
    store = open_storage(str(tmp_path), {"fsync": "false"})
    for path in ("a.b/dt=2026-11-21/hour=005/f", "a.b/dt=x/hour=05/f", "b/f"):
        store.write(path, b"x")
    store.write("a.b/dt=2026-11-21/hour=05/f", b"x")
    found = DumpLayout("{database}.{table}/dt={date}/hour={hour}/*").find(store, Window())
    assert [f.path for f in found] == ["a.b/dt=2026-11-21/hour=05/f"]


def test_hours_and_days_for_people() -> None:
    assert (hour_text(FIRST), hour_text(FIRST, 24)) == ("2026-11-21T20", "2026-11-21")
