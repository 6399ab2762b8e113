"""Makes the pictures of the console's pages in docs/pictures: ``python -m docs.console_pictures``.

A small shop is streamed without Kafka into a lake, its console is opened in Chromium, and each page is kept as a PNG.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Literal

from binlake.cli.commands.reads.console import served, watched
from binlake.settings import Settings
from tests.docs.shop import Shop
from tests.services.chromium import browser

PICTURES = Path(__file__).parent / "pictures"
#: Name of the picture -> address, and the colours.
PAGES: dict[str, tuple[str, Literal["light", "dark"]]] = {
    "console-lake": ("/", "light"),
    "console-table": ("/table?stream=shop&table=shop.orders", "light"),
}


def main() -> None:
    """Write the pictures anew."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        shop = Shop(Path(place))
        for _ in range(6):
            shop.fill()
        settings = {str(shop.conf): Settings.load(shop.conf)}
        with watched(settings, ask_kafka=False) as site, served(site, "127.0.0.1", 0) as address, browser() as opened:
            for name, (path, scheme) in PAGES.items():
                page = opened.new_page(viewport={"width": 1180, "height": 620}, color_scheme=scheme)
                page.set_default_navigation_timeout(120_000)
                page.goto(address.rstrip("/") + "/")
                page.locator("a.row").first.wait_for()
                page.goto(address.rstrip("/") + path)
                page.locator("#signal[data-state=live]").wait_for()
                page.screenshot(path=PICTURES / f"{name}.png")
                page.close()


if __name__ == "__main__":
    main()
