"""What content sums cost a batch: its processor time with digests and without, in pairs.

``python -m bench.contents [--events N] [--rounds N]``. The events of ``bench.events`` in a file for each of eight hours
are replayed into a fresh lake in this process, from records to commits. A round does that twice, once with digests that
are zeros; every other round begins with those. Prints, for each type of table, the median and the quartiles of two
shares: what a round without digests takes less, and what digests take as counted inside.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa

from bench.replay import here, settings, write
from binlake.load.replay.replay_dumps import replay_dumps
from binlake.settings import Settings
from binlake.source.dump_layout import Window
from hudilake.format.digest import content_sum
from hudilake.format.digest.rows import Digests, row_digests

TYPES = ("merge_on_read", "copy_on_write")


def of_type(rules: Settings, table_type: str) -> Settings:
    """The same settings with tables of that type."""
    defaults = rules.tables.defaults.model_copy(update={"type": table_type})
    return rules.model_copy(update={"tables": rules.tables.model_copy(update={"defaults": defaults})})


def zeros(columns: Mapping[str, pa.Array | pa.ChunkedArray], count: int, salt: str = "") -> Digests:
    """Takes the place of ``row_digests`` where they are not measured."""
    del columns, salt
    return Digests(np.zeros(count, np.uint64), np.zeros(count, np.uint64))


@dataclass
class Counted:
    """``row_digests`` that counts its processor time.

    Args:
        seconds: so far.
    """

    seconds: float = 0.0

    def __call__(self, columns: Mapping[str, pa.Array | pa.ChunkedArray], count: int, salt: str = "") -> Digests:
        """As ``row_digests``."""
        began = time.thread_time()
        digests = row_digests(columns, count, salt)
        self.seconds += time.thread_time() - began
        return digests


def spent(rules: Settings, digests: Callable[..., Digests]) -> float:
    """The processor seconds of a replay whose digests come from this function."""
    with mock.patch.object(content_sum, "row_digests", digests):
        began = time.process_time()
        replay_dumps(rules, None, Window(), here())
        return time.process_time() - began


def told(shares: Sequence[float]) -> str:
    """Median and quartiles."""
    low, middle, high = statistics.quantiles(shares, n=4)
    return f"{middle:.1%} (quartiles {low:.1%} to {high:.1%})"


def main() -> None:
    """Measure and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=160_000)
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="binlake-bench-") as place:
        root = Path(place)
        write(root, args.events)
        for table_type in TYPES:
            pairs, inside = [], []
            for round_ in range(-1, args.rounds):  # the first is not counted: it compiles and imports
                taken, counted = {}, Counted()
                for digests in (counted, zeros) if round_ % 2 else (zeros, counted):
                    rules = of_type(settings(root, f"{table_type}-{round_}-{digests is zeros}", None), table_type)
                    taken[digests is zeros] = spent(rules, digests)
                if round_ >= 0:
                    pairs.append(1 - taken[True] / taken[False])
                    inside.append(counted.seconds / taken[False])
            print(
                f"{table_type}: {told(pairs)} of a batch's processor time by {args.rounds} pairs, {told(inside)} inside"
            )


if __name__ == "__main__":
    main()
