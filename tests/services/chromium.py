"""Debian's Chromium, driven by Playwright: installed by apt-get where that is possible and it is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str:
    """The path of the browser. Raises RuntimeError with words if there is none and it cannot be installed here."""
    for name in _NAMES:
        path = shutil.which(name)
        if path is not None:
            return path
    if os.geteuid() == 0 and shutil.which("apt-get") is not None:
        for words in (["update"], ["install", "--yes", "--no-install-recommends", "chromium"]):
            environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            subprocess.run(["apt-get", *words], check=True, capture_output=True, env=environment)
        path = shutil.which("chromium")
        if path is not None:
            return path
    raise RuntimeError("these tests need Chromium: apt-get install chromium")


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser without a window."""
    with sync_playwright() as playwright:
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        opened = playwright.chromium.launch(executable_path=chromium(), args=flags)
        try:
            yield opened
        finally:
            opened.close()
