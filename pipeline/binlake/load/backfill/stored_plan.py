"""The plan of a backfill under way, beside the stream's state: what it reads, in which portions."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from binlake.load.backfill.inputs import Input, InputForm, differences
from binlake.load.backfill.pieces import Piece
from binlake.load.replay.quarantine_table import all_commits
from binlake.position.record_reader import RecordReader
from binlake.position.recorded import RecordedBackfill
from binlake.position.state_document import StateDocument
from hudilake.errors import BadInputError
from hudilake.storage import FileInfo, Storage
from hudilake.table.table import HudiTable

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


# How far a backfill has come. The table's commits are the only source; the stored plan says how to go on.

_AGAIN = "restore the input and run the same command, or begin anew with --restart: values are then written again"


def newest_of(table: HudiTable, name: str) -> RecordedBackfill | None:
    """The newest portion of a backfill in a table's commits, archived ones included; None if there is none.

    Raises CorruptDataError, StorageError.
    """
    for instant in reversed(table.timeline.completed()):
        portion = RecordReader.of_commit(table.timeline.commit_metadata(instant).extra).backfill
        if portion is not None and portion.name == name:
            return portion
    if RecordReader.newest_of(table).backfill is None:
        return None  # the table never had a backfill: its history need not be read
    recorded = (RecordReader.of_commit(body.extra).backfill for _, body in sorted(all_commits(table), key=_time))
    return next((r for r in reversed(list(recorded)) if r is not None and r.name == name), None)


def _time(commit: tuple[str, object]) -> str:
    return commit[0]


def check_unchanged(given: Input, stored: StoredPlan | None, begun: RecordedBackfill) -> None:
    """Raise BadInputError if an interrupted backfill cannot go on, because its input is not what it was.

    Args:
        given: the input as it is.
        stored: the plan; None if it is lost.
        begun: the newest portion in the table.
    """
    if stored is not None and stored.run == begun.run:
        if given.digest == stored.input or stored.spooled:
            return
        changes = differences(stored.files, given.files)
        raise _changed(f"since then its input has changed: {'; '.join(changes[:5])}", given, len(changes))
    if given.kind is InputForm.QUERY or given.digest != begun.input:
        raise _changed("the rows that it had read are not kept any more, and its input may have changed", given)


def _changed(what: str, given: Input, count: int | None = None) -> BadInputError:
    return BadInputError(f"this backfill was interrupted, and {what}", do_next=_AGAIN, path=given.text, changes=count)
