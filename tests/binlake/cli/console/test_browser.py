"""The console in a real browser: keys alone suffice, axe finds no violation, nothing is asked of other hosts."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from binlake.cli.commands.reads.console import served, watched
from binlake.cli.console.looked import StreamView
from binlake.cli.console.watch import StreamWatch
from binlake.position.lease import StreamLease
from binlake.settings import Settings
from binlake.stream.monitoring.watched import monitored
from hudilake.storage import open_storage
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
PAGES += ["/action?table=shop.a&action=compact", f"{TABLE}&where=id+%3D+3", f"{TABLE}&where=none+%3D+3"]
PAGES += [f"{TABLE}&shade=log+ratio", "/query?run=1&sql=select+count(*)+from+shop.a+a+join+shop.b+b+using+(id)"]


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


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("binlake.cli.console.query_page.SECONDS", 600.0)  # no test judges by the clock


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


def test_completion_by_keys_writes_a_query(visit: Visit) -> None:
    page = visit.page
    visit.go("/query")
    expect(page.locator("#signal")).to_have_text("live")
    visit.press("/")
    field, proposals = page.locator("#sql"), page.locator("#sql-proposals [role=option]")
    page.keyboard.type("sel")
    expect(proposals.first).to_contain_text("select")
    visit.press("Tab")
    page.keyboard.type(" * from ")
    expect(proposals).to_have_count(2)
    assert field.get_attribute("aria-activedescendant") is None
    visit.press("ArrowDown", "ArrowDown")
    expect(proposals.nth(1)).to_have_attribute("aria-selected", "true")
    expect(field).to_have_attribute("aria-activedescendant", "sql-proposals-1")
    _no_violation(page)
    visit.press("Enter")
    page.keyboard.type(" where ow")
    expect(proposals.first).to_contain_text("owner")
    expect(proposals.first).to_contain_text("string")
    visit.press("Escape")
    expect(page.locator("#sql-proposals")).to_be_hidden()
    expect(field).to_be_focused()
    visit.press("Control+Space")
    expect(proposals.first).to_contain_text("owner")
    visit.press("Tab")
    page.keyboard.type(" = 'fro")  # within a string nothing is proposed
    page.wait_for_timeout(400)
    expect(page.locator("#sql-proposals")).to_be_hidden()
    page.keyboard.type("'")
    expect(field).to_have_value("select * from shop.b where owner = 'fro'")
    page.keyboard.press("Tab")  # nothing is open, so Tab leads on
    expect(field).not_to_be_focused()
    assert visit.troubles == []


def test_proposals_follow_the_first_look_at_the_lake(
    chrome: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words of DuckDB are known at once, the tables when the watch has looked; nobody has to type again."""
    lake, begun, look = FedLake(tmp_path), threading.Event(), StreamWatch.look
    lake.feed(1)

    def late(watch: StreamWatch, *, sparing: bool = False) -> StreamView:
        begun.wait(120)
        return look(watch, sparing=sparing)

    monkeypatch.setattr(StreamWatch, "look", late)
    settings = {str(lake.conf): Settings.load(lake.conf)}
    with watched(settings, ask_kafka=False) as site, served(site, "127.0.0.1", 0) as address:
        page = chrome.new_page()
        try:
            page.goto(f"{address}query")
            proposals = page.locator("#sql-proposals [role=option]")
            page.locator("#sql").focus()
            page.keyboard.type("select * from")
            expect(proposals.first).to_be_visible()
            with page.expect_response("**/complete*") as answer:
                page.keyboard.type(" ")
            assert answer.value.json()["proposals"] == []
            begun.set()
            expect(proposals).to_have_count(2)
        finally:
            begun.set()
        page.context.close()


def test_proposals_replace_what_stands_there_when_one_is_taken(visit: Visit) -> None:
    """What is shown answers a shorter word, since the answer to the longer one is late."""
    page, held = visit.page, list[Route]()
    visit.go("/query")
    field, proposals = page.locator("#sql"), page.locator("#sql-proposals [role=option]")
    field.focus()
    page.keyboard.type("s")
    expect(proposals.first).to_be_visible()
    page.route("**/complete*", lambda route: held.append(route))
    page.keyboard.type("elec")
    expect(proposals.first).to_contain_text("select")
    visit.press("Tab")
    expect(field).to_have_value("select")
    page.unroute("**/complete*")
    page.keyboard.type(" * from")
    expect(proposals.first).to_contain_text("from")
    page.route("**/complete*", lambda route: held.append(route))
    page.keyboard.type(" ")
    expect(page.locator("#sql-proposals")).to_be_hidden()
    page.unroute("**/complete*")


HOLD = """() => {
  const ask = window.fetch;
  window.fetch = () => new Promise((take) => {
    window.fetch = ask;
    document.documentElement.dataset.held = "yes";
    window.refuse = () => take(new Response("", { status: 502 }));
  });
}"""


def test_a_refused_answer_to_an_earlier_text_stops_no_later_one(visit: Visit) -> None:
    """The refusal comes right after a key, before the text with that key is asked for."""
    page = visit.page
    visit.go("/query")
    page.locator("#sql").focus()
    page.evaluate(HOLD)
    page.keyboard.type("se")
    page.locator("html[data-held]").wait_for()  # the policy of the page allows no function here
    page.evaluate("document.execCommand('insertText', false, 'l'); window.refuse()")
    expect(page.locator("#sql-proposals [role=option]").first).to_contain_text("select")


