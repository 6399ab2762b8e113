"""The console in a real browser: keys alone suffice, axe finds no violation, nothing is asked of other hosts."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from binlake.cli.commands.reads.console import served, watched
from binlake.settings import Settings
from tests.binlake.cli.console.test_watch import RUN
from tests.binlake.cli.fed_lake import FedLake
from tests.paths import DATA
from tests.programs.walk import Walk, WalkError, walk
from tests.services.chromium import browser

pytestmark = pytest.mark.full
AXE = DATA / "axe/axe.min.js"
VIOLATIONS = "axe.run().then(r => r.violations.map(v => [v.id, v.nodes.map(n => n.html.slice(0, 120))]))"
TABLE = "/table?stream=shop&table=shop.a"
PAGES = ["/", TABLE, "/stream", "/query?table=shop.a&key=4", "/query?run=1&sql=select+*+from+shop.a", "/quarantine"]
PAGES += ["/quarantine?reason=malformed_json&table=-", "/lineage?table=shop.a", "/none", "/actions"]
PAGES += ["/action?table=shop.a&action=compact"]


@dataclass
class Visit:
    """A page of a browser on the console: its address, and what went wrong."""

    page: Page
    address: str
    lake: FedLake
    troubles: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def go(self, path: str) -> None:
        self.page.goto(self.address.rstrip("/") + path)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)


@pytest.fixture(scope="module")
def chrome() -> Iterator[Browser]:
    with browser() as opened:
        yield opened


@pytest.fixture
def visit(chrome: Browser, tmp_path: Path) -> Iterator[Visit]:
    lake = FedLake(tmp_path)
    lake.feed(4)
    lake.log.add("s.shop.a", b"{no JSON", None)
    lake.feed(1)
    settings = {str(lake.conf): Settings.load(lake.conf)}
    with watched(settings, ask_kafka=False) as site, served(site, "127.0.0.1", 0) as address:
        context = chrome.new_context(bypass_csp=False, viewport={"width": 1280, "height": 900})
        page = context.new_page()
        page.set_default_navigation_timeout(120_000)
        seen = Visit(page, address, lake)
        page.on("pageerror", lambda error: seen.troubles.append(str(error)))
        page.on("console", lambda said: seen.troubles.append(said.text) if said.type == "error" else None)
        page.on("request", lambda request: seen.hosts.add(request.url.split("/")[2]))
        yield seen
        context.close()
    assert seen.hosts <= {address.split("/")[2]}


def test_keys_alone_lead_to_every_page(visit: Visit) -> None:
    page = visit.page
    visit.go("/")
    expect(page.locator("#signal")).to_have_text("live")
    expect(page.locator("a.row")).to_have_count(2)
    visit.press("/", *"shop.b")
    expect(page.locator("a.row")).to_have_count(1)
    expect(page.locator("#filter")).to_be_focused()
    visit.press("Escape", "j")
    expect(page.locator("a.row").first).to_be_focused()
    visit.press("Enter")
    expect(page.locator("h1")).to_contain_text("shop.b")
    visit.press("g", "q")
    expect(page.locator("h1")).to_contain_text("Query")
    visit.press("/")
    page.keyboard.type("select id from shop.a where id = 3")
    visit.press("Control+Enter")
    expect(page.locator("section[aria-label=answer] td")).to_have_text("3", timeout=30_000)
    for key, heading in (("s", "shop"), ("x", "Quarantine"), ("l", None)):
        visit.press("g", key)
        if heading is not None:
            expect(page.locator("h1")).to_contain_text(heading)
    expect(page.locator("a.row")).to_have_count(2)
    visit.press("?")
    expect(page.locator("#keys")).to_be_visible()
    visit.press("Escape")
    expect(page.locator("#keys")).not_to_be_visible()
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    visit.press("t")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    visit.press("Tab")
    assert page.evaluate("document.activeElement !== document.body")
    assert visit.troubles == []


def test_a_refresh_keeps_the_focus_and_shows_a_new_commit(visit: Visit) -> None:
    visit.go("/?sort=table")
    expect(visit.page.locator("a.row")).to_have_count(2)
    visit.press("j")
    expect(visit.page.locator("a.row").first).to_be_focused()
    visit.lake.feed(1, ("b",))
    rows = visit.page.locator("#tables tbody tr").nth(1).locator("td").nth(4)
    expect(rows).to_have_text(str(visit.lake.batches - 1), timeout=20_000)
    expect(visit.page.locator("a.row").first).to_be_focused()
    assert visit.troubles == []


def test_a_stream_that_is_killed_is_shown_as_down_without_a_reload(visit: Visit) -> None:
    state = f"{visit.lake.path}/.binlake/shop"
    with subprocess.Popen([sys.executable, "-c", RUN, state], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "taken\n"
        visit.go("/")
        expect(visit.page.locator(".stream .pill").first).to_have_text("running", timeout=20_000)
        run.send_signal(signal.SIGKILL)
        run.wait()
    expect(visit.page.locator(".stream .pill").first).to_have_text("down: its run died", timeout=20_000)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation(chrome: Browser, visit: Visit, scheme: Any) -> None:  # noqa: ANN401 - a literal
    context = chrome.new_context(bypass_csp=True, color_scheme=scheme)
    page = context.new_page()
    page.set_default_navigation_timeout(120_000)
    page.goto(visit.address)
    expect(page.locator("a.row")).to_have_count(2)  # the first look has ended
    for path in PAGES:
        page.goto(visit.address.rstrip("/") + path)
        page.locator("#signal[data-state=live]").wait_for()
        page.add_script_tag(path=AXE)
        found = page.evaluate(
            "axe.run().then(r => r.violations.map(v => [v.id, v.nodes.map(n => n.html.slice(0, 120))]))"
        )
        assert found == [], path
    page.set_content("<img src=x><p style='color:#eee;background:#fff'>pale</p>")  # the control: it finds what is wrong
    page.add_script_tag(path=AXE)
    assert {"image-alt", "color-contrast"} <= {name for name, _ in page.evaluate(VIOLATIONS)}
    context.close()


def test_a_random_walk_over_a_lake_in_motion_keeps_all_properties(chrome: Browser, tmp_path: Path) -> None:
    done = walk(chrome, tmp_path, seed=7, steps=60)
    assert done["steps"] == 60
    assert done["figures compared"] >= 3
    assert done["/table"] > 0 < done["keys"]


def test_the_walk_finds_an_error_page_and_a_wrong_figure(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of the walk."""
    walker = Walk(visit.page, visit.address, visit.lake, Random(1))
    walker.begin()
    walker.compare()
    with pytest.raises(WalkError, match="answers 404"):
        walker.go("/table?table=shop.none")
    visit.go("/query?run=1&sql=select+nonsense+from+shop.a")
    with pytest.raises(WalkError, match="nonsense"):
        walker.check()
    monkeypatch.setattr("tests.programs.walk.SETTLE_S", 0.0)
    monkeypatch.setattr(
        visit.lake, "json", lambda *_: [{}, {"table": "shop.a", "state": "ok", "rows": 9, "quarantined": 0}]
    )
    with pytest.raises(WalkError, match="wrong figures"):
        walker.compare()
