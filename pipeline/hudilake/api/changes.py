"""The changes of a transaction: their record keys and places, what is left of several changes to a key, the file
groups that they go to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.api.rows import Rows, conformed, rows_of
from hudilake.errors import ConfigError
from hudilake.format.definition.bucketing import split_by_bucket, split_by_partition
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.keys import check_own_keys, record_keys
from hudilake.format.definition.kind_support import TableOperation
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.file_group_write import FileGroupWrite
from hudilake.format.files.log_merge import LEAST, ordering_values
from hudilake.wording import counted

#: The most bytes of a name in local file systems and HDFS.
_MOST_NAME_BYTES = 255

Int64s = npt.NDArray[np.int64]


def checked_paths(config: TableConfig, rows: pa.Table) -> pa.Array:
    """The partition path of each of n rows, string array of n. Raises ConfigError for a value that cannot name a
    directory that readers see."""
    paths = config.layout.paths(rows)
    paths = paths.combine_chunks() if isinstance(paths, pa.ChunkedArray) else paths
    for path in pc.unique(paths).to_pylist():
        parts = path.split("/") if path else []
        if any(part.startswith(".") or len(part.encode()) > _MOST_NAME_BYTES for part in parts):
            raise ConfigError(
                f"the partition {path[:80]!r} cannot be a directory of rows",
                do_next="choose partition values without a leading dot and of at most 255 bytes",
                table=config.name,
            )
    return paths


def may_be_null(schema: pa.Schema, names: Iterable[str]) -> frozenset[str]:
    """The columns that may hold null: this API writes none into a key, other writers of the table may."""
    return frozenset(name for name in names if schema.field(name).nullable)


@dataclass(frozen=True, slots=True)
class KeyedChanges:
    """n rows of one write: with RECORD_KEY_FIELD, the partition path of each (string array of n), and whether they
    delete."""

    rows: pa.Table
    paths: pa.Array
    deletes: bool


@dataclass
class PendingChanges:
    """What a transaction shall write to a table with a key, in the order in which it was asked for."""

    config: TableConfig
    schema: pa.Schema
    writes: list[KeyedChanges] = field(default_factory=list)

    def upsert(self, rows: Rows) -> None:
        """Add rows. Raises ConfigError for rows that the table cannot take."""
        config = self.config
        needed = [*config.record_key_fields, config.ordering_field]
        self._add(conformed(rows_of(rows, self.schema), self.schema, needed), deletes=False)

    def delete(self, rows: Rows) -> None:
        """Delete the rows with these keys: columns of the key and the partition; others are not looked at. Raises
        ConfigError."""
        names = dict.fromkeys((*self.config.record_key_fields, *self.config.partition_fields))
        given = rows_of(rows, self.schema)
        schema = pa.schema([self.schema.field(name) for name in names])
        known = given.select([name for name in given.column_names if name in names])
        keys = conformed(known, schema, tuple(self.config.record_key_fields))
        if lacking := [name for name in names if name not in known.column_names]:
            raise ConfigError(
                f"the rows to delete lack {', '.join(lacking)}",
                do_next="give the columns of the record key and of the partition",
                table=self.config.name,
            )
        self._add(keys, deletes=True)

    def _add(self, rows: pa.Table, *, deletes: bool) -> None:
        fields = self.config.record_key_fields
        check_own_keys(rows, fields, may_be_null(self.schema, fields), self.config.name)
        keys = record_keys(rows, fields)
        keys = keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys
        paths = checked_paths(self.config, rows)
        keyed = rows.add_column(0, pa.field(RECORD_KEY_FIELD, pa.string()), keys)
        self.writes.append(KeyedChanges(keyed, paths, deletes))

    def groups(self, file_id: Callable[[str, int], str]) -> Iterator[FileGroupWrite]:
        """The file groups to write, each with no key twice.

        ``file_id``: gives the id of the file group of a partition path and a bucket.

        Raises ConfigError for a key that is deleted and upserted again: one commit cannot say that.
        """
        writes = [write for write in self.writes if len(write.rows)]
        if not writes:
            return
        keys = pa.concat_arrays([_whole(write.rows.column(RECORD_KEY_FIELD)) for write in writes])
        paths = pa.concat_arrays([write.paths for write in writes])
        kept, gone, orders = self._left(writes, _codes(keys, paths))
        order_of = dict(zip(gone.tolist(), orders.tolist(), strict=True))
        rows = pa.concat_tables([write.rows for write in writes], promote_options="default")
        chosen = np.concatenate((kept, gone))
        deletes = np.concatenate((np.zeros(len(kept), np.bool_), np.ones(len(gone), np.bool_)))
        taken_keys, taken_paths = keys.take(pa.array(chosen)), paths.take(pa.array(chosen))
        placed = split_by_bucket(self.config.bucketing, taken_keys, self.config.hash_fields, taken_paths)
        for path, bucket, where in placed:
            members = placed.order[where]
            own, removed = chosen[members[~deletes[members]]], chosen[members[deletes[members]]]
            upserts = _by_key(rows.take(pa.array(own))) if len(own) else None
            removed_orders = [order_of[int(number)] for number in removed]
            yield FileGroupWrite(path, file_id(path, bucket), upserts, self._deletes(keys, removed, removed_orders))

    def _left(self, writes: list[KeyedChanges], codes: Int64s) -> tuple[Int64s, Int64s, Int64s]:
        """The indexes of the rows to upsert and of those to delete: of each key the greatest ordering value, of equal
        ones the later; a delete takes what came before it. Third, for each delete the greatest ordering value of what
        it takes, LEAST for none."""
        counts = [len(write.rows) for write in writes]
        deletes = np.repeat([write.deletes for write in writes], counts)
        orders = np.concatenate([self._orders(write) for write in writes])
        numbers = np.arange(len(codes), dtype=np.int64)
        last_delete = np.full(int(codes.max()) + 1, -1, dtype=np.int64)
        np.maximum.at(last_delete, codes[deletes], numbers[deletes])
        upserts = numbers[~deletes]
        if (again := upserts[(last_delete[codes[upserts]] >= 0) & (upserts > last_delete[codes[upserts]])]).size:
            raise ConfigError(
                f"a transaction deletes a key and upserts it afterwards ({counted(len(again), 'row')})",
                do_next="commit the deletes in a transaction of their own first",
                table=self.config.name,
            )
        alive = upserts[last_delete[codes[upserts]] < 0]
        ranked = alive[np.lexsort((alive, orders[alive], codes[alive]))]
        last = np.ones(len(ranked), dtype=np.bool_)
        last[:-1] = codes[ranked[1:]] != codes[ranked[:-1]]
        taken = np.full(len(last_delete), LEAST, dtype=np.int64)
        np.maximum.at(taken, codes[upserts], orders[upserts])
        return ranked[last], last_delete[last_delete >= 0], taken[last_delete >= 0]

    def _orders(self, write: KeyedChanges) -> Int64s:
        if write.deletes:
            return np.zeros(len(write.rows), dtype=np.int64)
        return ordering_values(write.rows, self.config.ordering_field)

    def _deletes(self, keys: pa.Array, removed: Int64s, orders: list[int]) -> pa.Table | None:
        """The deletes of a file group, each with the order of what it takes in this transaction, null for none."""
        if not len(removed):
            return None
        values = pa.array([None if order == LEAST else order for order in orders], pa.int64())
        return _by_key(pa.table({RECORD_KEY_FIELD: keys.take(pa.array(removed)), self.config.ordering_field: values}))


def deletes_have_orders(config: TableConfig, schema: pa.Schema) -> bool:
    """Whether a delete keeps older rows out. Base files forget deletes, and only whole numbers can be the order of a
    delete for Hudi's readers."""
    if config.ordering_field not in schema.names or not config.kind.has(TableOperation.COMPACTION):
        return False
    return bool(schema.field(config.ordering_field).type == pa.int64())


