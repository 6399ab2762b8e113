"""What each merge engine does to rows before they are parcels: an engine is an object, named in ``_ENGINES``.

Its mergers are in ``binlake.rows.merging.mergers``, its hidden columns in ``hudilake.format.definition.merging``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from binlake.decode.changes import Mask
from binlake.rows.upsert.collapse import Int64s, setting
from binlake.rows.upsert.engines.contributions import irrevocable
from binlake.rows.upsert.engines.facts import route_facts
from binlake.rows.upsert.place import PlacedRows
from binlake.rows.upsert.route import AppliedRecords, Counts, RoutedRows, route
from hudilake.format.definition.merging import Engine, Merging


class NewestEvent:
    """The newest event of a key, or of a column group in it, is its row."""

    def refused(self, rows: PlacedRows) -> tuple[Mask, str]:
        """The events that the engine cannot take, bool of n, and why."""
        return np.zeros(len(rows), dtype=np.bool_), ""

    def routed(
        self, rows: PlacedRows, applied: AppliedRecords, gone_until: int | Int64s, group: int | None
    ) -> RoutedRows:
        """The rows as parcels. Arguments and errors as ``route``."""
        return route(rows, applied, gone_until, group)


class EveryFact(NewestEvent):
    """Every event counts: rows are facts that functions add up."""

    def refused(self, rows: PlacedRows) -> tuple[Mask, str]:
        """Not every value can be taken back."""
        return irrevocable(rows)

    def routed(
        self, rows: PlacedRows, applied: AppliedRecords, gone_until: int | Int64s, group: int | None
    ) -> RoutedRows:
        """The halves of the facts."""
        return route_facts(rows, dict(rows.target.merging.functions), applied, gone_until)


class SetColumns(NewestEvent):
    """An event changes the columns that it sets, and each has an order of its own."""

    def refused(self, rows: PlacedRows) -> tuple[Mask, str]:
        """A row cannot move to another partition: its other columns would stay behind."""
        if (partition := rows.target.partition) is None:
            return super().refused(rows)
        return (
            rows.moved(),
            f"the event moves a row to another partition, by {partition.column}, without all its columns",
        )

    def routed(
        self, rows: PlacedRows, applied: AppliedRecords, gone_until: int | Int64s, group: int | None
    ) -> RoutedRows:
        """The events that set a column: each may set others."""
        return route(rows, applied, gone_until, group, setting)


class OldestEvent(NewestEvent):
    """The oldest event of a key is its row."""

    def routed(
        self, rows: PlacedRows, applied: AppliedRecords, gone_until: int | Int64s, group: int | None
    ) -> RoutedRows:
        """Without the updates that move a row to another partition: the first row stays where it is."""
        moved = rows.moved()
        ignored, again = int(moved.sum()), int((moved & ~applied.fresh(rows.rows)).sum())
        until = gone_until if isinstance(gone_until, int) else gone_until[~moved]
        routed = route(rows.where(~moved), applied, until, kept=None)
        routed.counts.add(Counts(ignored - again, superseded=ignored - again, already_applied=again))
        return routed


_ENGINES: Final[Mapping[Engine, NewestEvent]] = {
    "newest": NewestEvent(),
    "stitched": NewestEvent(),
    "partial_update": SetColumns(),
    "first_row": OldestEvent(),
    "aggregate": EveryFact(),
    "scd2": NewestEvent(),
    "bitemporal": NewestEvent(),
    "changes": NewestEvent(),
}


def engine_of(merging: Merging) -> NewestEvent:
    """The engine of a table."""
    return _ENGINES[merging.engine]
