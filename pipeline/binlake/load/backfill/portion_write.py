"""A portion written to the file groups of the table: the values that tasks get, and what they return."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from binlake.load.backfill.pieces import InputPortion, Piece, Place
from binlake.load.backfill.read_rows import RowCounts, read_parcels
from binlake.load.backfill.row_plan import RowPlan
from binlake.load.backfill.rule import BackfillRule, fill, newest_rows
from binlake.rows.merging.states import RowStates
from binlake.rows.merging.write import write_group
from binlake.rows.upsert.merge import Place as GroupPlace
from binlake.rows.upsert.parcel import Parcel, unpack
from binlake.rows.upsert.route import KEY
from hudilake.format.definition.bucketing import GroupNames
from hudilake.format.files.file_group_write import FileGroupWrite, WriteResult
from hudilake.storage import Storage
from hudilake.write.group_writer import GroupWriter


@dataclass(frozen=True)
class PortionPlan:
    """A portion for the tasks. Picklable.

    Args:
        place: of the input's files.
        rows: how rows become rows of the lake.
        rule: what is written.
        storage: the table's root.
        states: what rows are now.
        writer: of the open instant; None to write nothing, only count.
        names: the ids of the table's file groups.
    """

    place: Place
    rows: RowPlan
    rule: BackfillRule
    storage: Storage
    states: RowStates
    writer: GroupWriter | None
    names: GroupNames

    @property
    def asked(self) -> tuple[str, ...]:
        """The columns of stored rows that are looked up: to insert a row, what other groups know of its key counts."""
        if self.writer is None or not self.rule.insert:
            return self.rule.asked
        return tuple(self.writer.context.arrow_schema.names)

    def read(self, portion: InputPortion, at: Iterable[int]) -> Iterator[Parcel | RowCounts]:
        """The parcels of some pieces of a portion, by their numbers in it. Errors as ``read_parcels``."""
        numbered: Iterator[tuple[int, Piece]] = ((portion.first + n, portion.pieces[n]) for n in at)
        return read_parcels(self.place, self.rows, numbered)

    def write(self, items: Iterable[Parcel | RowCounts]) -> PortionResult:
        """Write the parcels of whole file groups. Raises CorruptDataError, UnsupportedError, StorageError."""
        groups: dict[GroupPlace, list[Parcel]] = {}
        result = PortionResult()
        for item in items:
            if isinstance(item, RowCounts):
                result.counts.add(item)
            else:
                groups.setdefault((item.partition_path, item.bucket), []).append(item)
        for place, parcels in groups.items():
            result.add(self._group(place, parcels))
        return result

    def _group(self, place: GroupPlace, parcels: list[Parcel]) -> PortionResult:
        name = self.names.of(*place)
        given = unpack(parcels)
        rows = newest_rows(given)
        keys = rows.column(KEY).combine_chunks()
        states = self.states.of(place, name, keys, self.asked)
        filled = fill(self.rule, rows, states)
        filled.counts.repeated = given.num_rows - rows.num_rows
        written: list[WriteResult] = []
        if self.writer is not None and (filled.changes or filled.inserts is not None):
            group = FileGroupWrite(place[0], name, filled.inserts, partials=filled.changes, only_inserts=True)
            written += write_group(self.storage, self.writer, group)
        return PortionResult(written, filled.counts)


@dataclass
class PortionResult:
    """The files that were written for a portion, or a part of it, and what became of its rows."""

    written: list[WriteResult] = field(default_factory=list)
    counts: RowCounts = field(default_factory=RowCounts)

    def add(self, other: PortionResult) -> None:
        """Add the result of another part."""
        self.written += other.written
        self.counts.add(other.counts)
