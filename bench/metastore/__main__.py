"""``python -m bench.metastore``: binlake's metastore beside a Hive Metastore 3.1.3, both on MariaDB, in turns.

``--scale 0.1`` takes a tenth of the partitions. Results go to ``bench/results/metastore/hms.json`` and ``.md``.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from functools import partial
from pathlib import Path

from bench.metastore.beside import Sizes, measure
from bench.metastore.report import report
from bench.metastore.sides import sides

RESULTS = Path(__file__).parents[1] / "results" / "metastore" / "hms.json"


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="1 is 100,000 partitions")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=2, help="of binlake's metastore")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--without-hive-sync", action="store_true", help="leave Hudi's HiveSync out")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as name, sides(Path(name), given.processes) as both:
        sizes = Sizes.scaled(given.scale, given.rounds)
        told = partial(print, flush=True)
        found = measure(both, sizes, Path(name), told, sync=not given.without_hive_sync)
    document = {**found.document(), "processes": given.processes}
    given.results.parent.mkdir(parents=True, exist_ok=True)
    given.results.write_text(json.dumps(document, indent=1, sort_keys=False) + "\n")
    text = report(document)
    given.results.with_suffix(".md").write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
