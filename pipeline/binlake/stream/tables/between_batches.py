"""What the stream does for single tables between two batches: requests of people, resyncs, tables that are behind, and
wide tables whose table of cells was written by others or has cells that expire."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from math import inf

from binlake.decode.changes import SourceTable
from binlake.position.ledger import Ledger
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.engine import Engine
from binlake.stream.monitoring.progress import ProgressEvent
from hudilake.clock import monotonic_s
from hudilake.errors import LakeError, TableStoppedError, TransientError
from hudilake.wording import counted

_CATCH_UP_EVERY_S = 30.0
_TEND_EVERY_S = 3.0
#: How long the commits of others to tables of cells may wait to be derived.
_DERIVE_EVERY_S = 30.0
#: How long the other tables wait while tables are caught up: after this time the stream's turn comes.
_CATCH_UP_FOR_S = 2.0


class BetweenBatches:
    """The work for single tables. All methods are for the thread whose turn it is.

    Args:
        runner: of the batches.
        engine: runs the tasks that catch a table up.
        tell: called with the progress of every table that was caught up.
        stop: set when the stream is to end.
    """

    def __init__(
        self, runner: BatchRunner, engine: Engine, tell: Callable[[ProgressEvent], None], stop: threading.Event
    ) -> None:
        self._runner, self._engine, self._tell, self._stop = runner, engine, tell, stop
        self._tended_s = self._caught_up_s = self._derived_s = 0.0

    def go_on(self) -> None:
        """Do what is due, for a few seconds at most. Raises LakeError."""
        self._tend()
        self._derive(_DERIVE_EVERY_S)
        self._catch_up(0.0 if self._runner.waits else _CATCH_UP_EVERY_S, _CATCH_UP_FOR_S)

    def finish(self) -> None:
        """Do all there is to do, however long it takes. Raises LakeError; TransientError and TableStoppedError for what
        is left undone."""
        self._runner.tend()
        self._derive(0.0)
        self._catch_up(0.0, inf)
        while (event := self._runner.settle()) is not None:  # a statement may have waited for the rows caught up
            self._tell(event)
            if all(ddl.error is not None for ddl in event.ddl):
                break
            self._catch_up(0.0, inf)
        self._runner.tend()  # a resync ends when its table has caught up
        if not self._stop.is_set():  # a signal leaves things undone, and nobody waits for them
            complain_of_tables(self._runner.ledger)
            complain_of_statements(self._runner.open_statements())

    def _tend(self) -> None:
        if monotonic_s() - self._tended_s < _TEND_EVERY_S:
            return
        self._tended_s = monotonic_s()
        before = set(self._runner.tables.due())
        self._runner.tend()
        if set(self._runner.tables.due()) - before:
            self._caught_up_s = 0.0  # a table that may go on does not wait

    def _derive(self, every_s: float) -> None:
        """Derive what a crash or another writer has left to derive, also at the start of the stream, and rows whose
        cells have expired."""
        missing = None
        if monotonic_s() - self._derived_s >= every_s or not self._derived_s:
            missing = self._runner.derive_missing()
            self._derived_s = monotonic_s()
        for event in (missing, self._runner.derive_expired()):
            if event is not None:
                self._tell(event)

    def _catch_up(self, every_s: float, for_s: float) -> None:
        """Catch up the tables that are behind, one batch after the other while they succeed; at most every ``every_s``
        seconds, but a call that ``for_s`` seconds have ended is continued by the next one."""
        tables, began_s = self._runner.tables, monotonic_s()
        if not tables.due() or began_s - self._caught_up_s < every_s:
            return
        for source in tables.due():
            while source in self._runner.ledger.behind and not self._stop.is_set():
                event = self._runner.catch_up(source, self._engine)
                if event is None:
                    break
                self._tell(event)
                if monotonic_s() - began_s > for_s:
                    return
        self._caught_up_s = monotonic_s()


def complain_of_tables(ledger: Ledger) -> None:
    """Raise TransientError if a table is behind that the next run catches up, else TableStoppedError if a table waits
    for a person. Paused tables are no reason to complain."""
    if ledger.late:
        raise TransientError(
            f"{counted(len(ledger.late), 'table')} could not be written; the others are up to date",
            do_next="see their errors above; the next run continues each from its own position",
            tables=", ".join(map(str, ledger.late)),
        )
    stopped = {table: stop for table, stop in ledger.stopped.items() if table not in ledger.paused}
    if stopped:
        causes = "; ".join(f"{table}: {stop.what}" for table, stop in stopped.items())
        advice = "; ".join(dict.fromkeys(stop.do_next for stop in stopped.values() if stop.do_next))
        raise TableStoppedError(
            f"{counted(len(stopped), 'table')} cannot go on without a person; the others are up to date. {causes}",
            do_next=f"{advice}; then start again, or run binlake table resume",
            tables=", ".join(map(str, stopped)),
        )


def complain_of_statements(left: Mapping[SourceTable, LakeError]) -> None:
    """Raise TableStoppedError if the error of a statement that was not carried out does not pass, else TransientError
    if there is such a statement. ``left``: the tables of these statements -> why."""
    final = {table: error for table, error in left.items() if not isinstance(error, TransientError)}
    shown = final or left
    if shown:
        causes = "; ".join(f"{table}: {error.what}" for table, error in shown.items())
        advice = "; ".join(dict.fromkeys(error.do_next for error in shown.values() if error.do_next))
        raise (TableStoppedError if final else TransientError)(
            f"{counted(len(shown), 'table', 'has', 'have')} statements that were not carried out. {causes}",
            do_next=f"{advice}; then start again" if advice else "start again: the next run carries them out",
            tables=", ".join(map(str, shown)),
        )
