"""The columns of a table, which its commits state and else its properties."""

from __future__ import annotations

import json

import pyarrow as pa

from hudilake.errors import UnsupportedError
from hudilake.format.definition.avro_types import read_only_type
from hudilake.format.definition.config import CREATE_SCHEMA, TableConfig
from hudilake.format.definition.schema import arrow_schema, value_schema
from hudilake.format.timeline.commit_metadata import SCHEMA_KEY
from hudilake.format.timeline.timeline import Timeline


def avro_schema_of(config: TableConfig, timeline: Timeline) -> str:
    """The Avro schema of the write that was requested last, as JSON, as Hudi's readers take it.

    Raises UnsupportedError for a table without one, CorruptDataError, StorageError.
    """
    text = timeline.newest_schema() or config.extra.get(CREATE_SCHEMA)
    if text is None:
        raise UnsupportedError(
            "the table has no schema, neither in a commit nor in hoodie.properties",
            do_next=f"restore {CREATE_SCHEMA} in hoodie.properties from a copy",
            table=config.name,
        )
    return text


def columns_of(avro_json: str) -> tuple[pa.Schema, str | None]:
    """The columns of a schema without the meta fields, and the type among them that is only read, if there is one."""
    return value_schema(arrow_schema(avro_json)), read_only_type(json.loads(avro_json))


def columns_as_of(timeline: Timeline, instant: str) -> pa.Schema | None:
    """The columns of the newest commit at or before a requested time; None if no such commit states any. Errors as
    ``Timeline.commit_metadata``."""
    for commit in reversed(timeline.completed()):
        if commit.requested_time <= instant:
            text = timeline.commit_metadata(commit).extra.get(SCHEMA_KEY)
            if text is not None:
                return value_schema(arrow_schema(text))
    return None
