"""Up to which place of the binlog each lake table is known to be as its source, and the log leaves nothing open.

A comparison that read all rows and found them equal, or repaired them, is noted in a small file beside the ledger; so
is a table that was read anew from the source. Only ``binlake verify`` and ``table resync --from-source`` write it.
A TRUNCATE, and a table that the connector fetched anew, are in the table's own commits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from binlake.position.state_document import StateDocument
from binlake.rows.upsert.truncates import Truncates
from hudilake.storage import Storage

FILE = "compared.json"
_DOCUMENT = StateDocument(FILE, "the notes of compared tables", "delete the file; binlake verify writes it again")


@dataclass(frozen=True)
class ComparedTables:
    """The notes. ``orders``: path of a lake table -> ordering value of the place at which it was as its source."""

    orders: Mapping[str, int] = field(default_factory=dict)

    @staticmethod
    def load(state: Storage) -> ComparedTables:
        """The notes; empty ones if nothing was compared. Raises CorruptDataError, StorageError."""

        def parse(fields: dict[str, Any]) -> ComparedTables:
            return ComparedTables({str(path): int(order) for path, order in fields["tables"].items()})

        return _DOCUMENT.read(state, parse) or ComparedTables()

    def note(self, state: Storage, path: str, order: int) -> None:
        """Note that a table was as its source at a place. Raises StorageError."""
        tables = {**self.orders, path: max(order, self.orders.get(path, -1))}
        state.write(FILE, json.dumps({"version": _DOCUMENT.version, "tables": tables}, separators=(",", ":")).encode())

    def until(self, path: str, truncates: Truncates) -> int:
        """The ordering value up to which no statement leaves anything open in a table, -1 for none.

        ``truncates``: of the table; rows up to there are gone, or were fetched anew.
        """
        return max(self.orders.get(path, -1), truncates.whole)
