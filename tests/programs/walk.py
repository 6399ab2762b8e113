"""A browser walks the console's pages at random, on a lake in motion: ``python -m tests.programs.walk --minutes 10``.

Every step is checked: no error page, no error of a script, no request to another host, and no wrong figure, by
``status --json`` whenever the lake stands still. The first failure ends the walk; the seed repeats it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from playwright.sync_api import Browser, Page
from playwright.sync_api import Error as PlaywrightError

from binlake.cli.commands.reads.console import served, watched
from binlake.settings import Settings
from hudilake.clock import monotonic_s
from tests.binlake.cli.fed_lake import FedLake
from tests.services.chromium import browser

_LINKS = "all => all.map(a => a.getAttribute('href')).filter(h => h && h.startsWith('/'))"
_KEYS = ("j", "k", "t", "/", "Escape", "?", "Escape", "Tab", "Enter")
#: Steps between two moves of the lake, and between two comparisons of figures.
_MOVES, _COMPARES = 5, 20
SETTLE_S = 20.0


class WalkError(Exception):
    """A property of the pages does not hold."""


@dataclass
class Walk:
    """A walk. ``troubles``, ``hosts``: what the browser reported, and whom it asked."""

    page: Page
    address: str
    lake: FedLake
    random: Random
    troubles: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)
    done: Counter[str] = field(default_factory=Counter)

    def begin(self) -> None:
        """Open the first page."""
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("console", lambda said: self.troubles.append(said.text) if said.type == "error" else None)
        self.page.on("request", lambda request: self.hosts.add(request.url.split("/")[2]))
        self.go("/")

    def step(self, number: int) -> None:
        """Take a step, after a move of the lake now and then. Raises WalkError."""
        if number % _MOVES == 0:
            self._move()
        if number % _COMPARES == _COMPARES - 1:
            self.compare()
        if self.random.random() < 0.3:
            for key in self.random.choices(_KEYS, k=4):
                self.page.keyboard.press(key)
            self.done["keys"] += 1
        else:
            self.go(self.random.choice(self._links()))
        self.check()

    def _links(self) -> list[str]:
        links = self.page.locator("main a:visible, .bar nav a:visible").evaluate_all(_LINKS)
        return [str(one) for one in links] or ["/"]

    def go(self, path: str) -> None:
        answer = self.page.goto(self.address.rstrip("/") + path)
        self.done[path.partition("?")[0]] += 1
        if answer is None or answer.status != 200:
            raise WalkError(f"{path} answers {answer.status if answer is not None else 'nothing'}")

    def check(self) -> None:
        try:  # a key may have opened a page that is not drawn yet
            self.page.locator("h1").first.wait_for(state="attached")
        except PlaywrightError as error:
            raise WalkError(f"{self.page.url} has no heading") from error
        if self.page.locator("[role=alert]").count():
            raise WalkError(f"{self.page.url}: {self.page.locator('[role=alert]').first.text_content()}")
        if self.troubles:
            raise WalkError(f"{self.page.url}: {self.troubles}")
        if self.hosts - {self.address.split("/")[2]}:
            raise WalkError(f"asked other hosts: {self.hosts}")

    def _move(self) -> None:
        what = self.random.choice(("feed", "feed", "feed", "compact", "quarantine", "pause", "resume"))
        table = self.random.choice(("shop.a", "shop.b"))
        if what == "feed":
            self.lake.batch()
        elif what == "quarantine":
            self.lake.log.add("s.shop.a", b"{no JSON", None)
            self.lake.batch()
        elif what == "compact":
            self.lake.run("compact", table, "--now")
        else:
            self.lake.run(f"table {what}", table)
            self.lake.runner.tend()
        self.done[f"lake: {what}"] += 1

    def compare(self) -> None:
        """The figures of the lake page are those of ``status --json``, once the console has looked."""
        wanted = {one["table"]: _figures(one) for one in self.lake.json("status", "--no-kafka")[1:]}
        until_s = monotonic_s() + SETTLE_S
        while (shown := self._shown()) != wanted:
            if monotonic_s() > until_s:
                raise WalkError(f"wrong figures: the page shows {shown}, status says {wanted}")
            self.page.wait_for_timeout(300)
        self.done["figures compared"] += 1

    def _shown(self) -> dict[str, tuple[str, ...]]:
        self.go("/")
        rows = self.page.locator("#tables tbody tr").all()
        cells = [[text.strip() for text in row.locator("th, td").all_text_contents()] for row in rows]
        return {row[0]: (row[1], row[5], row[10]) for row in cells if len(row) > 10}


def _figures(status: dict[str, Any]) -> tuple[str, ...]:
    rows = "not counted" if status["rows"] is None else f"{status['rows']:,}"
    return status["state"], rows, f"{status['quarantined']:,}" if status["quarantined"] else "-"


def walk(chrome: Browser, place: Path, seed: int, seconds: float = 0.0, steps: int = 0) -> Counter[str]:
    """Walk for so long, or so many steps at least. Returns what was done how often. Raises WalkError."""
    lake = FedLake(place)
    lake.feed(2)
    settings = {str(lake.conf): Settings.load(lake.conf)}
    until_s, number = monotonic_s() + seconds, 0
    with (
        watched(settings, ask_kafka=False) as site,
        served(site, "127.0.0.1", 0) as address,
    ):
        page = chrome.new_page()
        page.set_default_navigation_timeout(120_000)
        walker = Walk(page, address, lake, Random(seed))
        walker.begin()
        while number < steps or monotonic_s() < until_s:
            walker.step(number)
            number += 1
    walker.done["steps"] = number
    return walker.done


def main() -> None:
    """Walk, and print what was done."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place, browser() as chrome:
        try:
            done = walk(chrome, Path(place), given.seed, given.minutes * 60)
        except WalkError as error:
            sys.exit(f"seed {given.seed}: {error}")
    for what, count in sorted(done.items()):
        print(f"{what}: {count}")


if __name__ == "__main__":
    main()
