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
    """The notes, by path of a lake table.

    ``orders``: the ordering value of the place at which it was as its source. ``differing``: how many rows, or
    columns, the last comparison found different and did not repair.
    """

    orders: Mapping[str, int] = field(default_factory=dict)
    differing: Mapping[str, int] = field(default_factory=dict)

    @staticmethod
    def load(state: Storage) -> ComparedTables:
        """The notes; empty ones if nothing was compared. Raises CorruptDataError, StorageError."""

        def parse(fields: dict[str, Any]) -> ComparedTables:
            orders, differing = fields["tables"], fields.get("differing", {})
            return ComparedTables(*({str(path): int(n) for path, n in one.items()} for one in (orders, differing)))

        return _DOCUMENT.read(state, parse) or ComparedTables()

    def note(self, state: Storage, path: str, order: int) -> None:
        """Note that a table was as its source at a place. Raises StorageError."""
        self._write(state, {**self.orders, path: max(order, self.orders.get(path, -1))}, self.differing)

    def note_differing(self, state: Storage, path: str, rows: int) -> None:
        """Note how much of a table differs. Raises StorageError."""
        if self.differing.get(path) != rows:
            self._write(state, self.orders, {**self.differing, path: rows})

    def _write(self, state: Storage, orders: Mapping[str, int], differing: Mapping[str, int]) -> None:
        fields = {"tables": orders, "differing": differing} if differing else {"tables": orders}
        state.write(FILE, json.dumps({"version": _DOCUMENT.version, **fields}, separators=(",", ":")).encode())

    def until(self, path: str, truncates: Truncates) -> int:
        """The ordering value up to which no statement leaves anything open in a table, -1 for none.

        ``truncates``: of the table; rows up to there are gone, or were fetched anew.
        """
        return max(self.orders.get(path, -1), truncates.whole)
