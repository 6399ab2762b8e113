"""Table schemas: Arrow <-> the Avro JSON that Hudi keeps in commits and log blocks."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

import pyarrow as pa

from hudilake.errors import UnsupportedError
from hudilake.format.definition.avro_types import arrow_fields, avro_field, widens

META_FIELDS = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
COMMIT_TIME_FIELD = "_hoodie_commit_time"
RECORD_KEY_FIELD = "_hoodie_record_key"
PARTITION_PATH_FIELD = "_hoodie_partition_path"


def sanitize_name(name: str) -> str:
    """A table name as an Avro name: characters Avro refuses become ``__`` (``HoodieSchemaUtils.sanitizeName``)."""
    if re.match(r"[^A-Za-z_]", name):
        name = re.sub(r"[^A-Za-z_]", "__", name, count=1)
    return re.sub(r"[^A-Za-z0-9_]", "__", name)


@lru_cache(maxsize=512)
def avro_schema(arrow_schema: pa.Schema, table_name: str, with_meta: bool) -> str:
    """The Avro JSON of a table's records.

    Args:
        arrow_schema: the table's own columns, without the meta fields.
        table_name: gives the record its name, ``hoodie.<name>.<name>_record``.
        with_meta: put the five meta fields in front (log blocks and base files have them, commit metadata does not).

    Raises UnsupportedError for a column type Hudi's readers cannot take.
    """
    table = sanitize_name(table_name)
    record, namespace = f"{table}_record", f"hoodie.{table}"
    meta: list[dict[str, Any]] = [
        {"name": name, "type": ["null", "string"], "doc": "", "default": None} for name in META_FIELDS if with_meta
    ]
    own = [avro_field(f, f"{namespace}.{record}") for f in arrow_schema]
    schema = {"type": "record", "name": record, "namespace": namespace, "fields": meta + own}
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)


@lru_cache(maxsize=512)
def arrow_schema(avro_json: str) -> pa.Schema:
    """The Arrow schema of an Avro record schema, meta fields included if it has them.

    Raises UnsupportedError for types that ``avro_types`` does not know.
    """
    return pa.schema(arrow_fields(json.loads(avro_json)))


def check_names(schema: pa.Schema, table: str) -> None:
    """Raise UnsupportedError for names of columns that a table cannot have together. ``table``: its name."""
    if clash := sorted(name for name in schema.names if name.startswith("_hoodie_")):
        raise UnsupportedError(
            f"columns {clash} have names of Hudi's meta fields", do_next="map the columns to other names", table=table
        )
    if len({name.lower() for name in schema.names}) != len(schema.names):
        raise UnsupportedError(
            "the names of two columns are equal, or differ only in case",
            do_next="map one of the columns to another name",
            table=table,
        )


def value_schema(schema: pa.Schema) -> pa.Schema:
    """The schema without the meta fields."""
    return pa.schema([f for f in schema if f.name not in META_FIELDS])


def check_evolution(old: pa.Schema, new: pa.Schema) -> None:
    """Raise UnsupportedError unless files written under ``old`` can be read correctly under ``new``.

    Allowed: columns added as nullable, columns dropped, reordering, and what ``widens`` says. Hudi Spark reads all of
    these; hudi-rs 0.5.0 fails on a file group that holds, in log files alone, a decimal in two widths, or a widened
    column together with a new one: compact such tables first. Not checked: a dropped column name that is used again.
    """
    before = {f.name: f for f in old}
    for item in new:
        previous = before.get(item.name)
        if previous is None and not item.nullable:
            raise UnsupportedError(f"column {item.name} is new and not nullable", do_next="add it as nullable")
        if previous is not None and not widens(previous.type, item.type):
            raise UnsupportedError(
                f"column {item.name} cannot change from {previous.type} to {item.type}",
                do_next="keep the type, widen it, or load the table again under a new path",
            )
