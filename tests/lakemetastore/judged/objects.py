"""Databases, tables and partitions as clients send them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from hive_metastore import ttypes

TYPES = ("string", "int", "bigint", "double", "date", "timestamp", "decimal(10,2)", "varchar(20)", "boolean", "binary")
COMPLEX = ("array<string>", "map<string,int>", "struct<a:int,b:array<string>>")
#: Values of partitions that try the escaping of names.
ODD_VALUES = (
    "a b",
    "a/b",
    "a=b",
    "a:b",
    "50%",
    "q'q",
    'q"q',
    "#h",
    "x\\y",
    "{z}",
    "[z]",
    "ümläut",
    "日本",
    "A",
    "^",
    "?",
)
FORMAT = (
    "org.apache.hudi.hadoop.HoodieParquetInputFormat",
    "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
    "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
)
PLACE = "file:/nowhere"


def database(name: str, **fields: Any) -> Any:  # noqa: ANN401 - generated classes have no types
    """A database whose place is not in the warehouse, so that no directory is made."""
    given = {"locationUri": f"{PLACE}/{name.lower()}", "parameters": {}, "ownerName": "ann", "ownerType": 1}
    return ttypes.Database(name=name, **(given | fields))


def columns(*pairs: str) -> list[Any]:
    """Columns of texts ``name type``."""
    return [ttypes.FieldSchema(*pair.split(" ", 1)) for pair in pairs]


def storage(names: Sequence[Any], location: str | None, parameters: Mapping[str, str] | None = None) -> Any:  # noqa: ANN401
    """A storage descriptor in Parquet's formats."""
    serde = ttypes.SerDeInfo(serializationLib=FORMAT[2], parameters={"serialization.format": "1"})
    return ttypes.StorageDescriptor(
        cols=list(names),
        location=location,
        inputFormat=FORMAT[0],
        outputFormat=FORMAT[1],
        compressed=False,
        numBuckets=-1,
        serdeInfo=serde,
        bucketCols=[],
        sortCols=[],
        parameters=dict(parameters or {}),
        storedAsSubDirectories=False,
    )


def table(db: str, name: str, keys: Sequence[Any] = (), cols: Sequence[Any] | None = None, **fields: Any) -> Any:  # noqa: ANN401
    """An external table with two columns."""
    cols = columns("id bigint", "name string") if cols is None else cols
    given = {
        "owner": "ann",
        "createTime": 1_700_000_000,
        "lastAccessTime": 0,
        "retention": 0,
        "sd": storage(cols, f"{PLACE}/{db.lower()}/{name.lower()}"),
        "partitionKeys": list(keys),
        "parameters": {"EXTERNAL": "TRUE", "transient_lastDdlTime": "1700000000"},
        "tableType": "EXTERNAL_TABLE",
    }
    return ttypes.Table(tableName=name, dbName=db, **(given | fields))


def partition(db: str, name: str, values: Sequence[str], **fields: Any) -> Any:  # noqa: ANN401
    """A partition of a table of :func:`table`, whose place is named after its number of values and their length."""
    where = "-".join(str(ord(letter)) for value in values for letter in value) or "none"
    given = {
        "createTime": 1_700_000_001,
        "lastAccessTime": 0,
        "sd": storage(columns("id bigint", "name string"), f"{PLACE}/{db}/{name}/{where[:60]}"),
        "parameters": {"transient_lastDdlTime": "1700000001"},
    }
    return ttypes.Partition(values=list(values), dbName=db, tableName=name, **(given | fields))


def random_columns(rng: random.Random) -> list[Any]:
    """One to eight columns of any type, some with comments."""
    chosen = [rng.choice((*TYPES, *COMPLEX)) for _ in range(rng.randint(1, 8))]
    comments = (None, "", "a comment", "ünï 'q'")
    return [ttypes.FieldSchema(f"c{number}", kind, rng.choice(comments)) for number, kind in enumerate(chosen)]
