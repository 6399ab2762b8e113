"""How people name one row: the value of its key, or ``name=value`` pairs."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from binlake.decode.types.exact_values import UnfitValueError, exactly
from binlake.rows.upsert.target import ROW_FIELD, key_columns
from hudilake.errors import ConfigError
from hudilake.format.definition.column_names import lake_name
from hudilake.format.definition.keys import record_keys
from hudilake.read.filters.expressions import And, Eq
from hudilake.read.record_keys import KeyLookup, key_lookup
from hudilake.table.table import HudiTable


@dataclass(frozen=True)
class RowKey:
    """A row as it was named.

    Args:
        values: column (lake name) -> value in the column's type.
        lookup: its record keys in every spelling that the table may use; None for a table without a key whose rows are
            found by their content.
    """

    values: Mapping[str, Any]
    lookup: KeyLookup | None

    def buckets(self, table: HudiTable) -> Callable[[str], Collection[int]] | None:
        """Partition path -> the buckets of it that may hold the row; None if all may."""
        row_buckets = self.lookup.buckets(table.config) if self.lookup is not None else None
        return row_buckets.of if row_buckets is not None else None


def row_key(text: str, table: HudiTable) -> RowKey:
    """The row that a text names.

    Args:
        text: the value of a key of one column; or ``name=value`` pairs with commas between them; or a JSON object. In a
            table without a key, or an append table, the pairs name any columns, and a single value is the row's own
            name (``_binlake_row``).
        table: open.

    Raises ConfigError for names that are not the key's, or values that are not of their column's type.
    """
    fields = table.config.record_key_fields
    keyless = not key_columns(table.config)
    given = _given(text, fields)
    columns = {field.name.lower(): field.name for field in table.schema}
    named = {columns.get(lake_name(name).lower(), name): value for name, value in given.items()}
    if unknown := sorted(set(named) - set(columns.values())):
        raise ConfigError(
            f"the table has no column {', '.join(unknown)}", do_next=_how(fields), table=table.config.name
        )
    if not keyless and set(named) != set(fields):
        raise ConfigError("this is not the key of the table", do_next=_how(fields), table=table.config.name, key=text)
    values = {name: _typed(value, table.schema.field(name)) for name, value in named.items()}
    if set(values) != set(fields):
        return RowKey({name: value.as_py() for name, value in values.items()}, None)
    row = pa.table({name: pa.array([values[name].as_py()], values[name].type) for name in fields})
    plain = {name: value.as_py() for name, value in values.items()}
    part = And(tuple(Eq(name, value) for name, value in plain.items()))
    lookup = key_lookup(part, table.config, table.schema)
    return RowKey(plain, lookup if lookup is not None else KeyLookup(record_keys(row, fields)))


def _how(fields: tuple[str, ...]) -> str:
    return f"write {','.join(f'{name}=VALUE' for name in fields)}, or a JSON object of these names"


def _given(text: str, fields: tuple[str, ...]) -> dict[str, str]:
    """Name -> value, as text."""
    if text.lstrip().startswith("{"):
        try:
            said = json.loads(text, parse_float=str, parse_int=str)  # as written: no digit is lost
        except ValueError as error:
            raise ConfigError("the key is no JSON object", do_next=_how(fields), key=text) from error
        return {name: value if isinstance(value, str) else json.dumps(value) for name, value in said.items()}
    parts = [part.partition("=") for part in text.split(",")]
    if len(fields) == 1 and not (parts[0][1] and (fields == (ROW_FIELD,) or parts[0][0].strip() == fields[0])):
        return {fields[0]: text}
    if not all(equals for _, equals, _ in parts):
        raise ConfigError("this is not the key of the table", do_next=_how(fields), key=text)
    return {name.strip(): value for name, _, value in parts}


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
