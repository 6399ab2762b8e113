"""The table page: its timeline as lanes, its file groups as a map, columns, statements of DDL, properties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from binlake.cli.console.actions import KINDS
from binlake.cli.console.group_map import SHADES, SIDE, SKIPPING, map_of_skips, map_of_values
from binlake.cli.console.lake_page import lake_row
from binlake.cli.console.page import Asked, Site, error_words, rendered
from binlake.cli.console.plan_picture import MEASURES, plan_picture
from binlake.cli.console.table_picture import TimelineMove, table_picture
from binlake.cli.text import duration
from hudilake.errors import LakeError
from hudilake.read import ScanPlan, Snapshot, TableReader
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from hudilake.wording import counted

_SLOT, _LANE, _LEFT = 9, 22, 130


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
    looks = {"compactions": "two", "replacements": "two", "cleans": "four", "rollbacks": "bad"}
    looks |= {"restores": "bad", "savepoints": "three"}
    return looks.get(lane, "one")


def _move_words(move: TimelineMove) -> str:
    words = [f"{move.words} {move.instant}", move.state]
    if move.took_ms is not None:
        words.append(f"took {duration(move.took_ms)}")
    if move.rows is not None:
        words.append(counted(move.rows, "row"))
    return ", ".join(words)


def table_page(site: Site, asked: Asked) -> str:
    """The page. ``asked``: ``stream``, ``table``; ``shade``, what colours the map of file groups; ``where``, an SQL
    condition for the map of what is skipped. Raises ConfigError, and as ``table_picture``."""
    watch, looked = site.table(asked)
    settings = watch.settings
    where, shade = asked.get("where", "").strip(), asked.get("shade", SKIPPING if asked.get("where") else "size")
    shade = shade if shade in SHADES or shade == SKIPPING else "size"
    plan, refusal = None, ""
    if where and shade == SKIPPING:
        root = open_storage(settings.lake.uri, settings.lake.storage_options())
        table = HudiTable.open(root.sub(looked.path))
        picture = table_picture(table, settings.name, settings.locking.heartbeat_timeout_seconds)
        plan, refusal = _skipping_plan(table, where)
    else:
        picture = watch.pictures.of(looked.path)
    if plan is not None:
        groups = map_of_skips(picture.slices, plan.slices)
    else:
        groups = map_of_values(picture.slices, shade if shade in SHADES else "size")
    return rendered(
        "table.html",
        site,
        "lake",
        stream=settings.name,
        row=lake_row(watch.view, settings, looked),
        looked=looked,
        picture=picture,
        lanes=lanes(picture.moves),
        groups=groups,
        shade=shade,
        where=where,
        refusal=refusal,
        plan=plan_picture(plan) if plan is not None else None,
        measures=MEASURES,
        side=SIDE,
        actions=list(KINDS),
        shades=[*SHADES, SKIPPING],
        recent=[move for move in reversed(picture.moves) if move.rows is not None or not move.completed][:25],
    )


def _skipping_plan(table: HudiTable, where: str) -> tuple[ScanPlan | None, str]:
    """What a condition leaves to read of a table now, or why that cannot be said."""
    try:
        return TableReader(table).plan(Snapshot(), where, count_all=True), ""
    except LakeError as error:
        return None, error_words(error)
