"""The table page: its timeline as lanes, its file groups as a map, columns, statements of DDL, properties."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from binlake.cli.console.actions import KINDS
from binlake.cli.console.lake_page import lake_row
from binlake.cli.console.page import Asked, Site, rendered
from binlake.cli.console.table_picture import TimelineMove, table_picture
from binlake.cli.text import duration, number, size
from hudilake.format.files.view import FileSlice
from hudilake.storage import open_storage

_SLOT, _LANE, _LEFT = 9, 22, 130
_CELL, _ACROSS = 16, 44
#: What colours a file group -> its value.
SHADES: Mapping[str, Callable[[FileSlice], float]] = {
    "size": lambda piece: piece.base_size + piece.log_size,
    "log ratio": lambda piece: piece.log_size / piece.base_size if piece.base_size else float(piece.log_size > 0),
    "log files": lambda piece: len(piece.log_files),
}


@dataclass(frozen=True, slots=True)
class ChartMark:
    """A rectangle of a chart: its place, its look, and what it says of itself."""

    x: float
    y: float
    look: str
    words: str


@dataclass(frozen=True)
class Chart:
    """Rectangles of one size. ``labels``: text and its y."""

    width: float
    height: float
    marks: Sequence[ChartMark]
    labels: Sequence[tuple[str, float]] = ()


def lanes(moves: Sequence[TimelineMove]) -> Chart:
    """The timeline: a lane for each kind of instant, a place across for each instant, the newest at the right."""
    names = list(dict.fromkeys(move.lane for move in moves))
    marks = []
    for place, move in enumerate(moves):
        x, y = _LEFT + place * _SLOT, names.index(move.lane) * _LANE + 5
        marks.append(ChartMark(x, y, f"{move.state} {_look(move.lane)}", _move_words(move)))
    labels = [(name, row * _LANE + 15.0) for row, name in enumerate(names)]
    return Chart(_LEFT + max(1, len(moves)) * _SLOT + 4, max(1, len(names)) * _LANE, marks, labels)


def _look(lane: str) -> str:
    looks = {"compaction": "two", "clustering": "two", "commit": "two", "clean": "four", "rollback": "bad"}
    looks |= {"restore": "bad", "savepoint": "three", "ddl": "three", "revert": "three"}
    return looks.get(lane, "one")


def _move_words(move: TimelineMove) -> str:
    words = [f"{move.lane} {move.instant}", move.state]
    if move.took_ms is not None:
        words.append(f"took {duration(move.took_ms)}")
    if move.rows is not None:
        words.append(f"{number(move.rows)} rows")
    return ", ".join(words)


def group_map(slices: Sequence[FileSlice], shade: str) -> Chart:
    """The file groups: a square each, the darker the greater its value among them."""
    values = [SHADES[shade](piece) for piece in slices]
    top = max(values, default=0) or 1
    marks = []
    for place, (piece, value) in enumerate(zip(slices, values, strict=True)):
        row, column = divmod(place, _ACROSS)
        words = (
            f"{piece.partition_path or 'no partition'} {piece.file_id}: base {size(piece.base_size)}, "
            f"{len(piece.log_files)} log files {size(piece.log_size)}"
        )
        marks.append(ChartMark(column * _CELL, row * _CELL, f"q{min(5, int(5 * value / top))}", words))
    rows = -(-len(slices) // _ACROSS)
    return Chart(min(len(slices), _ACROSS) * _CELL, max(1, rows) * _CELL, marks)


def table_page(site: Site, asked: Asked) -> str:
    """The page. ``asked``: ``stream``, ``table``; ``shade``, one of ``SHADES``. Raises ConfigError, and as
    ``table_picture``."""
    watch, looked = site.table(asked)
    settings = watch.settings
    root = open_storage(settings.lake.uri, settings.lake.storage_options())
    timeout_s = settings.locking.heartbeat_timeout_seconds
    picture = table_picture(root.sub(looked.path), settings.name, timeout_s)
    shade = asked.get("shade", "size")
    shade = shade if shade in SHADES else "size"
    return rendered(
        "table.html",
        site,
        "lake",
        stream=settings.name,
        row=lake_row(watch.view, settings, looked),
        looked=looked,
        picture=picture,
        lanes=lanes(picture.moves),
        groups=group_map(picture.slices, shade),
        shade=shade,
        actions=list(KINDS),
        shades=list(SHADES),
        recent=[move for move in reversed(picture.moves) if move.rows is not None or not move.completed][:25],
    )
