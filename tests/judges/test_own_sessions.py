"""What Hudi Spark makes of partial rows, in a Spark session of its own.

In the shared session Hudi Spark 1.2.0 ran out of memory on partial rows after it had read some forty other tables, and
took the session's JVM along (measured: twice at the same test, with heaps of 1 and 2 GiB; never in a session that reads
tables with partial rows alone). So these modules run in a process of their own. Their names keep them out of the usual
collection.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.hypothesis_profile import NIGHTLY, is_nightly
from tests.paths import ROOT

MODULES = ("tests/binlake/load/backfill", "tests/hudilake/partial_rows", "tests/binlake/rows/merging")


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.judge
def test_in_a_session_of_their_own() -> None:
    modules = [f"{folder}/spark_judged.py" for folder in MODULES]
    words = ["-q", "-n", "0", "-p", "no:cacheprovider", *(["--hypothesis-profile", NIGHTLY] if is_nightly() else [])]
    done = subprocess.run([sys.executable, "-m", "pytest", *words, *modules], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout[-20_000:]}\n{done.stderr[-2_000:]}"
