"""How long a browser takes for the lake page of many tables: ``python -m tests.programs.many_tables [--tables 1000]``.

A stream makes the tables, with two commits each, and a console is started beside it. Printed are the time until the
console lists and has read all of them, and nine times each: a load of the page until it is complete, and a word typed
into the filter until the rows are painted, by the browser's own clock (median, least, most, in ms).
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page

from binlake.cli.commands.reads.console import served, watched
from hudilake.clock import monotonic_s
from tests.binlake.cli.fed_lake import FedLake
from tests.services.chromium import browser

ROUNDS = 9
_LOAD = "() => performance.getEntriesByType('navigation')[0].domComplete"
#: From a word in the filter to the frame in which the rows of the answer are painted.
_FILTERED = """async word => {
  const begun = performance.now();
  const settled = new Promise(done => document.body.addEventListener('htmx:afterSettle', done, {once: true}));
  const filter = document.querySelector('#filter');
  filter.value = word;
  filter.dispatchEvent(new Event('input', {bubbles: true}));
  await settled;
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  return performance.now() - begun;
}"""


def main() -> None:
    """Make the tables, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1000)
    given = parser.parse_args()
    names = tuple(f"t{n:04}" for n in range(given.tables))
    with tempfile.TemporaryDirectory() as place:
        lake = FedLake(Path(place), names=names)
        begun = monotonic_s()
        lake.feed(2, names)
        print(f"{given.tables:,} tables, two batches: {monotonic_s() - begun:.1f} s", flush=True)
        _measure(lake, given.tables)


def _measure(lake: FedLake, tables: int) -> None:
    with watched({str(lake.conf): lake.settings}, ask_kafka=False) as site:
        [watch] = site.watches.values()
        with served(site, "127.0.0.1", 0) as address, browser() as opened:
            page = opened.new_page()
            begun = monotonic_s()
            page.goto(address)
            page.get_by_text(f"{tables:,} of {tables:,} tables").wait_for()
            print(f"all tables listed after {monotonic_s() - begun:.1f} s", flush=True)
            while watch.view.unseen:
                page.wait_for_timeout(200)
            print(f"all tables read after {monotonic_s() - begun:.1f} s", flush=True)
            _say("load", lambda: _loaded(page, address))
            _say("load, sorted by rows", lambda: _loaded(page, f"{address}?sort=rows"))
            _say("filter", lambda: _filtered(page, address, "t00"))


def _loaded(page: Page, address: str) -> float:
    page.goto(address)
    return float(page.evaluate(_LOAD))


def _filtered(page: Page, address: str, word: str) -> float:
    page.goto(address)
    page.locator("#signal[data-state=live]").wait_for()
    return float(page.evaluate(_FILTERED, word))


def _say(name: str, action: Callable[[], float]) -> None:
    taken = [action() for _ in range(ROUNDS)]
    print(f"{name}: {statistics.median(taken):.0f} ms ({min(taken):.0f} to {max(taken):.0f})", flush=True)


if __name__ == "__main__":
    main()
