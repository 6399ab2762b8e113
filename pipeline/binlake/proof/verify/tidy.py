"""Rows that are in the lake twice, not where its writer looks for them, or ahead of the source, taken out.

Each of these file groups is written anew without them, in one commit of the repair's stream and under the table's lock:
no event of their keys comes between. Of a key with several rows the newest stays that is in its right place. Where none
is, the key has no row for a moment: the repair writes it as it writes any missing row.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.position.commit_record import CommitNotes, CommitRecord
from binlake.position.recorded import RecordedRepair
from binlake.proof.verify.canonical import is_in
from binlake.proof.verify.columns import ColumnPlan
from binlake.proof.verify.places import GroupName, RightPlaces
from binlake.proof.verify.rows import NO_ORDERS, KnownRows, Longs
from binlake.rows.merging.event_orders import event_orders
from binlake.rows.merging.write import write_anew
from binlake.rows.upsert.route import KEY, Counts
from binlake.tables.lake_table import LakeTable
from hudilake.commit.intent import WHOLE_TABLE
from hudilake.format.definition.column_names import lake_name
from hudilake.format.digest.rows import Ulongs
from hudilake.format.files.file_group_write import FileGroupWrite, WriteResult
from hudilake.format.files.view import FileSlice
from hudilake.read.slice import read_deletes, read_file_slice
from hudilake.write.group_writer import NO_KEYS, GroupWriter


@dataclass(frozen=True)
class _SliceRows:
    """The rows of the keys in one file slice.

    Args:
        piece: the slice.
        keys: hashes of the keys, uint64 array of n.
        rank: int64 array of (2, n): whether the row is astray, and ``~order``, which is least for the newest.
        rows: their indexes in the slice, int64 array of n.
    """

    piece: FileSlice
    keys: Ulongs
    rank: Longs
    rows: Longs


@dataclass(frozen=True)
class RowRemoval:
    """Takes superfluous rows of some keys out of file groups.

    Args:
        table: open for writing.
        plan: the compared columns; rows of other source tables stay as they are.
        keys: the hashes of the keys, ascending.
        stream: of the commit.
        impossible: ordering values that no change of the source has: rows with them are taken out.
    """

    table: LakeTable
    plan: ColumnPlan
    keys: Ulongs
    stream: str
    impossible: Longs = field(default_factory=NO_ORDERS.copy)

    def run(self, groups: Collection[GroupName], position: str) -> int:
        """Write the file groups anew; returns how many rows were taken out.

        Args:
            groups: all in which rows of the keys stand.
            position: of the source, for the commit's record.

        Raises LakeError; the table is unchanged then.
        """
        hudi = self.table.hudi
        with hudi.exclusively():
            self.table.refresh(self.stream)
            pieces = [piece for piece in hudi.file_slices() if (piece.partition_path, piece.file_id) in groups]
            met = [self._met(piece) for piece in pieces]
            gone = _superfluous(met)
            taken = sum(map(len, gone))
            if taken:
                self._commit(met, gone, CommitNotes(repaired=RecordedRepair(position, 0, taken)))
        return taken

    def _met(self, piece: FileSlice) -> _SliceRows:
        rows, table = self._stored(piece), self.table
        known = KnownRows.of(self.plan.of_lake(rows), self.plan)
        chosen = is_in(known.keys, self.keys)
        if self.plan.shard is not None:
            mine = pc.equal(rows.column(lake_name(self.plan.shard.column)), self.plan.shard.value)
            chosen &= pc.fill_null(mine, False).to_numpy()
        orders = np.asarray(event_orders(rows, table.merging).to_numpy(zero_copy_only=False), dtype=np.int64)
        astray = RightPlaces(table.hudi.config).astray(rows, piece) | np.isin(orders, self.impossible)
        positions = np.flatnonzero(chosen)
        return _SliceRows(
            piece, known.keys[positions], np.stack([astray[positions].astype(np.int64), ~orders[positions]]), positions
        )

    def _stored(self, piece: FileSlice) -> pa.Table:
        """All rows of a slice, in an order that is the same each time."""
        rows = read_file_slice(self.table.hudi, piece, [KEY, *self.table.hudi.schema.names])
        return rows.combine_chunks()

    def _commit(self, met: Sequence[_SliceRows], gone: Sequence[Longs], notes: CommitNotes) -> None:
        table = self.table
        context = table.begin(table.hudi.schema, WHOLE_TABLE)
        with table.undone_on_error(context.instant):
            writer, results = table.rows.group_writer(context), list[WriteResult]()
            for one, rows in zip(met, gone, strict=True):
                if len(rows) or (len(one.rows) and context.states_keys):  # an index is given the place of what stays
                    results += self._anew(writer, one, rows)
            source = table.source
            assert source is not None
            table.commit(context, results, CommitRecord(self.stream, 0, Counts(), source, table.origin, notes=notes))

    def _anew(self, writer: GroupWriter, met: _SliceRows, gone: Longs) -> list[WriteResult]:
        rows, piece = self._stored(met.piece), met.piece
        left = np.ones(len(rows), dtype=np.bool_)
        left[gone] = False
        names = rows.column(KEY).combine_chunks()
        deletes = read_deletes(self.table.hudi, piece)  # older rows that come late must not return
        group = FileGroupWrite(
            piece.partition_path,
            piece.file_id,
            rows.filter(pa.array(left)).sort_by(KEY),
            deletes.sort_by(KEY) if len(deletes) else None,
        )
        first, *further = write_anew(self.table.storage, writer, group, names.take(pa.array(gone)).unique())
        stay = names.take(pa.array(np.setdiff1d(met.rows, gone)))
        if first.keys is not None:
            placed = pa.concat_arrays([NO_KEYS, first.keys.inserted])
            new = stay.filter(pc.invert(pc.is_in(stay, value_set=placed)))
            inserted = pa.concat_arrays([placed, new])
            deleted = first.keys.deleted.filter(pc.invert(pc.is_in(first.keys.deleted, value_set=inserted)))
            first = replace(first, keys=replace(first.keys, inserted=inserted, deleted=deleted))
        return [first, *further]


def _superfluous(met: Sequence[_SliceRows]) -> list[Longs]:
    """Of each slice, the indexes of the rows that are too many: all rows of a key but the newest that is not astray."""
    if not met:
        return []
    keys, rank = np.concatenate([one.keys for one in met]), np.concatenate([one.rank for one in met], axis=1)
    ordered = np.lexsort((rank[1], rank[0], keys))
    best = ordered[np.unique(keys[ordered], return_index=True)[1]]
    gone = np.ones(len(keys), dtype=np.bool_)
    gone[best] = rank[0][best] == 1
    ends = np.cumsum([len(one.keys) for one in met])
    return [one.rows[flags] for one, flags in zip(met, np.split(gone, ends[:-1]), strict=True)]
