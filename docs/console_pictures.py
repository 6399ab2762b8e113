"""Makes the pictures of the console's pages in docs/pictures: ``python -m docs.console_pictures``.

A small shop is streamed without Kafka into a lake, its console is opened in Chromium, and each page is kept as a PNG.
``--dark`` and ``--to DIRECTORY`` make further ones, to look at.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from binlake.cli.commands.reads.console import served, watched
from binlake.position.lease import StreamLease
from binlake.settings import Settings
from binlake.stream.monitoring.watched import monitored
from embedded.process import free_ports
from hudilake.clock import now_ms
from hudilake.storage import open_storage
from tests.binlake.stream.topic_log import event
from tests.docs.shop import Shop
from tests.services.chromium import browser

PICTURES = Path(__file__).parent / "pictures"
SQL = """select status, count(*) as orders, sum(total) as total
from shop.orders
where customer_id = 42
group by status"""
#: Name of the picture -> address and height in pixels.
PAGES = {
    "console-lake": ("/", 420),
    "console-table": ("/table?stream=shop&table=shop.orders", 620),
    "console-stream": ("/stream", 620),
    "console-query": (f"/query?{urlencode({'run': 1, 'sql': SQL})}", 760),
}


class FreshShop(Shop):
    """The shop with events of now, so that its figures are those of a stream that runs."""

    def _put(self, table: str, row: dict[str, Any]) -> None:
        position = sum(map(len, self.log.records.values())) + 1
        change = event(table, "u", position, row)
        change["source"]["ts_ms"] = now_ms() - 800
        self.log.add(f"shop.shop.{table}", change, {"id": row["id"]})


def main() -> None:
    """Write the pictures anew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--to", type=Path, default=PICTURES)
    given = parser.parse_args()
    given.to.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        shop = FreshShop(Path(place))
        document = json.loads(shop.conf.read_text())
        shop.conf.write_text(json.dumps({**document, "monitoring": {"port": free_ports(1)[0]}}))
        settings = Settings.load(shop.conf)
        told = [event for _ in range(6) for event in shop.fill()]
        lease = StreamLease(open_storage(settings.state_uri), settings.name)
        with monitored(settings) as monitor:
            assert monitor is not None
            for event in told:
                monitor.update(event)
            lease.take()
            try:
                _photograph({str(shop.conf): settings}, given.to, dark=given.dark)
            finally:
                lease.give_back()


def _photograph(settings: dict[str, Settings], place: Path, *, dark: bool) -> None:
    with watched(settings, ask_kafka=False) as site, served(site, "127.0.0.1", 0) as address, browser() as opened:
        for name, (path, height) in PAGES.items():
            page = opened.new_page(viewport={"width": 1180, "height": height}, color_scheme="dark" if dark else "light")
            page.set_default_navigation_timeout(240_000)
            page.goto(address)
            page.get_by_text("2 of 2 tables").wait_for()
            page.goto(address.rstrip("/") + path)
            page.locator("#signal[data-state=live]").wait_for()
            page.screenshot(path=place / f"{name}.png")
            page.close()


if __name__ == "__main__":
    main()
