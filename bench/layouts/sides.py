"""What is measured: the layouts of each side, and what a run of one finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bench.layouts.questions import COLUMNS
from hudilake.policies import OrderPolicy


@dataclass(frozen=True, slots=True)
class Layout:
    """An order of rows, as each side names it.

    Args:
        name: in the report.
        policy: binlake's.
    """

    name: str
    policy: OrderPolicy


LAYOUTS: Mapping[str, Layout] = {
    one.name: one
    for one in (
        Layout("linear", OrderPolicy(columns=COLUMNS, curve="linear")),
        Layout("z-order direct", OrderPolicy(columns=COLUMNS, curve="z_order", values="direct")),
        Layout("z-order sampled", OrderPolicy(columns=COLUMNS, curve="z_order", values="sampled")),
        Layout("hilbert direct", OrderPolicy(columns=COLUMNS, curve="hilbert", values="direct")),
        Layout("hilbert sampled", OrderPolicy(columns=COLUMNS, curve="hilbert", values="sampled")),
    )
}


@dataclass(frozen=True, slots=True)
class Sizes:
    """The size of a run.

    Args:
        rows: of the table.
        files: that the rows come in, and that they shall be laid out to.
    """

    rows: int = 5_000_000
    files: int = 64


class Side(Protocol):
    """A table format's own way of laying rows out."""

    def layouts(self) -> tuple[str, ...]:
        """The names of the layouts that it has."""
        ...

    def load(self, path: Path, parts: Path, sizes: Sizes) -> None:
        """Make the table of the Parquet files in a directory, one file for each of them, in their order."""
        ...

    def cluster(self, path: Path, layout: Layout, files: float) -> float:
        """Lay its rows out in files of nearly equal size; returns the seconds that it took.

        ``files``: the number of files by the size of the table now; how well the rows compress depends on their order.
        """
        ...

    def files(self, path: Path) -> list[Path]:
        """The base files that a reader reads now."""
        ...

    def close(self) -> None:
        """End what it has started."""
        ...


#: A side by its name, with a directory of its own.
Sides = Mapping[str, Callable[[Path], Side]]
