"""Carries out what people ask of single tables, and keeps apart the tables that cannot go on by themselves.

A paused or stopped table is behind: its records are passed over, its position stays, and it is caught up when it goes
on. A stopped table is tried once in each run, because its cause may lie in the settings, and again when it is resumed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from binlake.decode.changes import SourceTable
from binlake.position.held_tables import Resync, ResyncStep, Stop, needs_a_person
from binlake.position.ledger import Ledger
from binlake.position.table_requests import NO_REQUEST, Requests, TableRequest, load_requests
from binlake.settings import Settings
from binlake.tables.lake import Lake
from binlake.tables.presence import is_used
from hudilake.errors import LakeError
from hudilake.storage import Storage

_log = logging.getLogger(__name__)


class TableControl:
    """The requests about tables, and the tables that are held back.

    Args:
        settings: of the stream.
        lake: the tables.
        state: the directory of the requests.
        ledger: of the stream. This class changes it; the caller of ``take_requests`` saves it.
    """

    def __init__(self, settings: Settings, lake: Lake, state: Storage, ledger: Ledger) -> None:
        self._settings, self._lake, self._state, self._ledger = settings, lake, state, ledger
        self._requests: Requests = {}
        self._tried: set[SourceTable] = set()

    def take_requests(self) -> bool:
        """Read the requests, and note in the ledger what they change; True if anything changed.

        Raises CorruptDataError, StorageError.
        """
        requests = load_requests(self._state)
        if requests == self._requests:
            return False
        self._requests = requests
        changes = [self._take(table, request) for table, request in requests.items()]
        return any(changes)

    def request(self, table: SourceTable) -> TableRequest:
        """The newest request about a table."""
        return self._requests.get(table, NO_REQUEST)

    def due(self) -> list[SourceTable]:
        """The tables that are behind and may be caught up now."""
        stopped = [table for table in self._ledger.stopped if self._may_be_tried(table)]
        return [*self._ledger.late, *stopped]

    def stop(self, table: SourceTable, error: LakeError) -> None:
        """Note that a table cannot go on by itself. The ledger must be saved afterwards."""
        self._tried.add(table)
        self._ledger.stop(table, Stop.of(error), self.topics(table))
        fields = {"event": "table_stopped", "table": str(table), "error": error.what, "next": error.do_next}
        _log.error("%s cannot go on by itself; its records wait: %s", table, error, extra=fields)

    def stop_if_final(self, table: SourceTable, error: LakeError) -> bool:
        """Note a table's error, unless it may pass; True if the table is stopped."""
        final = needs_a_person(error)
        if final:
            self.stop(table, error)
        return final

    def _may_be_tried(self, table: SourceTable) -> bool:
        if table in self._ledger.paused:
            return False
        return table not in self._tried or self.request(table).asked_ms >= self._ledger.stopped[table].tried_ms

    def _take(self, table: SourceTable, request: TableRequest) -> bool:
        forgot = self._take_forget(table, request)
        changed = request.paused != (table in self._ledger.paused)
        if changed and request.paused:
            self._ledger.pause(table, self.topics(table), request.asked_ms)
        elif changed:
            self._ledger.unpause(table)
        if changed:
            said = "is paused" if request.paused else "goes on"
            fields = {"event": "table_paused" if request.paused else "table_resumed", "table": str(table)}
            _log.info("%s %s", table, said, extra=fields)
        resync, known = request.resync, self._ledger.resyncs.get(table)
        if resync is not None and (known is None or known.id != resync.id):
            self._ledger.note_resync(table, Resync(resync.id, ResyncStep.ASKED))
            changed = True
        return changed or forgot

    def _take_forget(self, table: SourceTable, request: TableRequest) -> bool:
        """Forget that a table has commits, once for each request, unless it is there again: its position counts then.
        Returns whether the ledger changed."""
        if request.forget_ms <= self._ledger.forgotten_ms(table):
            return False
        rules = self._settings.table_rules(table)
        there = is_used(self._lake.root.sub(rules.path))
        if there:
            _log.warning(
                "%s is there and is not forgotten", table, extra={"event": "not_forgotten", "table": str(table)}
            )
            self._ledger.note_forgotten(table, request.forget_ms)
            return True
        self._lake.give_up(rules.path)
        self._tried.discard(table)
        self._ledger.forget(table, request.forget_ms)
        _log.warning("%s is forgotten and begins anew", table, extra={"event": "table_forgotten", "table": str(table)})
        return True

    def topics(self, table: SourceTable) -> Iterable[str]:
        """The topics that feed a table; empty if it has never committed. A binlog feeds all tables, those too that were
        loaded and have had no change since."""
        if self._settings.source.mysql is not None:
            return self._ledger.positions
        opened = self._lake.opened(self._settings.table_rules(table).path)
        return opened.topics(self._ledger.stream) if opened is not None else self._ledger.applied(table)
