"""What clients send, as databases, tables and partitions. What is unset is what Java's generated classes have then."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lakemetastore.errors import InvalidObjectError, MetaError
from lakemetastore.hive.generated import Struct
from lakemetastore.model import Column, Database, Partition, SerDe, SortColumn, Storage, Table

_EXTERNAL = "EXTERNAL"


def database(d: Struct) -> Database:
    """A database out of ttypes.Database."""
    return Database(
        name=d.name or "",
        description=d.description,
        location=d.locationUri,
        parameters=d.parameters or {},
        owner=d.ownerName,
        owner_type=d.ownerType,
        created=d.createTime or 0,
    )


def table(t: Struct) -> Table:
    """A table out of ttypes.Table. Raises InvalidObjectError if it has no storage descriptor."""
    parameters = t.parameters or {}
    external = parameters.get(_EXTERNAL, "").upper() == "TRUE"
    return Table(
        database=t.dbName or "",
        name=t.tableName or "",
        storage=storage(t.sd, t.tableName),
        location=t.sd.location,
        partition_keys=columns(t.partitionKeys),
        parameters=parameters,
        owner=t.owner,
        owner_type=t.ownerType,
        created=t.createTime or 0,
        last_access=t.lastAccessTime or 0,
        retention=t.retention or 0,
        kind=t.tableType or ("EXTERNAL_TABLE" if external else "MANAGED_TABLE"),
        view_original_text=t.viewOriginalText,
        view_expanded_text=t.viewExpandedText,
        rewrite_enabled=bool(t.rewriteEnabled),
    )


def partition(p: Struct, of: Table | None = None) -> Partition:
    """A partition out of ttypes.Partition. Without a storage descriptor it is stored as its table is.

    Raises:
        InvalidObjectError: it has no storage descriptor, and ``of`` is not given.
    """
    stored = of.storage if of and p.sd is None else storage(p.sd, p.tableName)
    return Partition(
        values=tuple(p.values or ()),
        storage=stored,
        location=p.sd.location if p.sd else None,
        parameters=p.parameters or {},
        created=p.createTime or 0,
        last_access=p.lastAccessTime or 0,
    )


def partitions(given: Iterable[Struct] | None) -> list[Partition]:
    """Partitions. Those that are equal in their storage share one value of it."""
    shared: dict[bytes, Storage] = {}
    return [_sharing(partition(p), shared) for p in given or ()]


def storage(sd: Struct, of: str | None) -> Storage:
    """How rows are stored, out of ttypes.StorageDescriptor; its place is left out. ``of`` names the table in errors.

    Raises:
        InvalidObjectError: there is none.
        MetaError: it has no SerDeInfo.
    """
    if sd is None:
        raise InvalidObjectError("A storage descriptor is missing", do_next="send one with the object", table=of)
    serde = sd.serdeInfo
    if serde is None:
        raise MetaError("Invalid SerDeInfo object", do_next="send one with the storage descriptor", table=of)
    return Storage(
        columns=columns(sd.cols),
        input_format=sd.inputFormat,
        output_format=sd.outputFormat,
        compressed=bool(sd.compressed),
        buckets=sd.numBuckets or 0,
        serde=SerDe(serde.name, serde.serializationLib, serde.parameters or {}),
        bucket_columns=tuple(sd.bucketCols or ()),
        sort_columns=tuple(SortColumn(o.col, 1 if o.order is None else o.order) for o in sd.sortCols or ()),
        parameters=sd.parameters or {},
        stored_as_sub_directories=bool(sd.storedAsSubDirectories),
    )


def columns(given: Iterable[Struct] | None) -> tuple[Column, ...]:
    """Columns out of ttypes.FieldSchema."""
    return tuple(Column(c.name or "", c.type or "", c.comment) for c in given or ())


def _sharing(p: Partition, shared: dict[bytes, Storage]) -> Partition:
    key = msgspec.msgpack.encode(p.storage)
    return msgspec.structs.replace(p, storage=shared.setdefault(key, p.storage))
