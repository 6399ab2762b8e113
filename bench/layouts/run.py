"""One side: its table loaded once, each layout made of a copy, and what the queries then read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.layouts.counting import Read, footers, read_by
from bench.layouts.questions import questions
from bench.layouts.rows import batches
from bench.layouts.sides import LAYOUTS, Side, Sizes

#: Rows of the table of which the queries' values are taken.
_SAMPLED = 400_000
#: How often a layout is made until it has nearly the wanted number of files; the last time counts.
_TRIES, _CLOSE = 3, 0.02


@dataclass(frozen=True, slots=True)
class Found:
    """What one layout is.

    Args:
        side, layout: the names.
        sizes: of the run.
        seconds: to cluster; 0 for the rows as they came.
        files, row_groups, bytes, fewest, most: of the table; the rows of its smallest and of its largest file.
        read: kind of query -> what it reads.
    """

    side: str
    layout: str
    sizes: Sizes
    seconds: float
    files: int
    row_groups: int
    bytes: int
    fewest: int
    most: int
    read: dict[str, Read]

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self), sort_keys=True)


def write_parts(place: Path, sizes: Sizes) -> Path:
    """The rows as Parquet files, in the order in which they came; returns their directory, which may be there."""
    parts = place / f"parts-{sizes.rows}-{sizes.files}"
    if not parts.exists():
        made = place / "parts-half"
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True)
        for number, table in enumerate(batches(sizes.rows, sizes.files)):
            pq.write_table(table, made / f"{number:05d}.parquet", compression="zstd")
        made.rename(parts)
    return parts


def measure(name: str, side: Side, place: Path, parts: Path, sizes: Sizes, only: list[str]) -> Iterator[Found]:
    """Each layout of a side, beginning with the rows as they came.

    Args:
        name: of the side.
        side: see there.
        place: a directory for its tables.
        parts: from ``write_parts``.
        sizes: of the run.
        only: the layouts; none for all of the side.
    """
    loaded, asked = place / "loaded", questions(_sample(parts))
    side.load(loaded, parts, sizes)

    def found(layout: str, path: Path, seconds: float) -> Found:
        ranges = footers(side.files(path))
        if int(ranges.rows.sum()) != sizes.rows:
            raise RuntimeError(f"{name}, {layout}: {ranges.rows.sum()} rows are left of {sizes.rows}")
        by_file = ranges.rows_of_files()
        read = {kind: read_by(queries, ranges) for kind, queries in asked.items()}
        counts = (ranges.count, len(ranges.owner), ranges.bytes, int(by_file.min()), int(by_file.max()))
        return Found(name, layout, sizes, seconds, *counts, read)

    yield found("as they came", loaded, 0.0)
    layouts = [one for one in side.layouts() if not only or one in only]
    _warm_up(side, place, parts, layouts[-1:])
    wanted = float(sizes.files)
    for chosen in layouts:
        path = place / "copy"
        for _ in range(_TRIES):
            shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(loaded, path)
            seconds = side.cluster(path, LAYOUTS[chosen], wanted)
            made = len(side.files(path))
            if abs(made - sizes.files) <= _CLOSE * sizes.files:
                break
            wanted *= sizes.files / made
        yield found(chosen, path, seconds)


def _warm_up(side: Side, place: Path, parts: Path, layouts: list[str]) -> None:
    """The first clustering of a process is not counted: a small one, of two of the files."""
    few, table = place / "few-parts", place / "few"
    few.mkdir()
    for path in sorted(parts.iterdir())[:2]:
        (few / path.name).symlink_to(path)
    sizes = Sizes(0, 2)
    side.load(table, few, sizes)
    for layout in layouts:
        side.cluster(table, LAYOUTS[layout], 2)
    shutil.rmtree(table)


def _sample(parts: Path) -> pa.Table:
    """Some rows of every file."""
    tables = [pq.read_table(path) for path in sorted(parts.iterdir())]
    rows = sum(table.num_rows for table in tables)
    step = max(1, rows // _SAMPLED)
    return pa.concat_tables([table.take(pa.array(range(0, table.num_rows, step))) for table in tables])
