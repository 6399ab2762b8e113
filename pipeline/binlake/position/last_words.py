"""How the last run of a stream ended: one small file beside the ledger, which the run writes when it ends.

A run that was killed writes nothing: then its lease stays, and tells the process that died.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from binlake.position.state_document import StateDocument
from hudilake.clock import now_ms
from hudilake.errors import LakeError
from hudilake.locking.process_identity import this_process
from hudilake.storage import Storage
from hudilake.storage.redaction import redact

FILE = "last_words.json"
_DOCUMENT = StateDocument(FILE, "the last words of a run", "delete the file; the next run writes it again")


@dataclass(frozen=True, slots=True)
class LastWords:
    """The end of a run.

    Args:
        ended_ms: when, in ms since the epoch.
        host, pid: the machine and the process of the run.
        what: the error that ended it; "" for a run that a signal stopped, or that had nothing more to do.
        do_next: what a person does about it.
    """

    ended_ms: int
    host: str
    pid: int
    what: str = ""
    do_next: str = ""

    @staticmethod
    def of(error: BaseException | None) -> LastWords:
        """The words of this process's run, which ends now.

        ``error``: what ended it, None for nothing. Its text is cut to a readable length and put on one line.
        """
        run = this_process()
        if error is None:
            return LastWords(now_ms(), run.host, run.pid)
        if isinstance(error, LakeError):
            place = ", ".join(f"{name}={value}" for name, value in error.where.items())
            what = redact(f"{error.what} [{place}]" if place else error.what, ())
            return LastWords(now_ms(), run.host, run.pid, what, error.do_next or "")
        return LastWords(now_ms(), run.host, run.pid, redact(f"{type(error).__name__}: {error}", ()))

    @staticmethod
    def load(state: Storage) -> LastWords | None:
        """The words of the last run that ended; None if none did. Raises CorruptDataError, StorageError."""

        def parse(fields: dict[str, Any]) -> LastWords:
            run = str(fields["host"]), int(fields["pid"])
            return LastWords(int(fields["ended_ms"]), *run, str(fields["what"]), str(fields["do_next"]))

        return _DOCUMENT.read(state, parse)

    def leave(self, state: Storage) -> None:
        """Replace the words of the last run. Raises no LakeError: a run that ends has a better one to raise."""
        with contextlib.suppress(LakeError):
            _DOCUMENT.write(state, asdict(self))


@contextlib.contextmanager
def leaving_last_words(state: Storage) -> Iterator[None]:
    """Note how a run ended, whatever ends it. Raises what the run raises."""
    try:
        yield
    except BaseException as error:
        LastWords.of(error).leave(state)
        raise
    LastWords.of(None).leave(state)
