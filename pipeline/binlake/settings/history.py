"""History tables: further lake tables of source tables, whose rows are versions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Self

from pydantic import Field, model_validator

from binlake.settings.merging import MergeSettings, tracking_problem
from binlake.settings.table_rules import ClusteringSettings
from hudilake.validation import ColumnNames, Section, Text, mistake


class HistorySettings(Section):
    """A lake table with the versions of the rows of a source table, beside the table of its rows."""

    table: Text
    """The ``database.table`` at the source. The settings must take it into the lake."""
    to: Text
    """The ``database.table`` in the lake. ``tables.overrides`` match it; ``tables.routes`` do not."""
    kind: Literal["scd2", "bitemporal", "changes"] = "scd2"
    """``scd2``: a row for each version, with the place and the time from which on it is valid, and until which.
    ``bitemporal``: as ``scd2``, and a version whose end or values a later commit mends is a further row: each row says
    from which commit on the lake knew it so, and until which.
    ``changes``: a row for each insert and delete, and two for each update: the row before it and after it."""
    track: ColumnNames | None = Field(default=None, min_length=1)
    """The columns whose changes make a version. A change of other columns alone mends the version that there is. null
    for every event."""
    track_except: ColumnNames | None = None
    """In place of ``track``: the columns whose changes make no version; those of all others do. With ``[]`` an event
    that changes nothing makes none."""

    @model_validator(mode="after")
    def _names(self) -> Self:
        for text in (self.table, self.to):
            if text.count(".") != 1 or not all(text.split(".")):
                raise mistake("table and to must be database.table")
        if why := tracking_problem(self.kind, self.track, self.track_except):
            raise mistake(why)
        return self

    @property
    def name(self) -> tuple[str, str]:
        """Database and table in the lake."""
        database, table = self.to.split(".")
        return database, table

    def given(self, rules: dict[str, object]) -> dict[str, object]:
        """The fields of ``TableSettings`` for the history table: what rows of the source need does not apply."""
        own = {"partition": None, "clustering": ClusteringSettings(), "kind": "upsert", "immutable_partition": False}
        return (
            rules | own | {"merge": MergeSettings(engine=self.kind, track=self.track, track_except=self.track_except)}
        )


def history_problem(histories: Iterable[HistorySettings], taken: Iterable[str]) -> str | None:
    """Why two history tables, or one and another lake table, cannot be together; None if they can. ``taken``: names of
    further lake tables. Readers and file systems may ignore the case of names."""
    names = {name.lower() for name in taken}
    for history in histories:
        if history.to.lower() in names or history.to.lower() == history.table.lower():
            return f"history table {history.to}: another table has the name"
        names.add(history.to.lower())
    return None
