"""A lake, the watch of its stream, and a browser without a window: what pages answer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import httpx2
from starlette.testclient import TestClient

from binlake.cli.console.page import Site
from binlake.cli.console.site import application
from binlake.cli.console.watch import StreamWatch
from binlake.settings import Settings

HOST = "console.test"


@dataclass
class Watched:
    """A site of one stream, whose watch looks when it is told to."""

    watch: StreamWatch
    client: TestClient

    @staticmethod
    def of(conf: Path) -> Watched:
        """The stream of a settings file, looked at until no table is unseen."""
        watch = StreamWatch(Settings.load(conf), str(conf), ask_kafka=False)
        site = Site({watch.settings.name: watch})
        watched = Watched(watch, TestClient(application(site, [HOST]), base_url=f"http://{HOST}"))
        watched.look()
        return watched

    def look(self) -> None:
        """Look until no table is unseen."""
        while self.watch.look().unseen:
            pass

    def get(self, path: str, **asked: str) -> httpx2.Response:
        """The answer of an address."""
        return self.client.get(path, params=asked)

    def page(self, path: str, **asked: str) -> str:
        """The text of a page that answers well."""
        answer = self.get(path, **asked)
        assert answer.status_code == 200, words_of(answer.text)
        text: str = answer.text
        return text


def words_of(page: str) -> str:
    """What a reader sees of a page, on one line."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page.partition("<body>")[2])).split())


def rows_of(page: str) -> list[list[str]]:
    """The cells of each row of the page's tables."""
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", page.partition("<tbody>")[2], re.S)
    return [[words_of(f"<body>{cell}") for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.S)] for row in rows]