def test_a_condition_colours_the_map_by_keys(visit: Visit) -> None:
    page = visit.page
    visit.go("/")
    expect(page.locator("a.row")).to_have_count(2)
    visit.go(TABLE)
    expect(page.locator("#signal")).to_have_text("live")
    squares = page.locator("svg.drawing g").count()
    assert squares >= 2
    where = page.locator("#where")
    where.focus()
    expect(where).to_have_attribute("role", "combobox")
    page.keyboard.type("i")
    expect(where).to_have_attribute("aria-expanded", "true")
    expect(page.locator("#where-proposals [role=option]").first).to_contain_text("id")
    _no_violation(page)
    visit.press("ArrowDown", "Enter")
    expect(where).to_have_value("id")
    expect(where).to_have_attribute("aria-expanded", "false")
    page.keyboard.type(" = 3")
    visit.press("Escape") if page.locator("#where-proposals").is_visible() else None
    visit.press("Enter")
    expect(page.locator(".legend li")).to_have_text(["read: 1", f"skipped: {squares - 1}"])
    expect(page.locator("svg.drawing path.cross")).to_have_count(squares - 1)
    expect(page.get_by_role("region", name="steps of a")).to_contain_text("bucket")
    _no_violation(page)
    assert visit.troubles == []


def test_an_answer_has_its_plan_beside_it_and_time_travel_keeps_the_query(visit: Visit) -> None:
    page = visit.page
    visit.go("/query?run=1&sql=select+count(*)+as+n+from+shop.a+where+id+%3C+100")
    answer, plan = page.locator("section[aria-label=answer]"), page.locator("section[aria-label='plan of a']")
    expect(answer.locator("td")).to_have_text("4")
    boxes = [one.bounding_box() for one in (answer, plan)]
    assert boxes[0] is not None
    assert boxes[1] is not None
    assert boxes[1]["x"] >= boxes[0]["x"] + boxes[0]["width"]
    assert plan.locator("svg.bar").count() >= 3
    _bar_holds_its_parts(page)
    page.locator("#slider").focus()
    visit.press("End")
    moment = visit.lake.commits("a")[-2]
    while page.locator("#as_of").input_value() != moment:
        visit.press("ArrowLeft")
    visit.press("Tab", "Enter")
    expect(answer.locator("td")).to_have_text("3", timeout=120_000)
    expect(page.locator("#since")).to_have_value(moment)
    page.locator("#until").focus()
    visit.press("Tab", "Enter")
    expect(page.locator("#changes")).to_contain_text("insert")
    expect(page.locator("#as_of")).to_have_value(moment)
    expect(page.locator("#sql")).to_have_value("select count(*) as n from shop.a where id < 100")
    assert visit.troubles == []


def _bar_holds_its_parts(page: Page) -> None:
    bar = page.locator("header.bar").bounding_box()
    assert bar is not None
    for part in page.locator("header.bar > *").all():
        box = part.bounding_box()
        assert box is not None
        assert bar["y"] <= box["y"] <= box["y"] + box["height"] <= bar["y"] + bar["height"], part.inner_html()


def test_sql_that_is_too_long_for_an_address_is_run_by_keys(visit: Visit) -> None:
    visit.go("/query")
    visit.page.locator("#sql").fill(f"select count(*) as n from shop.a where id = 3 {' ' * 70_000}")
    visit.page.locator("#sql").focus()
    visit.press("Control+Enter")
    expect(visit.page.locator("section[aria-label=answer] td")).to_have_text("1", timeout=120_000)
    assert "sql" not in visit.page.url
    assert visit.troubles == []


def test_the_stages_of_the_last_batches_are_small_charts(chrome: Browser, tmp_path: Path) -> None:
    lake = FedLake(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    lake.conf.write_text(json.dumps({**json.loads(lake.conf.read_text()), "monitoring": {"port": port}}))
    settings = Settings.load(lake.conf)
    lease = StreamLease(open_storage(f"{lake.path}/.binlake/shop"), "shop")
    with monitored(settings) as monitor:
        assert monitor is not None
        events = [lake.batch() for _ in range(7)]
        for event in events:
            monitor.update(event)
        lease.take()
        try:
            with watched({str(lake.conf): settings}, ask_kafka=False) as site, served(site, "127.0.0.1", 0) as address:
                page = chrome.new_context(bypass_csp=True).new_page()
                page.set_default_navigation_timeout(120_000)
                page.goto(f"{address}stream")
                charts = page.locator(".small figure")
                expect(charts.first).to_be_visible(timeout=60_000)
                page.locator("#signal[data-state=live]").wait_for()
                stages = {name for event in events for name in event.stage_ms}
                assert charts.count() == len(stages)
                for chart in charts.all():
                    assert chart.locator("rect").count() == len(events)
                tallest = max(float(r.get_attribute("height") or 0) for r in page.locator(".small rect").all())
                assert tallest == pytest.approx(36.0)  # one scale, which the longest stage reaches
                rows = page.locator("details tbody tr th").all_text_contents()
                assert rows == [str(event.batch_id) for event in reversed(events)]
                _no_violation(page)
                page.context.close()
        finally:
            lease.give_back()


def _no_violation(page: Page) -> None:
    if not page.evaluate("typeof axe !== 'undefined'"):
        page.evaluate(AXE.read_text())
    assert page.evaluate(VIOLATIONS) == []


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
