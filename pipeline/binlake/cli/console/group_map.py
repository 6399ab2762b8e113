"""The file groups of a table as a map: a square each. What it says is drawn twice, as a colour and as a shape.

A value is a shade, and how high the square is filled. A file group that a condition skips is a crossed frame.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from binlake.cli.text import number, size
from hudilake.format.files.view import FileSlice
from hudilake.wording import counted

#: Of a square, and squares of a row.
CELL, ACROSS = 16, 44
SIDE = CELL - 2
_LEVELS = 6
SKIPPING = "skipping"


def _ratio(piece: FileSlice) -> float:
    return piece.log_size / piece.base_size if piece.base_size else float(piece.log_size > 0)


#: What colours a file group -> its value, and such a value for people.
SHADES: Mapping[str, tuple[Callable[[FileSlice], float], Callable[[float], str]]] = {
    "size": (lambda piece: piece.base_size + piece.log_size, lambda value: size(round(value))),
    "log ratio": (_ratio, "{:.2f}".format),
    "log files": (lambda piece: len(piece.log_files), lambda value: number(round(value))),
}


@dataclass(frozen=True, slots=True)
class MapSquare:
    """A square: its place, its colour, how high it is filled, whether it is crossed, and what it says."""

    x: int
    y: int
    look: str
    filled: int
    crossed: bool
    words: str


@dataclass(frozen=True)
class GroupMap:
    """The squares, a sample of each look with what it means, and the whole in a sentence. ``rows``: the file groups as
    texts: partition, file group, bytes of the base file, log files, their bytes, and what the map says of it."""

    width: int
    height: int
    squares: Sequence[MapSquare]
    samples: Sequence[MapSquare]
    summary: str
    rows: Sequence[Sequence[str]]


def map_of_values(slices: Sequence[FileSlice], shade: str) -> GroupMap:
    """The file groups by a value, one of ``SHADES``: the darker and the higher, the greater among them."""
    value_of, words = SHADES[shade]
    values = [value_of(piece) for piece in slices]
    top = max(values, default=0) or 1
    levels = [min(_LEVELS - 1, int(_LEVELS * value / top)) for value in values]
    spans = {level: [v for v, one in zip(values, levels, strict=True) if one == level] for level in set(levels)}
    meaning = {level: _span(words(min(span)), words(max(span))) for level, span in sorted(spans.items())}
    looks = {level: (f"q{level}", SIDE * (level + 1) // _LEVELS, False) for level in meaning}
    return _map(slices, levels, looks, meaning, shade, list(map(words, values)))


def map_of_skips(slices: Sequence[FileSlice], left: Collection[FileSlice]) -> GroupMap:
    """The file groups of which a condition leaves some to read. ``left``: those, and maybe others."""
    kept = {(piece.partition_path, piece.file_id) for piece in left}
    skipped = [int((piece.partition_path, piece.file_id) not in kept) for piece in slices]
    words, looks = ("read", "skipped"), {0: ("q5", SIDE, False), 1: ("skipped", 0, True)}
    meaning: Mapping[int, str] = {flag: words[flag] for flag in (0, 1) if flag in skipped}
    return _map(slices, skipped, looks, meaning, SKIPPING, [words[flag] for flag in skipped])


def _span(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def _map(
    slices: Sequence[FileSlice],
    levels: Sequence[int],
    looks: Mapping[int, tuple[str, int, bool]],
    meaning: Mapping[int, str],
    by: str,
    values: Sequence[str],
) -> GroupMap:
    squares, rows = [], []
    for place, (piece, level, value) in enumerate(zip(slices, levels, values, strict=True)):
        row, column = divmod(place, ACROSS)
        logs, stored = number(len(piece.log_files)), size(piece.log_size)
        rows.append([piece.partition_path, piece.file_id, size(piece.base_size), logs, stored, value])
        words = f"{piece.partition_path or 'no partition'} {piece.file_id}: base {size(piece.base_size)}, "
        words += f"{logs} log files {stored}; {value}"
        squares.append(MapSquare(column * CELL, row * CELL, *looks[level], words))
    counts = Counter(levels)
    samples = [MapSquare(0, 0, *looks[level], f"{words}: {number(counts[level])}") for level, words in meaning.items()]
    summary = f"{counted(len(slices), 'file group')} by {by}: {', '.join(one.words for one in samples) or 'none'}"
    across, down = min(len(slices), ACROSS), -(-len(slices) // ACROSS)
    return GroupMap(across * CELL, max(1, down) * CELL, squares, samples, summary, rows)
