"""Tables created and opened: the two doors to the façade."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa

from hudilake.api.rows import Rows, schema_of
from hudilake.api.table import Table
from hudilake.errors import ConfigError
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.kind import TableKind
from hudilake.locking.choose import LockConfig
from hudilake.locking.ownership import Locking
from hudilake.metadata.config import MetadataConfig
from hudilake.policies import ChangeLog, IndexType, MetadataPolicy, TableType
from hudilake.storage import Storage, open_storage
from hudilake.table.table import HudiTable
from hudilake.validation import repeated

#: The buckets of a partition of a new table.
BUCKETS: Final = 4
_WRITER: Final = "hudilake"


def open_table(
    table: str | Storage, storage_options: Mapping[str, str] | None = None, *, locking: LockConfig | None = None
) -> Table:
    """Open a Hudi table: one of table version 9 to read it and to write to it, one of version 6 or 8 to read it.

    Args:
        table: its path or URI (``s3://bucket/orders``, ``gs:``, ``az:``, ``hdfs:``, ``file:``, ``memory:``), or an open
            storage at its root.
        storage_options: of the store, see ``open_storage``.
        locking: how it is shared with other writers, Hudi's included; None chooses the lock by the store.

    It reads ``hoodie.properties`` and lists the timeline; no data file is read.

    Raises ConfigError if there is no table, UnsupportedError for one with features that hudilake does not know,
    CorruptDataError, StorageError.

    Example:
        >>> hudilake.open_table(orders.uri).schema.names
        ['id', 'qty', 'day', 'updated_at']
    """
    storage = open_storage(table, storage_options) if isinstance(table, str) else table
    return Table(HudiTable.open(storage, locking=_shared(locking), conflicts="row"))


def table_exists(table: str | Storage, storage_options: Mapping[str, str] | None = None) -> bool:
    """Whether there is a Hudi table.

    Args:
        table: a path or URI, or an open storage.
        storage_options: of the store, see ``open_storage``.

    Raises ConfigError for a URI of no storage, StorageError.

    Example:
        >>> hudilake.table_exists(orders.uri), hudilake.table_exists(uri)
        (True, False)
    """
    return HudiTable.exists(open_storage(table, storage_options) if isinstance(table, str) else table)


def create_table(
    table: str | Storage,
    schema: Rows,
    *,
    key: str | Sequence[str] = (),
    order_by: str = "",
    partition_by: str | Sequence[str] = (),
    type: TableType = "merge_on_read",
    index: IndexType | None = None,
    buckets: int = BUCKETS,
    name: str | None = None,
    database: str = "",
    metadata: MetadataPolicy | None = None,
    change_log: ChangeLog | None = None,
    storage_options: Mapping[str, str] | None = None,
    locking: LockConfig | None = None,
) -> Table:
    """Create an empty Hudi table of table version 9, with a metadata table, and open it.

    Args:
        table: its path or URI, or an open storage at its root; nothing else may be there.
        schema: its columns: an Arrow schema, or a frame or rows that have them. Lists, structs, maps with strings as
            keys and binaries of a fixed size may be nested in each other. Unsigned and narrow integers, strings and
            lists of other layouts, and times of other units become the nearest type that Hudi stores (int32, int64,
            string, list, microseconds).
        key: the columns of the record key; none for an append table, whose rows are added and never changed.
        order_by: of a table with a key, the column whose greatest value wins among rows of one key: an integer, a date
            or a timestamp.
        partition_by: the columns whose values are the directories of rows (``day=2024-02-29``).
        type: ``merge_on_read``: changes go to log files; ``copy_on_write``: each commit rewrites base files.
        index: how the file group of a key is found; None for ``bucket``, or ``none`` without a key. Tables of any index
            can be created and read; hudilake writes to ``bucket``, ``consistent_bucket`` and ``none``.
        buckets: file groups of a partition, with a bucket index. A bucket holds best 100 MB to 1 GB.
        name: of the table; None for the last part of the path.
        database: of the table, for catalogs.
        metadata: what its metadata table keeps; None for file lists, column statistics and bloom filters.
        change_log: what commits keep of each changed row for Hudi's CDC query: ``op_key_only``, ``data_before`` or
            ``data_before_after``; None for nothing. Only ``copy_on_write`` tables with a key have it.
        storage_options: of the store, see ``open_storage``.
        locking: how it is shared with other writers; None chooses the lock by the store.

    Raises ConfigError for columns that do not fit each other, UnsupportedError for types that Hudi's readers cannot
    take, AlreadyExistsError for an existing table, StorageError.

    Example:
        >>> schema = pa.schema({"id": pa.int64(), "name": pa.string(), "at": pa.timestamp("us", "UTC")})
        >>> people = hudilake.create_table(uri, schema, key="id", order_by="at", type="copy_on_write", buckets=1)
        >>> people.properties["hoodie.table.type"]
        'COPY_ON_WRITE'
    """
    storage = open_storage(table, storage_options) if isinstance(table, str) else table
    keys, partitions = _names(key), _names(partition_by)
    kind = TableKind(type, index or ("bucket" if keys else "none"))
    title = name or storage.uri.rstrip("/").rpartition("/")[2]
    columns = schema_of(schema)
    for names in (keys, partitions):
        if doubled := repeated(names):
            raise ConfigError(f"a column is named twice: {', '.join(doubled)}", do_next="name it once", table=title)
    _check(kind, keys, order_by, columns, title)
    config = TableConfig(
        title, keys, order_by, buckets if kind.computed else 0, partitions, database=database, kind=kind
    ).with_change_log(change_log)
    config.check_changeable()  # kinds of tables that have no change logs
    settings = MetadataConfig.of(metadata or MetadataPolicy())
    return Table(HudiTable.create(storage, config, columns, settings, _shared(locking), "row"))


def _shared(locking: LockConfig | None) -> Locking:
    return Locking(locking or LockConfig(), _WRITER)


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _check(kind: TableKind, keys: tuple[str, ...], order_by: str, columns: pa.Schema, table: str) -> None:
    """Raise ConfigError for a definition whose parts contradict each other."""

    def wrong(what: str, do_next: str) -> ConfigError:
        return ConfigError(what, do_next=do_next, table=table)

    if kind.appends and (keys or order_by):
        raise wrong("an append table has neither key nor order_by", "leave them out, or choose another index")
    if kind.appends:
        return
    if not keys:
        raise wrong(f"a table of the index {kind.index} needs a record key", "give key=")
    if not order_by:
        raise wrong("a table with a key needs a column that orders its changes", "give order_by=")
    if order_by in columns.names:
        of_order = columns.field(order_by).type
        if not (
            pa.types.is_signed_integer(of_order) or pa.types.is_timestamp(of_order) or pa.types.is_date32(of_order)
        ):
            raise wrong(f"rows cannot be ordered by {order_by}, a {of_order}", "choose an integer, date or timestamp")
