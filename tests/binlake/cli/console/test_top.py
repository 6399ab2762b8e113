"""``binlake top``: the rows of the lake page at a terminal, by keys alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import DataTable, Input, Static

from binlake.cli.console.lake_page import ORDERS, WORST_FIRST
from binlake.cli.console.terminal import LakeTop
from binlake.cli.console.watch import StreamWatch
from hudilake.clock import now_ms
from tests.binlake.cli.console.watched_lake import Watched
from tests.binlake.cli.fed_lake import FedLake
from tests.whole.security.hostile import HostileTopic

#: Textual's pilot, which presses keys.
Pilot = Any


@pytest.fixture(scope="module")
def watch(tmp_path_factory: pytest.TempPathFactory) -> StreamWatch:
    lake = FedLake(tmp_path_factory.mktemp("top"))
    lake.feed(2)
    lake.feed(1, ("b",))
    return Watched.of(lake.conf).watch


def driven(watch: StreamWatch, steps: Callable[[LakeTop, Pilot], Awaitable[None]], width: int = 160) -> None:
    """Run the program without a terminal, and steps on it."""

    async def run() -> None:
        app = LakeTop(watch)
        async with app.run_test(size=(width, 30)) as pilot:
            await pilot.pause()
            await steps(app, pilot)

    asyncio.run(run())


def names(app: LakeTop) -> list[str]:
    return [app.table.get_row_at(row)[0].plain for row in range(app.table.row_count)]


def test_the_tables_of_the_stream_are_shown_and_sorted_by_keys(watch: StreamWatch) -> None:
    async def steps(app: LakeTop, pilot: Pilot) -> None:
        assert set(names(app)) == {"shop.a", "shop.b"}
        assert "shop: stopped" in str(app.query_one("#head", Static).render())
        seen = [app.order]
        for _ in ORDERS:
            await pilot.press("s")
            seen.append(app.order)
        assert seen[:-1] == list(ORDERS)
        assert app.order == WORST_FIRST
        await pilot.press("s")
        assert app.order == "table"
        assert names(app) == ["shop.a", "shop.b"]
        await pilot.press("S")
        assert app.order == WORST_FIRST

    driven(watch, steps)


def test_rows_are_filtered_as_one_types_and_the_cursor_stays_on_its_table(watch: StreamWatch) -> None:
    async def steps(app: LakeTop, pilot: Pilot) -> None:
        await pilot.press("s", "down")
        assert app.shown[app.table.cursor_row].table == "shop.b"
        app.show()
        assert app.shown[app.table.cursor_row].table == "shop.b"
        await pilot.press("slash", *"p.a")
        assert names(app) == ["shop.a"]
        assert app.query_one("#filter", Input).value == "p.a"
        await pilot.press("enter", "escape")
        assert len(names(app)) == 2

    driven(watch, steps)


def test_a_narrow_terminal_shows_them_too(watch: StreamWatch) -> None:
    async def steps(app: LakeTop, pilot: Pilot) -> None:
        assert len(names(app)) == 2

    driven(watch, steps, width=60)


def test_a_hostile_name_is_text_without_markup_or_escapes(tmp_path: Path) -> None:
    topic = HostileTopic(tmp_path)
    for name in ("[bold]x[/]", "a\x1b[2Jb", "[/nothing]"):
        topic.put("shop", name, {"id": 1, "v": "1"})
    topic.batch()

    async def steps(app: LakeTop, pilot: Pilot) -> None:
        assert set(names(app)) == {"shop.[bold]x[/]", "shop.a\\x1b[2Jb", "shop.[/nothing]"}

    driven(Watched.of(topic.conf).watch, steps)


@pytest.mark.full
def test_a_thousand_tables_are_drawn_once_and_a_further_look_draws_what_changed(
    watch: StreamWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    [one] = [table for table in watch.view.tables.values() if table.name == "shop.a"]
    many = {f"shop/t{n:04}": replace(one, name=f"shop.t{n:04}") for n in range(1000)}
    monkeypatch.setattr(watch, "view", replace(watch.view, tables=many))
    drawn: list[str] = []
    for method in ("add_row", "update_cell_at"):
        real = getattr(DataTable, method)

        def counted(self: Any, *given: Any, _name: str = method, _real: Any = real, **more: Any) -> Any:  # noqa: ANN401
            drawn.append(_name)
            return _real(self, *given, **more)

        monkeypatch.setattr(DataTable, method, counted)
    monkeypatch.setattr("binlake.cli.console.terminal._EVERY_S", 1e6)
    frozen = {name: now_ms() for name in ("looked", "lake_page")}
    for name, moment in frozen.items():
        monkeypatch.setattr(f"binlake.cli.console.{name}.now_ms", lambda moment=moment: moment)

    async def steps(app: LakeTop, pilot: Pilot) -> None:
        assert len(names(app)) == 1000
        assert drawn == ["add_row"] * 1000
        drawn.clear()
        app.show()
        assert drawn == []
        assert one.status is not None
        app.stream_watch.view = replace(
            app.stream_watch.view,
            tables={**many, "shop/t0007": replace(many["shop/t0007"], status=replace(one.status, rows=123_456))},
        )
        app.show()
        assert drawn == ["update_cell_at"]
        shown = {row[0].plain: row[5].plain for row in map(app.table.get_row_at, range(1000))}
        assert shown["shop.t0007"] == "123,456"
        drawn.clear()
        moved = {path: replace(table, status=replace(one.status, rows=7)) for path, table in many.items()}
        app.stream_watch.view = replace(app.stream_watch.view, tables=moved)
        app.show()
        assert 0 < len(drawn) <= 32  # the rows that are seen, of a window of 30 lines
        drawn.clear()
        await pilot.press("ctrl+end")
        await pilot.wait_for_scheduled_animations()
        await pilot.pause()
        assert app.table.get_row_at(999)[5].plain == "7"
        assert 0 < len(drawn) <= 64

    driven(watch, steps)
