"""Databases, tables and partitions as the generated classes have them.

Which optional fields are set is as measured at HMS 3.1.3: what is unset there is unset here.
"""

from __future__ import annotations

from typing import Any

from hive_metastore import ttypes

from lakemetastore.model import Column, Database, Partition, Storage, Table

CATALOG = "hive"
"""The name of the only catalog, as in the Hive Metastore."""


def database(d: Database) -> ttypes.Database:
    """A database."""
    return ttypes.Database(
        name=d.name,
        description=d.description,
        locationUri=d.location,
        parameters=dict(d.parameters),
        ownerName=d.owner,
        ownerType=d.owner_type,
        catalogName=CATALOG,
    )


def table(t: Table) -> ttypes.Table:
    """A table."""
    return ttypes.Table(
        tableName=t.name,
        dbName=t.database,
        owner=t.owner,
        createTime=t.created,
        lastAccessTime=t.last_access,
        retention=t.retention,
        sd=storage(t.storage, t.location),
        partitionKeys=columns(t.partition_keys),
        parameters=dict(t.parameters),
        viewOriginalText=t.view_original_text,
        viewExpandedText=t.view_expanded_text,
        tableType=t.kind,
        temporary=None,
        rewriteEnabled=t.rewrite_enabled,
        catName=CATALOG,
        ownerType=t.owner_type or ttypes.PrincipalType.USER,
        writeId=None,
    )


def partition(t: Table, p: Partition) -> ttypes.Partition:
    """A partition of a table."""
    return ttypes.Partition(
        values=list(p.values),
        dbName=t.database,
        tableName=t.name,
        createTime=p.created,
        lastAccessTime=p.last_access,
        sd=storage(p.storage, p.location),
        parameters=dict(p.parameters),
        catName=CATALOG,
        writeId=None,
    )


def storage(s: Storage, location: str | None) -> ttypes.StorageDescriptor:
    """How rows are stored, and where."""
    return ttypes.StorageDescriptor(
        cols=columns(s.columns),
        location=location,
        inputFormat=s.input_format,
        outputFormat=s.output_format,
        compressed=s.compressed,
        numBuckets=s.buckets,
        serdeInfo=ttypes.SerDeInfo(
            name=s.serde.name, serializationLib=s.serde.library, parameters=dict(s.serde.parameters)
        ),
        bucketCols=list(s.bucket_columns),
        sortCols=[ttypes.Order(col=c.name, order=c.direction) for c in s.sort_columns],
        parameters=dict(s.parameters),
        skewedInfo=ttypes.SkewedInfo(skewedColNames=[], skewedColValues=[], skewedColValueLocationMaps={}),
        storedAsSubDirectories=s.stored_as_sub_directories,
    )


def columns(given: tuple[Column, ...]) -> list[Any]:
    """Columns."""
    return [ttypes.FieldSchema(name=c.name, type=c.type, comment=c.comment) for c in given]
