"""The plan of a backfill under way, beside the stream's state: what it reads, in which portions."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from binlake.load.backfill.pieces import Piece
from binlake.position.state_document import StateDocument
from hudilake.storage import FileInfo, Storage

_FILE = "plan.json"
_DOCUMENT = StateDocument(_FILE, "the plan of a backfill", "run the command with --restart")


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """What a backfill reads. It is written before the first portion and deleted after the last one.

    Args:
        run: the carrying out of the backfill that it belongs to.
        input: digest of the input, as commits record it.
        files: the input's files.
        spooled: whether the pieces are files beside the plan; otherwise they are the input's.
        portion_rows: rows of a portion.
        pieces: in the order of the input.
    """

    run: str
    input: str
    files: tuple[FileInfo, ...]
    spooled: bool
    portion_rows: int
    pieces: tuple[Piece, ...]

    def save(self, storage: Storage) -> None:
        """Write the plan. Raises StorageError."""
        document = {"version": _DOCUMENT.version, **asdict(self)}
        storage.write(_FILE, json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode())

    @staticmethod
    def load(storage: Storage) -> StoredPlan | None:
        """The plan in a directory; None if there is none. Raises CorruptDataError, StorageError."""

        def parse(fields: dict[str, Any]) -> StoredPlan:
            files, pieces = fields.pop("files"), fields.pop("pieces")
            return StoredPlan(
                files=tuple(FileInfo(**file) for file in files),
                pieces=tuple(Piece(**piece) for piece in pieces),
                **fields,
            )

        return _DOCUMENT.read(storage, parse)

    @staticmethod
    def forget(storage: Storage) -> None:
        """Delete the plan, then the files beside it. Raises StorageError."""
        storage.delete(_FILE)
        for file in list(storage.walk("")):
            storage.delete(file.path)
