"""The lake page: every table, the worst first; what the answers carry; hostile names and values are text."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from binlake.cli.console.lake_page import ORDERS, ROWS, LakeRow, matching
from binlake.cli.console.page import static_files, templates
from hudilake.storage.local import LocalStorage
from tests.binlake.cli.console.watched_lake import HOST, Watched, rows_of, words_of
from tests.binlake.cli.fed_lake import FedLake
from tests.paths import ROOT
from tests.whole.security.hostile import HostileTopic

HTML = '<img src=x onerror="alert(1)">'


@pytest.fixture
def lake(tmp_path: Path) -> FedLake:
    lake = FedLake(tmp_path)
    lake.feed(2)
    return lake


def row(table: str, state: str = "ok", behind_ms: int | None = 0) -> LakeRow:
    return LakeRow("shop", table, state, "", behind_ms, 1, 0, 1, 1, None, "1", 1, (), 0, "")


def test_the_page_says_of_each_table_what_status_says(lake: FedLake) -> None:
    seen, [_, *told] = Watched.of(lake.conf), lake.json("status", "--no-kafka")
    rows = {cells[0]: cells for cells in rows_of(seen.page("/"))}
    assert rows.keys() == {one["table"] for one in told}
    for one in told:
        assert rows[one["table"]][5] == f"{one['rows']:,}"


def test_the_worst_come_first_and_rows_are_filtered_and_sorted() -> None:
    rows = [
        row("a", behind_ms=5),
        row("b", behind_ms=None),
        row("c", behind_ms=9),
        row("d", "stopped"),
        row("e", "paused"),
    ]
    assert [one.table for one in matching(rows, "", "newest change")] == ["d", "e", "c", "a", "b"]
    assert [one.table for one in matching(rows, "", "table")] == ["a", "b", "c", "d", "e"]
    assert [one.table for one in matching(rows, "shop PAUSED", "no such heading")] == ["e"]
    assert matching(rows, "nothing", "table") == []
    assert all(matching(rows, "", order) for order in ORDERS)


def test_a_thousand_tables_are_given_in_portions(lake: FedLake) -> None:
    seen = Watched.of(lake.conf)
    [one] = [table for table in seen.watch.view.tables.values() if table.name == "shop.a"]
    many = {f"shop/t{n:04}": replace(one, name=f"shop.t{n:04}", ages=()) for n in range(1000)}
    seen.watch.view = replace(seen.watch.view, tables=many)
    first = seen.page("/", sort="table")
    assert [cells[0] for cells in rows_of(first)] == [f"shop.t{n:04}" for n in range(ROWS)]
    assert "1,000 of 1,000 tables" in words_of(first)
    assert len(first) < 220_000
    assert first.count("<polyline") == 0
    aged = {path: replace(table, ages=(5_000, None, 9_000, 1_000)) for path, table in many.items()}
    seen.watch.view = replace(seen.watch.view, tables=aged)
    assert seen.page("/", sort="table").count("<polyline") == 2 * ROWS  # a line breaks where nothing was known
    last = seen.page("/", **{"sort": "table", "from": "900"})
    assert [cells[0] for cells in rows_of(last)][-1] == "shop.t0999"
    assert [cells[0] for cells in rows_of(seen.page("/", q="t0777"))] == ["shop.t0777"]
    assert len(rows_of(seen.page("/", **{"from": "99999999999"}))) == ROWS


def test_a_page_of_a_thousand_tables_touches_no_storage(lake: FedLake, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Watched.of(lake.conf)
    [one] = [table for table in seen.watch.view.tables.values() if table.name == "shop.a"]
    many = {f"shop/t{n:04}": replace(one, name=f"shop.t{n:04}") for n in range(1000)}
    seen.watch.view = replace(seen.watch.view, tables=many)
    calls: list[str] = []
    for method in ("read", "read_range", "list", "list_dirs", "stat"):
        of_disk = getattr(LocalStorage, method)

        def counted(self: LocalStorage, *given: Any, _name: str = method, _call: Any = of_disk) -> Any:  # noqa: ANN401
            calls.append(_name)
            return _call(self, *given)

        monkeypatch.setattr(LocalStorage, method, counted)
    for path in ("/", "/?q=t05", "/stream", "/metrics", "/state.json"):
        assert seen.client.get(path).status_code == 200
    assert calls == []
    seen.watch.look()  # the control: a look is counted
    assert calls


def test_a_table_that_cannot_be_read_is_shown_and_hides_no_other(lake: FedLake) -> None:
    (lake.path / "shop/a/.hoodie/hoodie.properties").write_text("nonsense")
    (lake.path / "shop/a/.hoodie/hoodie.properties.backup").unlink(missing_ok=True)
    seen = Watched.of(lake.conf)
    rows = rows_of(seen.page("/"))
    assert rows[0][0] == "shop/a"
    assert rows[0][1].startswith("unreadable")
    assert [cells[0] for cells in rows] == ["shop/a", "shop.b"]


def test_a_ledger_that_cannot_be_read_is_said(lake: FedLake) -> None:
    seen = Watched.of(lake.conf)
    next((lake.path / ".binlake/shop").glob("ledger*")).write_text("{")
    seen.watch.look()
    assert seen.watch.view.state == "unknown"
    assert "its state cannot be read: the ledger is not JSON" in words_of(seen.page("/"))


def test_hostile_names_are_text(tmp_path: Path) -> None:
    topic = HostileTopic(tmp_path)
    for name in (HTML, "a\u202eb\x1b[2J", "x&y"):
        topic.put("shop", name, {"id": 1, "v": HTML})
    topic.batch()
    page = Watched.of(topic.conf).page("/")
    assert "<img" not in page
    assert "shop.&lt;img src=x onerror=&#34;alert(1)&#34;&gt;" in page
    assert "\u202e" not in page
    assert "a\\u202eb\\x1b[2J" in page
    assert "shop.x&amp;y" in page
    assert "table=shop.%3Cimg" in page


def test_every_answer_forbids_what_comes_from_outside(lake: FedLake) -> None:
    seen = Watched.of(lake.conf)
    for path in ("/", "/none", "/static/console.css", "/state.json", "/static/none"):
        headers = seen.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
        assert headers["x-content-type-options"] == "nosniff"
    assert seen.get("/none").status_code == 404
    assert seen.client.post("/").status_code == 405
    page = seen.page("/")
    addresses = re.findall(r'(?:src|href|action|hx-get)="([^"]*)"', page)
    assert addresses
    assert all(one.startswith(("/", "#")) and not one.startswith("//") for one in addresses)
    for linked in re.findall(r'/static/[^"]+', page):
        assert seen.get(linked).status_code == 200


def test_a_request_that_names_another_host_is_refused(lake: FedLake) -> None:
    seen = Watched.of(lake.conf)
    assert seen.client.get("/", headers={"host": "evil.example"}).status_code == 400
    assert seen.client.get("/", headers={"host": f"{HOST}:8765"}).status_code == 200


def test_no_template_marks_a_value_as_safe_or_has_a_script_or_style_of_its_own() -> None:
    names = templates().list_templates()
    assert "lake.html" in names
    for name in names:
        text = (ROOT / "pipeline/binlake/cli/console/templates" / name).read_text()
        assert re.search(r"\|\s*safe|autoescape|\bon[a-z]+=|style=|<style|javascript:", text) is None, name
        assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", text)), name


def test_the_files_of_the_pages_ask_nothing_of_other_hosts() -> None:
    for name in ("console.js", "console.css"):
        assert re.search(rb"https?://|//[a-z]+\.", static_files()[name].body) is None
    assert b"Zero-Clause BSD" in (ROOT / "pipeline/binlake/cli/console/static/htmx-LICENSE.txt").read_bytes()
