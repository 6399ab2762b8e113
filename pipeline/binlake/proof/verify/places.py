"""Where rows stand: the file group of each, and whether the table's writer would look for it there.

A row is astray if its record key is not that of its key columns, or if it is in another bucket or partition than that
of its key. Readers show it, and the next event of its key goes elsewhere and makes a second row of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.proof.verify.rows import Flags, Longs
from binlake.rows.upsert.target import is_keyless
from hudilake.format.definition.bucketing import bucket_or_none, buckets_of
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.key_change import keyed_since, says_key
from hudilake.format.definition.keys import PartitionLayout, record_keys
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.view import FileSlice, first_instant
from hudilake.read.partition_values import plain_layout

#: Partition path and file id.
GroupName: TypeAlias = tuple[str, str]


@dataclass
class FileGroups:
    """Numbers for the file groups of one table, the same in all its reads."""

    names: list[GroupName] = field(default_factory=list)
    _numbers: dict[GroupName, int] = field(default_factory=dict)

    def number(self, piece: FileSlice) -> int:
        """The number of a slice's file group."""
        name = (piece.partition_path, piece.file_id)
        if name not in self._numbers:
            self._numbers[name] = len(self.names)
            self.names.append(name)
        return self._numbers[name]

    def of(self, numbers: Longs | None) -> frozenset[GroupName]:
        """The file groups of some rows."""
        return frozenset() if numbers is None else frozenset(self.names[n] for n in np.unique(numbers).tolist())


@dataclass(frozen=True)
class RightPlaces:
    """Tells which rows of a table are astray. ``config``: of the table."""

    config: TableConfig

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that ``astray`` reads."""
        paths = self._layout.fields if self._layout is not None else ()
        return (RECORD_KEY_FIELD, *self.config.record_key_fields, *paths) if self._known else ()

    @cached_property
    def _known(self) -> bool:
        return says_key(self.config) and not is_keyless(self.config)

    @cached_property
    def _layout(self) -> PartitionLayout | None:
        return plain_layout(self.config)

    def astray(self, rows: pa.Table, piece: FileSlice) -> Flags:
        """Which of n rows of a file slice are astray, bool array of n. ``rows``: with ``columns``."""
        wrong = np.zeros(rows.num_rows, dtype=np.bool_)
        if not (self._known and rows.num_rows) or first_instant(piece) < keyed_since(self.config):
            return wrong
        config, path = self.config, piece.partition_path
        keys = record_keys(rows, config.record_key_fields)
        wrong |= _unlike(rows.column(RECORD_KEY_FIELD), keys)
        wrong |= self._in_other_partition(rows, path)
        counted = config.has_buckets and config.bucket_count > 0
        bucket = bucket_or_none(config.bucketing, path, piece.file_id) if counted else None
        if bucket is not None:
            stored = pc.fill_null(rows.column(RECORD_KEY_FIELD), "")
            wrong |= buckets_of(config.bucketing, stored, config.hash_fields, path) != bucket
        return wrong

    def _in_other_partition(self, rows: pa.Table, path: str) -> Flags:
        layout = self._layout
        if layout is None or not layout.fields:
            return np.zeros(rows.num_rows, dtype=np.bool_)
        values = rows.select(list(layout.fields))
        alike = all(len(pc.unique(column)) == 1 for column in values.columns)
        expected_paths = layout.paths(values.slice(0, 1) if alike else values)
        return np.broadcast_to(_unlike(expected_paths, pa.repeat(pa.scalar(path), len(expected_paths))), rows.num_rows)


def _unlike(one: pa.Array | pa.ChunkedArray, other: pa.Array) -> Flags:
    same = pc.fill_null(pc.equal(one, other), False)
    plain = same.combine_chunks() if isinstance(same, pa.ChunkedArray) else same
    return np.asarray(~plain.to_numpy(zero_copy_only=False), dtype=np.bool_)