def unconditional(group: FileGroupWrite, ordering_field: str) -> FileGroupWrite:
    """Deletes that take the row whatever its order is."""
    if group.deletes is None:
        return group
    return replace(group, deletes=_with_orders(group.deletes, ordering_field, pa.nulls(len(group.deletes), pa.int64())))


def at_stored_orders(group: FileGroupWrite, stored: pa.Table, ordering_field: str) -> FileGroupWrite:
    """Deletes with the ordering value of the row that they take, so that no later write of an older row brings it back;
    those of rows that are not there are left out.

    ``stored``: the file group's rows, RECORD_KEY_FIELD and the ordering column.
    """
    if group.deletes is None:
        return group
    deletes = group.deletes
    where = pc.index_in(deletes.column(RECORD_KEY_FIELD), value_set=_whole(stored.column(RECORD_KEY_FIELD)))
    orders = stored.column(ordering_field).combine_chunks().take(_whole(where))
    orders = pc.max_element_wise(orders, _whole(deletes.column(ordering_field)), skip_nulls=True)
    known = _with_orders(deletes, ordering_field, orders).filter(pc.is_valid(orders))
    return replace(group, deletes=known if len(known) else None)


def _with_orders(deletes: pa.Table, ordering_field: str, orders: pa.Array) -> pa.Table:
    return deletes.set_column(1, pa.field(ordering_field, pa.int64()), orders)


def by_partition(config: TableConfig, rows: pa.Table) -> dict[str, pa.Table]:
    """n rows of an append table by their partition paths, in the order in which they came. Raises ConfigError."""
    places = split_by_partition(checked_paths(config, rows), 0)
    return {path: rows.take(pa.array(places.order[where])) for path, _, where in places}


def _codes(keys: pa.Array, paths: pa.Array) -> Int64s:
    """A number for each distinct (partition path, record key), int64 of n."""
    by_key, by_path = keys.dictionary_encode(), paths.dictionary_encode()
    codes = by_key.indices.to_numpy().astype(np.int64) * len(by_path.dictionary) + by_path.indices.to_numpy()
    return np.asarray(np.unique(codes, return_inverse=True)[1], dtype=np.int64)


def _by_key(rows: pa.Table) -> pa.Table:
    return rows.take(pc.sort_indices(rows.column(RECORD_KEY_FIELD)))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
