"""A table's record key changes: the properties before, while and after all file groups are written anew.

The new file slices and ``hoodie.properties`` cannot change in one step, and a reader that prunes by the key of one of
them would miss rows of the other. So the properties first name the meta field of the key, by which a reader skips
nothing wrongly; then a commit publishes the slices; then the properties name the new key. Whoever opens the table for
writing brings the properties in line with the newest commit that records a key.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from hudilake.format.definition.config import CREATE_SCHEMA, DERIVED, TableConfig
from hudilake.format.definition.schema import RECORD_KEY_FIELD, avro_schema

#: The key fields before the first change: no commit records them.
_FIRST = "binlake.recordkey.first"
#: The requested time of the commit since which all file slices have the present key.
_SINCE = "binlake.recordkey.since"


def with_columns(config: TableConfig, arrow_schema: pa.Schema) -> TableConfig:
    """The configuration of a table that is created with these columns. Raises UnsupportedError for a schema or a kind
    of table that Hudi's readers do not support."""
    config.check_columns(arrow_schema)
    TableConfig.from_properties(config.to_properties())
    create_schema = {CREATE_SCHEMA: avro_schema(arrow_schema, config.name, with_meta=False)}
    return replace(config, extra={**config.extra, **create_schema})


def without_key(config: TableConfig) -> TableConfig:
    """The configuration while the table is written anew: its key fields are not said."""
    first = config.extra.get(_FIRST, ",".join(config.record_key_fields))
    return _keyed(config, (RECORD_KEY_FIELD,), {_FIRST: first})


def with_key(config: TableConfig, fields: tuple[str, ...], since: str) -> TableConfig:
    """The configuration of a table whose file slices have another key since a commit."""
    return _keyed(config, fields, {_FIRST: config.extra[_FIRST], _SINCE: since})


def with_first_key(config: TableConfig) -> TableConfig:
    """The configuration of a table whose key has not changed, or not any more: its commits record none."""
    if _FIRST not in config.extra:
        return config
    return _keyed(config, tuple(config.extra[_FIRST].split(",")), {})


def keyed_since(config: TableConfig) -> str:
    """File slices from before this instant have keys of other fields; "" if all have the present fields."""
    return config.extra.get(_SINCE, "")


def says_key(config: TableConfig) -> bool:
    """Whether the properties name the fields of the record key."""
    return config.record_key_fields != (RECORD_KEY_FIELD,)


def _keyed(config: TableConfig, fields: tuple[str, ...], marks: dict[str, str]) -> TableConfig:
    kept = {name: value for name, value in config.extra.items() if name not in (_FIRST, _SINCE, *DERIVED)}
    return replace(config, record_key_fields=fields, index_fields=(), extra={**kept, **marks})
