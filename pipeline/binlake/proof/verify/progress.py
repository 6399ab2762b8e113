"""The progress of a run, kept beside the stream's ledger, so that ``--resume`` goes on after what was compared."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from binlake.position.state_document import StateDocument
from binlake.proof.verify.result import TableResult
from hudilake.storage import Storage

PROGRESS = "verify.json"
_DOCUMENT = StateDocument(PROGRESS, "the progress of the last run", "run the command without --resume")


@dataclass
class Progress:
    """What a run has compared.

    Args:
        done: path and first name of a source table -> result, of tables that were compared whole.
        begun: the same -> (result so far, first key of the next portion), of at most one table.
    """

    done: dict[str, TableResult] = field(default_factory=dict)
    begun: dict[str, tuple[TableResult, int]] = field(default_factory=dict)

    @staticmethod
    def load(state: Storage) -> Progress:
        """The stored progress; an empty one if there is none. Raises CorruptDataError, StorageError."""

        def parse(fields: dict[str, Any]) -> Progress:
            return Progress(
                {table: TableResult.from_json(result) for table, result in fields["done"].items()},
                {table: (TableResult.from_json(result), low) for table, (result, low) in fields["begun"].items()},
            )

        return _DOCUMENT.read(state, parse) or Progress()

    def save(self, state: Storage) -> None:
        """Replace the stored progress."""
        data = {
            "version": _DOCUMENT.version,
            "done": {table: result.to_json() for table, result in self.done.items()},
            "begun": {table: (result.to_json(), low) for table, (result, low) in self.begun.items()},
        }
        state.write(PROGRESS, json.dumps(data, separators=(",", ":")).encode())
