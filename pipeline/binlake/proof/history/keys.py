"""How people name one row: the value of its key, or ``name=value`` pairs."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.types.exact_values import UnfitValueError, exactly
from binlake.rows.merging.tombstones import all_rows
from binlake.rows.upsert.target import ROW_FIELD, key_columns
from binlake.rows.upsert.version_columns import CHANGE_TYPE, INSERT, START_AT, keys_of_versions
from hudilake.errors import ConfigError
from hudilake.format.definition.column_names import lake_name
from hudilake.format.definition.keys import record_keys
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.names import TOMBSTONES_PATH
from hudilake.read.filters.expressions import And, Eq
from hudilake.read.record_keys import KeyLookup, key_lookup
from hudilake.read.versions import group_files, read_versions, still_there
from hudilake.services.erasure.erase import unfinished_keys
from hudilake.table.table import HudiTable
from hudilake.validation import repeated


@dataclass(frozen=True)
class RowKey:
    """A row as it was named.

    Args:
        values: column (lake name) -> value in the column's type.
        lookup: its record keys in every spelling that the table may use; None for a table without a key whose rows are
            found by their content, and for a history table, where each version of the row has a key of its own.
        is_said: whether records name the row by these columns and values; else what a record is of is known only
            where it can be decoded.
    """

    values: Mapping[str, Any]
    lookup: KeyLookup | None
    is_said: bool = True

    def buckets(self, table: HudiTable) -> Callable[[str], Collection[int]] | None:
        """Partition path -> the buckets of it that may hold the row; None if all may."""
        row_buckets = self.lookup.buckets(table.config) if self.lookup is not None else None
        return row_buckets.of if row_buckets is not None else None


def row_key(text: str, table: HudiTable, enough: Collection[str] = ()) -> RowKey:
    """The row that a text names.

    Args:
        text: the value of a key of one column; or ``name=value`` pairs with commas between them; or a JSON object. In a
            table without a key, or an append table, the pairs name any columns, and a single value is the row's own
            name (``_binlake_row``). In a history table it is the key of the source's row, for all its versions.
        table: open.
        enough: columns of the key that may stand alone: for all rows that have these values.

    Raises ConfigError for names that are not the key's, or values that are not of their column's type.
    """
    fields = source_key_fields(table)
    keyless = not key_columns(table.config)
    given = _given(text, fields)
    columns = {field.name.lower(): field.name for field in table.schema}
    named = {columns.get(lake_name(name).lower(), name): value for name, value in given.items()}
    if unknown := sorted(set(named) - set(columns.values())):
        raise ConfigError(
            f"the table has no column {', '.join(unknown)}", do_next=_how(fields), table=table.config.name
        )
    if not keyless and set(named) not in (set(fields), set(enough)):
        raise ConfigError("this is not the key of the table", do_next=_how(fields), table=table.config.name, key=text)
    values = {name: _typed(value, table.schema.field(name)) for name, value in named.items()}
    if set(values) != set(fields) or table.config.merging.keeps_versions:
        return RowKey({name: value.as_py() for name, value in values.items()}, None)
    row = pa.table({name: pa.array([values[name].as_py()], values[name].type) for name in fields})
    plain = {name: value.as_py() for name, value in values.items()}
    part = And(tuple(Eq(name, value) for name, value in plain.items()))
    lookup = key_lookup(part, table.config, table.schema)
    return RowKey(plain, lookup if lookup is not None else KeyLookup(record_keys(row, fields)))


def source_key_fields(table: HudiTable) -> tuple[str, ...]:
    """The columns of a table's key that name a row of the source."""
    return table.config.merging.source_key(table.config.record_key_fields)


def version_keys(row: RowKey, table: HudiTable) -> frozenset[str]:
    """The record keys of all versions of a row in a history table, of ``stored_keys``. Raises CorruptDataError,
    StorageError."""
    fields = table.config.record_key_fields
    some = {START_AT: 0, CHANGE_TYPE: INSERT}  # any place: it is cut off again
    first = {name: [row.values.get(name, some.get(name))] for name in fields}
    named = pa.table({name: pa.array(first[name], table.schema.field(name).type) for name in fields})
    wanted = keys_of_versions(record_keys(named, fields))
    keys = stored_keys(table)
    return frozenset(keys.filter(pc.is_in(keys_of_versions(keys), value_set=wanted)).to_pylist())


def stored_keys(table: HudiTable) -> pa.ChunkedArray:
    """All record keys in a table's files, of all file slices, those of deletes that are kept, and those that an erasure
    which is not done still has. Raises CorruptDataError, StorageError."""
    parts = [read_versions(table, still_there(table, files)).column(RECORD_KEY_FIELD) for files in group_files(table)]
    dead = [all_rows(table.storage, file_id) for file_id in table.storage.list_dirs(TOMBSTONES_PATH)]
    parts += [rows.column(RECORD_KEY_FIELD) for rows in dead if rows is not None]
    parts.append(pa.chunked_array([sorted(unfinished_keys(table.storage))], pa.string()))
    return pa.chunked_array([chunk for part in parts for chunk in part.chunks], pa.string())


def _how(fields: tuple[str, ...]) -> str:
    return f"write {','.join(f'{name}=VALUE' for name in fields)}, or a JSON object of these names"


def _given(text: str, fields: tuple[str, ...]) -> dict[str, str]:
    """Name -> value, as text."""
    if text.lstrip().startswith("{"):
        try:
            # as written: no digit is lost
            said = json.loads(text, parse_float=str, parse_int=str, object_pairs_hook=lambda pairs: pairs)
        except ValueError as error:
            raise ConfigError("the key is no JSON object", do_next=_how(fields), key=text) from error
        for name, value in said:
            if value is None or isinstance(value, list):
                what = "null" if value is None else "not a single value"
                raise ConfigError(
                    f"the value of {name} is {what}; a row is named by values", do_next=_how(fields), key=text
                )
        return _each_once(
            [(name, value if isinstance(value, str) else json.dumps(value)) for name, value in said], text
        )
    parts = [part.partition("=") for part in text.split(",")]
    if len(fields) == 1 and not (parts[0][1] and (fields == (ROW_FIELD,) or parts[0][0].strip() == fields[0])):
        return {fields[0]: text}
    if not all(equals for _, equals, _ in parts):
        raise ConfigError("this is not the key of the table", do_next=_how(fields), key=text)
    return _each_once([(name.strip(), value) for name, _, value in parts], text)


def _each_once(pairs: list[tuple[str, str]], text: str) -> dict[str, str]:
    if repeated(lake_name(name) for name, _ in pairs):
        raise ConfigError("the key gives a column twice", do_next="give each column one value", key=text)
    return dict(pairs)


def _typed(text: str, field: pa.Field) -> pa.Scalar:
    try:
        if pa.types.is_binary(field.type):
            return pa.scalar(bytes.fromhex(text), field.type)
        return exactly(pa.chunked_array([[text]], pa.string()), field.type)[0]
    except (UnfitValueError, ValueError) as error:
        raise ConfigError(
            f"{text!r} is no value of column {field.name} of type {field.type}",
            do_next="correct the key (bytes in hexadecimal, times in UTC as 2024-02-29 12:00:00)",
        ) from error
