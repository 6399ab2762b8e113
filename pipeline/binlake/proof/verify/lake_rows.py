"""The rows of a lake table as of one timeline, in canonical form."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from binlake.proof.verify.columns import ColumnPlan
from binlake.proof.verify.places import FileGroups, GroupName, RightPlaces
from binlake.proof.verify.rows import EVERYTHING, NO_ORDERS, KeyRange, KnownRows, Longs
from binlake.rows.merging.event_orders import event_orders, order_columns
from hudilake.format.definition.column_names import lake_name
from hudilake.format.definition.keys import record_keys
from hudilake.format.definition.merging import Merging
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.view import FileSlice
from hudilake.read import And, Eq, Filter, Ge, In, Lt, ScanPlan, TableReader
from hudilake.storage import Storage

#: So many keys are looked up by their file groups; for more of them all are read.
_KEYS_LOOKED_UP = 2_000


@dataclass
class LakeRows:
    """Reads one lake table. Two reads of one object see the same commits.

    Args:
        reader: open.
        plan: the compared columns.
        portion: the rows to read.
        groups: the numbers of the table's file groups.
        impossible: ordering values that no change of the source has, ascending. Their rows are astray.
    """

    reader: TableReader
    plan: ColumnPlan
    portion: KeyRange = EVERYTHING
    groups: FileGroups = field(default_factory=FileGroups)
    impossible: Longs = field(default_factory=NO_ORDERS.copy)
    _scan: ScanPlan | None = None

    @classmethod
    def open(
        cls,
        storage: Storage,
        plan: ColumnPlan,
        portion: KeyRange = EVERYTHING,
        groups: FileGroups | None = None,
        impossible: Longs = NO_ORDERS,
    ) -> LakeRows:
        """Open the table as of now. Raises ConfigError, CorruptDataError, StorageError."""
        known = groups if groups is not None else FileGroups()
        return cls(TableReader.open(storage), plan, portion, known, impossible)

    def all(self) -> Iterator[KnownRows]:
        """All rows, in chunks; one file slice is in memory at a time. Errors as ``TableReader.batches``."""
        if self._scan is None:
            self._scan = self._planned(self._conditions())
        yield from self._read(self._scan, self._scan.slices)

    def of_keys(self, keys: pa.Table, whole: Collection[GroupName] = ()) -> Iterator[KnownRows]:
        """At least the rows of these keys where the table's writer looks for them, and those in some file groups.

        Args:
            keys: the key columns of n rows, in canonical types.
            whole: file groups that are read whole: rows of these keys were seen there. If one of them was replaced
                since, its rows may be anywhere, and all file groups are read.
        """
        chosen = set(whole)
        if chosen or keys.num_rows > _KEYS_LOOKED_UP:
            everything = self._planned(self._conditions())
            known = {_name(piece): piece for piece in everything.slices}
            if keys.num_rows > _KEYS_LOOKED_UP or not known.keys() >= chosen:
                yield from self._read(everything, everything.slices)
                return
            yield from self._read(everything, [piece for name, piece in known.items() if name in chosen])
        named = In(RECORD_KEY_FIELD, tuple(self._record_keys(keys).to_pylist()))
        scan = self._planned([*self._conditions(), named])
        yield from self._read(scan, [piece for piece in scan.slices if _name(piece) not in chosen])

    def _planned(self, conditions: list[Filter]) -> ScanPlan:
        columns = dict.fromkeys(
            [*self.plan.lake_columns, *order_columns(self._merging, self.reader.schema), *self._places.columns]
        )
        return self.reader.plan(condition=And(tuple(conditions)), columns=list(columns))

    @property
    def _merging(self) -> Merging:
        return self.reader.table.config.merging

    @cached_property
    def _places(self) -> RightPlaces:
        return RightPlaces(self.reader.table.config)

    def _read(self, scan: ScanPlan, pieces: Iterable[FileSlice]) -> Iterator[KnownRows]:
        for piece in pieces:
            number = self.groups.number(piece)
            for batch in scan.scan.read(piece):
                orders = np.asarray(event_orders(batch, self._merging).to_numpy(zero_copy_only=False), dtype=np.int64)
                ahead = np.isin(orders, self.impossible)
                seen = np.where(ahead, ~orders, np.maximum(orders, 0))
                rows = KnownRows.of(self.plan.of_lake(batch), self.plan, seen)
                groups = np.full(len(rows), number, dtype=np.int64)
                yield rows.standing(groups, ahead | self._places.astray(pa.Table.from_batches([batch]), piece))

    def _conditions(self) -> list[Filter]:
        name = self.plan.key[0].lake_name
        filters: list[Filter] = []
        if self.portion.low is not None:
            filters.append(Ge(name, self.portion.low))
        if self.portion.high is not None:
            filters.append(Lt(name, self.portion.high))
        if self.plan.shard is not None:
            filters.append(Eq(lake_name(self.plan.shard.column), self.plan.shard.value))
        return filters

    def _record_keys(self, keys: pa.Table) -> pa.Array:
        """The record keys as the lake spells them."""
        schema, shard = self.reader.schema, self.plan.shard
        columns = {c.lake_name: keys.column(c.source.name).cast(schema.field(c.lake_name).type) for c in self.plan.key}
        if shard is not None:
            columns[lake_name(shard.column)] = pa.repeat(pa.scalar(shard.value, pa.string()), keys.num_rows)
        return record_keys(pa.table(columns), self.reader.table.config.record_key_fields)


def _name(piece: FileSlice) -> GroupName:
    return piece.partition_path, piece.file_id
