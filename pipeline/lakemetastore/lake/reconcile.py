"""Takes in what nobody reported to the metastore: commits that were not registered, what Hudi itself wrote, new names.

Of several processes one does a round (``lease``). If two do, nothing is done twice: each change is worked out again
from the newest state. A table that no longer exists stays in the catalog until ``binlake metastore check --repair``,
for a lake that cannot be reached looks alike.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from hudilake.clock import monotonic_s
from hudilake.errors import ConfigError, LakeError
from hudilake.table.directory import BrokenTable
from lakemetastore.lake.lease import Lease
from lakemetastore.lake.named import NamedLake, chosen
from lakemetastore.lake.naming import NamedTable
from lakemetastore.lake.registration import Registration, RegistrationResult
from lakemetastore.lake.state import LakeState

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TableReconciliation:
    """What a round did for a table. ``error``: why it could not be brought up to date."""

    table: str
    seconds: float
    done: RegistrationResult = field(default_factory=RegistrationResult)
    error: LakeError | None = None


@dataclass
class Reconciler:
    """Keeps the metastore in line with its lakes.

    Args:
        registration: of their tables.
        lakes: all of them.
        interval_s: the time between two rounds of ``start``.
        lease: which process does a round; None for the only one.
    """

    registration: Registration
    lakes: Sequence[NamedLake]
    interval_s: float = 60.0
    lease: Lease | None = None
    _stopped: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def run_once(self, names: Sequence[str] = ()) -> Iterator[TableReconciliation]:
        """Bring the tables of these names, or all, up to their timelines, table by table.

        The names of all tables of a lake change first, in one step. A table that fails does not stop the others.
        Raises StorageError if a lake cannot be listed.
        """
        for tables in chosen(self.lakes, names):
            named_tables = [table for table in tables if isinstance(table, NamedTable)]
            self._rename(named_tables)
            for broken in (table for table in tables if isinstance(table, BrokenTable)):
                yield TableReconciliation(broken.name, 0.0, error=broken.error)
            for table in named_tables:
                yield self._register(table)

    def completed(self, uri: str, instant: str) -> None:
        """Take in a table of which an instant has completed; register it anew if its Hive tables may have changed.

        Args:
            uri: the table's root.
            instant: its requested time, for the log.

        Raises ConfigError if no lake has such a table, AlreadyExistsError, CorruptDataError, StorageError.
        """
        lake = next((lake for lake in self.lakes if lake.has(uri)), None)
        if lake is None:
            raise ConfigError(
                "no lake of the metastore has this table",
                do_next="add its lake to the service's settings (lakes)",
                path=uri,
                instant=instant,
            )
        lakes = self.registration.lakes
        before = lakes.state(uri).state
        after = lakes.take_in(lake.storage(uri)).state
        if after.named is None or _shape(before) != _shape(after):
            self.registration.register(lake.at(uri))

    def start(self) -> None:
        """Do rounds in a thread, the first at once, until ``stop``."""
        self._thread = threading.Thread(target=self._rounds, name="metastore-reconciler", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Let the table in hand end, then stop."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _rounds(self) -> None:
        while not self._stopped.is_set():
            try:
                if self.lease is None or self.lease.take():
                    self._round()
            except LakeError as error:
                _log.warning("the lakes were not read: %s", error, extra={"event": "reconcile_failed"})
            self._stopped.wait(self.interval_s)

    def _round(self) -> None:
        for report in self.run_once():
            fields = {"event": "reconciled", "table": report.table, "seconds": round(report.seconds, 3)}
            if report.error is not None:
                _log.warning("%s is not up to date: %s", report.table, report.error, extra=fields)
            elif report.done.changed:
                _log.info("%s was brought up to date", report.table, extra=fields)
            if self._stopped.is_set() or (self.lease is not None and not self.lease.take()):
                return

    def _rename(self, tables: Iterable[NamedTable]) -> None:
        try:
            self.registration.rename(tables)
        except LakeError as error:
            _log.warning("names are not taken over: %s", error, extra={"event": "rename_failed"})

    def _register(self, table: NamedTable) -> TableReconciliation:
        began = monotonic_s()
        try:
            done = self.registration.register(table)
        except LakeError as error:
            return TableReconciliation(table.full_name, monotonic_s() - began, error=error)
        return TableReconciliation(table.full_name, monotonic_s() - began, done)


def _shape(state: LakeState) -> tuple[object, ...]:
    """What the Hive tables depend on."""
    replaced = sum(len(instant.replaced) for instant in state.instants.values())
    return state.identity, state.files.keys(), state.schema(), replaced
