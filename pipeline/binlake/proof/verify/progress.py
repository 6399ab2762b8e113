"""The progress of a run, kept beside the stream's ledger, so that ``--resume`` goes on after what was compared."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from binlake.proof.verify.result import TableResult
from hudilake.errors import CorruptDataError
from hudilake.storage import Storage, StorageNotFoundError

PROGRESS = "verify.json"
_VERSION = 1


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
        try:
            data: dict[str, Any] = json.loads(state.read(PROGRESS))
            if data["version"] != _VERSION:
                raise ValueError(f"version {data['version']}")
            return Progress(
                {table: TableResult.from_json(result) for table, result in data["done"].items()},
                {table: (TableResult.from_json(result), low) for table, (result, low) in data["begun"].items()},
            )
        except StorageNotFoundError:
            return Progress()
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptDataError(
                f"the progress of the last run cannot be read: {error}",
                do_next="run the command without --resume",
                path=f"{state.uri}/{PROGRESS}",
            ) from error

    def save(self, state: Storage) -> None:
        """Replace the stored progress."""
        data = {
            "version": _VERSION,
            "done": {table: result.to_json() for table, result in self.done.items()},
            "begun": {table: (result.to_json(), low) for table, (result, low) in self.begun.items()},
        }
        state.write(PROGRESS, json.dumps(data, separators=(",", ":")).encode())
