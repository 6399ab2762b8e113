"""Where the project's files are that tests read."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
CONF = ROOT / "conf"
DATA = ROOT / "tests" / "data"
GOLDEN = DATA / "golden"
RECORDINGS = DATA / "cdc"
