"""AUTO CDC beside binlake: ``python -m bench.auto_cdc SPARK [--events 50000] [--batches 3] [--kinds scd2,scd1]``.

SPARK is the Python of an environment of Spark 4.3, as ``make test-lines`` builds it. Each side is a process of its own;
they take the same batches in turns. A figure is processor seconds of the process and its children for a million events,
behind the start and the batches that warm up; the ratio of each pair of turns counts. Both must have the same rows.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import pyarrow as pa
import pyarrow.parquet as pq

from bench.auto_cdc.sides import BOUNDS, KINDS, Side, Spent
from bench.events import COLUMNS, Shape, Skew, events


def in_turns(kind: str, skew: Skew, given: argparse.Namespace) -> None:
    """Let both sides take all batches, and print. Raises RuntimeError if their rows differ."""
    count = given.events * (given.warm + given.batches)
    made = [value for _, value in events(count, given.keys, shape=Shape(skew=skew))]
    batches = [made[begin : begin + given.events] for begin in range(0, len(made), given.events)]
    programs = {"theirs": given.spark, "ours": sys.executable}
    with tempfile.TemporaryDirectory() as folder:
        places = {name: Path(folder, name) for name in programs}
        sides = {name: Side(name, programs[name], places[name], kind, batches) for name in programs}
        took: dict[str, list[Spent]] = {name: [] for name in sides}
        try:
            for number in range(len(batches)):
                for name in sorted(sides, reverse=number % 2 == 1):
                    took[name].append(sides[name].turn())
                    print(f"  {kind}, {skew}: {name}: batch {number}: {took[name][-1].cpu:.2f} CPU s", flush=True)
            for side in sides.values():
                side.close()
        finally:
            for side in sides.values():
                side.kill()
        for target in KINDS[kind].scd_types:
            theirs, ours = (rows(places[name] / target) for name in programs)
            if not len(ours) or theirs != ours:
                raise RuntimeError(f"{kind}, {skew}: {len(theirs)} rows of AUTO CDC's {target} are not our {len(ours)}")
            print(f"{kind}, {skew}: {len(ours)} rows of {target} are the same; load {os.getloadavg()[0]:.1f}")
    for name, side in sides.items():
        print(f"{kind}, {skew}: {name}: {words(took[name][given.warm :], given.events)}; start {side.start.cpu:.1f}")
    pairs = zip(took["theirs"][given.warm :], took["ours"][given.warm :], strict=True)
    ratios = sorted(theirs.cpu / ours.cpu for theirs, ours in pairs)
    spread = f"{ratios[0]:.1f} to {ratios[-1]:.1f}"
    print(f"{kind}, {skew}: theirs is {statistics.median(ratios):.1f} times ours ({spread})", flush=True)


def rows(place: Path) -> pa.Table:
    """The rows that a side has left, in one order, with our names."""
    table = pq.read_table(place)
    table = table.rename_columns([BOUNDS.get(name, name) for name in table.column_names])
    columns = {name: _plain(table.column(name)) for name in (*COLUMNS, *BOUNDS.values()) if name in table.column_names}
    order = [(name, "ascending") for name in ("id", "start_at") if name in columns]
    return pa.table(columns).sort_by(order).combine_chunks()


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values, whatever the width and the unit of their type."""
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us", tz=column.type.tz)).cast(pa.int64())
    return column.cast(pa.int64()) if pa.types.is_integer(column.type) else column


def words(turns: Sequence[Spent], events_of_turn: int) -> str:
    """The median, the least and the greatest turn of a side."""
    cpu = sorted(turn.cpu * 1e6 / events_of_turn for turn in turns)
    clock = statistics.median(turn.clock for turn in turns)
    spread = f"{cpu[0]:.1f} to {cpu[-1]:.1f}"
    return f"{statistics.median(cpu):.1f} CPU s for a million events ({spread}), a turn {clock:.1f} s by the clock"


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.auto_cdc", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("spark", help="the Python of an environment of Spark 4.3")
    parser.add_argument("--events", type=int, default=50_000, help="of a batch")
    parser.add_argument("--batches", type=int, default=3)
    parser.add_argument("--warm", type=int, default=1, help="batches before those, which are not measured")
    parser.add_argument("--keys", type=int, default=20_000)
    parser.add_argument("--kinds", default="scd2,scd1", help=f"of {', '.join(KINDS)}")
    parser.add_argument("--skew", choices=get_args(Skew), default="uniform", help="how often the keys come")
    given = parser.parse_args()
    for kind in given.kinds.split(","):
        in_turns(kind, given.skew, given)


if __name__ == "__main__":
    main()
