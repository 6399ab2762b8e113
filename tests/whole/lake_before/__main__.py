"""``python -m tests.whole.lake_before DIRECTORY``: see ``make``."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.whole.lake_before.make import make

make(Path(sys.argv[1]).absolute())
