"""The columns that were learned from messages, table by table, in the stream's state.

They are stored before the batch that taught them commits. If the state is lost, they are learned again, and the lake
table's own types come before those of the messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from binlake.decode.changes import SourceTable
from binlake.decode.inferred import InferredColumns, InferredType, widened
from binlake.decode.schemas.schemas import DeclaredTable
from binlake.decode.types.text_columns import inferred_type
from binlake.position.state_document import StateDocument
from binlake.rows.upsert.target import RESERVED_PREFIXES
from binlake.settings import Settings
from hudilake.format.definition.column_names import lake_name
from hudilake.storage import open_storage

FILE = "inferred.json"
_DOCUMENT = StateDocument(FILE, "the learned columns", "restore the file, or delete it: the columns are learned again")
#: A message with a map of changing names must not make a table that no reader opens. MySQL has 4096 at most.
MOST_COLUMNS = 1000
_TEXT_OF = {
    pa.bool_(): "bit(1)",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.timestamp("us", tz="UTC"): "datetime(6)",
    pa.string(): "longtext",
    pa.binary(): "longblob",
}


class InferredTables:
    """Table -> column -> type as the text of MySQL's type. Raises CorruptDataError, StorageError when it reads."""

    def __init__(self, settings: Settings) -> None:
        self._uri, self._options = settings.state_uri, settings.state_options()
        self._entries = {
            SourceTable(*entry.source): entry
            for entry in settings.source.plain
            if settings.source.format == "json" and entry.declared is None
        }
        self._tables: dict[SourceTable, dict[str, str]] | None = None

    def declared(self) -> dict[SourceTable, DeclaredTable]:
        """The tables as if the settings declared what was learned."""
        if not self._entries:
            return {}
        return {
            source: DeclaredTable(
                tuple((name, inferred_type(text)) for name, text in columns.items()), self._entries[source].key
            )
            for source, columns in self._known().items()
            if source in self._entries
        }

    def learn(self, source: SourceTable, inferred: InferredColumns, stored: pa.Schema | None) -> bool:
        """Take in the columns of messages; True if they change what is known.

        ``stored``: the lake table's schema; None if there is no table. A column of the table keeps its type. A name
        that no lake table can have besides the others is not learned: its messages stay in quarantine.
        """
        tables = self._known()
        known = tables.get(source, {})
        columns = dict(known)
        taken = {lake_name(name).lower() for name in known}
        taken |= {name.lower() for name in self._entries[source].metadata_columns.values()}
        for name, kind in inferred.items():
            if name in columns:
                columns[name] = _changed(columns[name], kind)
            elif _usable(lake_name(name).lower(), taken) and len(columns) < MOST_COLUMNS:
                taken.add(lake_name(name).lower())
                columns[name] = _changed(_text_of(name, stored), kind)
        if columns == known:
            return False
        tables[source] = columns
        self._write(tables)
        return True

    def _known(self) -> dict[SourceTable, dict[str, str]]:
        if self._tables is None:
            self._tables = self._read()
        return self._tables

    def _read(self) -> dict[SourceTable, dict[str, str]]:
        def parse(fields: dict[str, Any]) -> dict[SourceTable, dict[str, str]]:
            return {SourceTable(*one["table"]): {str(n): str(t) for n, t in one["columns"]} for one in fields["tables"]}

        return _DOCUMENT.read(open_storage(self._uri, self._options), parse) or {}

    def _write(self, tables: Mapping[SourceTable, Mapping[str, str]]) -> None:
        listed = [{"table": [s.database, s.table], "columns": list(columns.items())} for s, columns in tables.items()]
        _DOCUMENT.write(open_storage(self._uri, self._options), {"tables": listed})


def _usable(name: str, taken: set[str]) -> bool:
    return bool(name) and name not in taken and not name.startswith((*RESERVED_PREFIXES, "__"))


def _changed(known: str | None, inferred: InferredType) -> str:
    """The type of a column after another message: a column with a type keeps it, but text may also hold documents."""
    if known is None or known == InferredType.NULL:
        return str(inferred)
    keeps = known != InferredType.TEXT or inferred is not InferredType.DOCUMENT
    return known if keeps else str(widened(InferredType.TEXT, inferred))


def _text_of(name: str, stored: pa.Schema | None) -> str | None:
    """MySQL's type for a column that the lake table has; None if it has none."""
    if stored is None:
        return None
    kind = next((field.type for field in stored if field.name.lower() == lake_name(name).lower()), None)
    if kind is not None and pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return _TEXT_OF.get(kind)
