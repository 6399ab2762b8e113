"""``python -m bench.stitching``: two streams into one table, and a column for all rows, each side in its own process.

Results go to ``bench/results/stitching.json`` and ``.md``; a side that is measured again replaces its own numbers.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from bench.__main__ import facts
from bench.stitching.report import write_report
from bench.stitching.streams import Sizes, write_streams

RESULTS = Path(__file__).parents[1] / "results" / "stitching.json"
STREAM_SIDES = ("binlake", "hudi-merge-into", "hudi-join-upsert", "paimon-partial-update")
COLUMN_SIDES = ("column-hudi", "column-delta")


def keep(side: str, numbers: dict[str, float], sizes: object) -> None:
    """Add a side's numbers to the results."""
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    known[side] = {"numbers": numbers, "sizes": sizes, "facts": facts()}
    RESULTS.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    write_report(RESULTS)


def main() -> None:
    """Measure the chosen sides, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join((*STREAM_SIDES, *COLUMN_SIDES)), help="sides, with commas")
    parser.add_argument("--events", type=int, default=Sizes.events)
    parser.add_argument("--batches", type=int, default=Sizes.batches, help="of these events")
    parser.add_argument("--small", type=int, default=Sizes.small, help="batches of 500 events, at least 2")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the wide table")
    given = parser.parse_args()
    sizes = Sizes(given.events, given.batches, keys=max(1, given.events // 5), small=given.small)
    for side in given.only.split(","):
        with tempfile.TemporaryDirectory(prefix="binlake-stitching-") as name:
            place, log = Path(name), Path(name) / "log.txt"
            if side in STREAM_SIDES:
                write_streams(place / "inputs", sizes)
            told = {"rows": given.rows} if side in COLUMN_SIDES else asdict(sizes)
            command = [sys.executable, "-m", "bench.stitching.worker", side, str(place / "run"), json.dumps(told)]
            with log.open("wb") as words:
                code = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=words, stderr=words, check=False)
            if code.returncode:
                kept = Path(tempfile.gettempdir()) / f"binlake-stitching-{side}.log"
                shutil.copy(log, kept)
                print(f"{side}: failed, see {kept}", flush=True)
                continue
            numbers = json.loads((place / "run" / "found.json").read_text())
            keep(side, numbers, told)
            print(side, {name: round(value, 2) for name, value in numbers.items()}, flush=True)


if __name__ == "__main__":
    main()
