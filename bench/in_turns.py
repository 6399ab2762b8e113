"""Two checkouts side by side: ``bench.many_tables`` in two processes whose batches take turns, so that both meet the
same load of the machine.

    python -m bench.in_turns DIR --tables 100 --busy 100 --batches 20
    python -m bench.in_turns DIR --tables 200 --busy 200 --batches 10 --open

``DIR``: the checkout to be beside, as a ``git worktree`` of the former commit. All other options are those of
``bench.many_tables``; with ``--open`` a turn opens all tables anew instead. Prints a JSON line: the processor time of a
table in both, and the ratio of each pair of turns, this checkout's divided by the other's.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from typing import IO, cast


class Side:
    """A process that does one turn when it is told to."""

    def __init__(self, options: list[str]) -> None:
        command = [sys.executable, "-m", "bench.many_tables", "--turns", *options]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._ask, self._answer = (cast(IO[str], end) for end in (self._process.stdin, self._process.stdout))

    def ready(self) -> None:
        """Wait until its tables are made."""
        self._cpu_ms()

    def turn(self) -> float:
        """The processor time of one turn, milliseconds."""
        self._ask.write("\n")
        self._ask.flush()
        return self._cpu_ms()

    def close(self) -> None:
        """End it."""
        self._ask.close()
        self._process.wait()

    def _cpu_ms(self) -> float:
        line = self._answer.readline()
        if not line:
            raise RuntimeError(f"a side ended with {self._process.wait()}: its own lines say why")
        return float(line)


def compare(other: str, options: list[str], turns: int, tables: int) -> dict[str, object]:
    """The figures of both: ``here`` is this checkout."""
    sides = {"here": Side(options), "other": Side([*options, "--code", other])}
    for side in sides.values():
        side.ready()
    took: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(turns):
        for name in sorted(sides, reverse=number % 2 == 1):
            took[name].append(sides[name].turn() / tables)
    for side in sides.values():
        side.close()
    ratios = sorted(here / there for here, there in zip(took["here"], took["other"], strict=True))
    quarter = len(ratios) // 4
    return {
        **{f"{name}_cpu_ms": round(statistics.median(times), 2) for name, times in took.items()},
        "ratio": round(statistics.median(ratios), 3),
        "middle_half": [round(ratios[quarter], 3), round(ratios[-1 - quarter], 3)],
        "pairs": turns,
    }


def main() -> None:
    """Compare once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", help="the other checkout")
    parser.add_argument("--batches", type=int, default=20, help="turns of each")
    parser.add_argument("--busy", type=int, default=100, help="tables of a batch")
    given, options = parser.parse_known_args()
    print(json.dumps(compare(given.other, [*options, "--busy", str(given.busy)], given.batches, given.busy)))


if __name__ == "__main__":
    main()
