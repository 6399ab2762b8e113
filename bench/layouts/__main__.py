"""``python -m bench.layouts``: rows laid out by binlake, Hudi and Delta; what queries then read, and the time it took.

Each side runs in a process of its own, the sides one after the other. Results go to ``bench/results/layouts.jsonl``,
a line a layout, and to ``layouts.md``; a layout that is measured again replaces its own line.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.layouts.report import keep, write_report
from bench.layouts.run import measure, write_parts
from bench.layouts.sides import Side, Sizes

RESULTS = Path(__file__).parents[1] / "results" / "layouts.jsonl"
SIDES = ("binlake", "hudi", "delta")


def side_of(name: str, place: Path) -> Side:
    """A side by its name. ``place``: a directory for its own things."""
    if name == "binlake":
        from bench.layouts.ours import Ours

        return Ours()
    from bench.layouts.peers import DeltaSide, HudiSide  # these start Spark

    return HudiSide(place) if name == "hudi" else DeltaSide(place)


def main() -> None:
    """Measure the chosen sides, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(SIDES), help="sides, with commas")
    parser.add_argument("--layouts", default="", help="layouts, with commas; all of a side if not given")
    parser.add_argument("--rows", type=int, default=Sizes().rows)
    parser.add_argument("--files", type=int, default=Sizes().files)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "binlake-bench-layouts")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--in-this-process", action="store_true", help="what each side's own process is called with")
    given = parser.parse_args()
    sizes = Sizes(given.rows, given.files)
    given.work.mkdir(parents=True, exist_ok=True)
    parts = write_parts(given.work, sizes)
    for name in given.only.split(","):
        if not given.in_this_process:
            command = [sys.executable, "-m", "bench.layouts", *sys.argv[1:], "--only", name, "--in-this-process"]
            subprocess.run(command, stdin=subprocess.DEVNULL, check=True)
            continue
        with tempfile.TemporaryDirectory(prefix=f"{name}-", dir=given.work) as place:
            side = side_of(name, Path(place))
            try:
                wanted = [layout for layout in given.layouts.split(",") if layout]
                for found in measure(name, side, Path(place), parts, sizes, wanted):
                    keep(given.results, found)
                    counts = f"{found.files} files of {found.fewest:,} to {found.most:,} rows"
                    print(f"{name}, {found.layout}: {found.seconds:.1f} s, {counts}", flush=True)
            finally:
                side.close()
    write_report(given.results)


if __name__ == "__main__":
    main()
