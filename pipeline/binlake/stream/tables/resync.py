"""Fetches tables anew by an incremental snapshot of Debezium, and deletes the rows that the source no longer has.

``binlake table resync`` makes a request, and the stream, once it knows the request, signals the connector. The rows of
the snapshot come in the table's own topic. They get the ordering value just after the request's
(``binlake.rows.upsert.prepare``): above every row stored before, and below every change that the stream reads later. So
a stored row from before is replaced, and a later change wins wherever the snapshot row was read. Their own binlog
position would not do: Debezium's read-only snapshots on MariaDB send rows that a change up to that position has
outdated (measured).

A stored row that the snapshot does not bring again, and that no later change touches, keeps an ordering value of before
the request. When the connector has read the whole table and the stream has applied everything up to there, these rows
are deleted by one commit, in the way of a TRUNCATE at that ordering value. A record that arrives after it still wins.
The connector reads whatever table has the name: a resync fails if the name came to another table since the request.

A resync that reads the source itself, without the connector, begins with the same request and ends with the same
commit (``OldRows.remove_old_rows``).
"""

from __future__ import annotations

import dataclasses
import json
import logging
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from binlake.decode.changes import SourceTable
from binlake.position.held_tables import Resync, ResyncStep
from binlake.position.in_hand import JobProgress, WorkInHand
from binlake.position.ledger import Ledger
from binlake.position.table_requests import ResyncRequest
from binlake.settings import Settings
from binlake.source.log_tail import LogTail
from binlake.source.offsets import NO_OFFSETS, Offsets
from binlake.source.positions import end_offsets
from binlake.source.signals import SnapshotSignal, send_signal
from binlake.stream.tables.control import TableControl
from hudilake.clock import monotonic_s
from hudilake.errors import ConfigError, LakeError

_log = logging.getLogger(__name__)

#: How often the connector's notifications are read while a table is fetched anew.
_LOOK_EVERY_S = 2.0
_KIND, _SCANNED, _ABORTED, _COMPLETED = "Incremental Snapshot", "TABLE_SCAN_COMPLETED", "ABORTED", "COMPLETED"
_PROGRESSES = "IN_PROGRESS"
#: Results of reading a table after which its rows are complete (Debezium's ``TableScanCompletionStatus``).
_READ = frozenset({"SUCCEEDED", "EMPTY"})
_PAUSE_S = 30.0


class Connector(Protocol):
    """What the stream must know of the connector while a table is fetched anew."""

    def signal(self, request: ResyncRequest) -> None:
        """Ask the connector to read a table. Raises TransientError, ConfigError."""
        ...

    def notifications(self) -> Iterable[bytes]:
        """The values of the notifications since the last call; at the first call all. Raises TransientError,
        ConfigError."""
        ...

    def ends(self, places: Offsets) -> Offsets:
        """The present ends of these topic partitions. Raises TransientError, ConfigError."""
        ...


class OldRows(Protocol):
    """The stored rows of tables that a resync outdates."""

    def remove_old_rows(self, source: SourceTable, order: int) -> None:
        """Delete the stored rows of a table up to an ordering value. Raises LakeError."""
        ...

    def removed_up_to(self, source: SourceTable) -> int | None:
        """The ordering value up to which rows of a table were deleted, -1 for none; None if the table is not open."""
        ...

    def still_called(self, source: SourceTable, name: SourceTable, since: int) -> bool:
        """Whether a lake table's source table has had a name from an ordering value on. Raises LakeError."""
        ...


_READING, _APPLYING = "the connector reads the table, by its key", "applies the rows that the connector has read"


class ResyncProgress:
    """How far the resyncs are that go on, for people who wait. The stream's thread tells; any thread may ask.

    The connector names the last key that it has read, and the greatest. Keys that are whole numbers give a share; of
    other keys only the step is known. Records to apply are counted by their offsets.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: dict[SourceTable, tuple[str, JobProgress]] = {}

    def reads(self, table: SourceTable, notification: Mapping[str, Any]) -> None:
        """The connector says how far it has read a table."""
        keys = [notification.get(name) for name in ("last_processed_key", "maximum_key")]
        if all(isinstance(key, str) and key.isascii() and key.isdigit() for key in keys):
            last, greatest = (int(str(key)) for key in keys)
            self._reach(table, "keys", _READING, last, max(last, greatest))

    def applies(self, table: SourceTable, left: int) -> None:
        """So many records are left to apply."""
        with self._lock:
            unit, job = self._jobs.get(table, ("", None))
        work = job.work() if job is not None and unit == "records" else None
        of = max(left, work.of or 0) if work is not None else left
        self._reach(table, "records", _APPLYING, of - left, of)

    def end(self, table: SourceTable) -> None:
        """A resync has ended."""
        with self._lock:
            self._jobs.pop(table, None)

    def work(self) -> WorkInHand | None:
        """What is in hand, for a ``WorkNotes``: the first resync, and the steps of all if there are several."""
        with self._lock:
            works = {str(table): job.work() for table, (_, job) in self._jobs.items()}
        known = {table: work for table, work in works.items() if work is not None}
        if not known:
            return None
        steps = {table: f"{work.what}: {work.done:,} of {work.of:,} {work.unit}" for table, work in known.items()}
        return dataclasses.replace(next(iter(known.values())), tables=steps if len(steps) > 1 else {})

    def _reach(self, table: SourceTable, unit: str, what: str, done: int, of: int) -> None:
        with self._lock:
            known, job = self._jobs.get(table, ("", None))
            if job is None or known != unit:
                job = JobProgress("resync", unit)
                job.begin(str(table), of, done)
                self._jobs[table] = (unit, job)
            job.reach(done, what)


class Resyncs:
    """The resyncs of one stream.

    Args:
        ledger: of the stream. This class changes it; the caller saves it.
        control: the requests.
        connector: None for a stream whose settings name no topic of notifications.
        rows: the stored rows.
    """

    def __init__(
        self,
        ledger: Ledger,
        control: TableControl,
        connector: Connector | None,
        rows: OldRows,
    ) -> None:
        self._ledger, self._control, self._connector, self._rows = ledger, control, connector, rows
        self.progress = ResyncProgress()
        self._restored_looked_for = False
        self._looked_s = -_LOOK_EVERY_S
        self._notifications: list[dict[str, Any]] = []
        self._not_before_s: dict[SourceTable, float] = {}

    def go_on(self) -> bool:
        """Take the next step of every resync that goes on; True if the ledger changed.

        Raises TransientError where Kafka does not tell the ends of a topic. A table whose commit fails is tried again
        later.
        """
        again = self._restart_restored()
        active = {table: r for table, r in self._ledger.resyncs.items() if r.active}
        if not active:
            self._notifications.clear()
            return again
        self._look()
        changes = [self._step(table, resync) for table, resync in active.items()]
        return again or any(changes)

    def _restart_restored(self) -> bool:
        """Repeat the end of resyncs whose last commit a restore has taken back; Kafka delivers the rows again, but not
        this commit. A restore needs the stream to be stopped, so one look in each run is enough."""
        if self._restored_looked_for:
            return False
        self._restored_looked_for = True
        restored = []
        for table, resync in self._ledger.resyncs.items():
            request, removed = self._control.request(table).resync, self._rows.removed_up_to(table)
            if request is None or request.id != resync.id or removed is None:
                continue
            if resync.step is ResyncStep.DONE and removed < request.order:
                restored.append((table, resync))
        for table, resync in restored:
            self._ledger.note_resync(table, dataclasses.replace(resync, step=ResyncStep.APPLYING))
        return bool(restored)

    def _look(self) -> None:
        if self._connector is None or monotonic_s() - self._looked_s < _LOOK_EVERY_S:
            return
        self._looked_s = monotonic_s()
        try:
            values = list(self._connector.notifications())
        except LakeError as error:  # there is no topic before the connector's first notification
            fields = {"event": "no_notifications", "error": error.what}
            _log.warning("the connector's notifications cannot be read: %s", error, extra=fields)
            return
        self._notifications += [notification for value in values if (notification := _notification(value)) is not None]

    def _step(self, table: SourceTable, resync: Resync) -> bool:
        request = self._control.request(table).resync
        if request is None or request.id != resync.id:
            return False
        if not self._rows.still_called(table, request.origin, request.order):
            why = f"{request.origin} was renamed, dropped or made anew at the source since it was asked for: ask again"
            self._ledger.note_resync(table, _failed(resync, table, why))
            self.progress.end(table)
            return True
        heard = self._signalled(resync, request) if resync.step is ResyncStep.ASKED else resync
        heard = self._heard(heard, request, table)
        if heard is not resync:
            self._ledger.note_resync(table, heard)
        if heard.step is ResyncStep.APPLYING:
            self.progress.applies(table, heard.until.minus(self._ledger.positions.within(heard.until)).total)
        elif heard.step is ResyncStep.FAILED:
            self.progress.end(table)
        if heard.step is not ResyncStep.APPLYING or not self._has_applied(table, heard.until):
            return heard is not resync
        return self._finish(table, heard, request) or heard is not resync

    def _signalled(self, resync: Resync, request: ResyncRequest) -> Resync:
        """The resync after its signal was sent. If the process dies before it is noted, the signal is sent twice, and
        the connector reads the table twice."""
        if self._connector is None:
            return resync
        try:
            self._connector.signal(request)
        except LakeError as error:
            fields = {"event": "not_signalled", "table": str(request.origin), "error": error.what}
            _log.warning("%s: the connector could not be signalled: %s", request.origin, error, extra=fields)
            return resync
        return dataclasses.replace(resync, step=ResyncStep.SIGNALLED)

    def _heard(self, resync: Resync, request: ResyncRequest, table: SourceTable) -> Resync:
        """The resync after the notifications about it."""
        for notification in self._notifications if resync.step in (ResyncStep.SIGNALLED, ResyncStep.READING) else ():
            if notification.get("id") != resync.id:
                continue
            more, kind = notification.get("additional_data") or {}, notification.get("type")
            if kind == _PROGRESSES:
                self.progress.reads(table, more)
            if kind == _SCANNED and more.get("scanned_collection", "").lower() == str(request.origin).lower():
                if (status := more.get("status")) not in _READ:
                    return _failed(resync, table, f"the connector could not read the table: {status}")
                return dataclasses.replace(resync, step=ResyncStep.APPLYING, until=self._ends(table))
            if kind in (_ABORTED, _COMPLETED):
                return _failed(resync, table, f"the connector ended the snapshot without reading the table: {kind}")
            resync = dataclasses.replace(resync, step=ResyncStep.READING) if not resync.until else resync
        return resync

    def _ends(self, table: SourceTable) -> Offsets:
        """The ends of the table's topics now, after the connector has written its last row."""
        topics = self._control.topics(table)
        held = Offsets({t: parts for t, parts in self._ledger.positions.items() if t in topics})
        return self._connector.ends(held) if self._connector is not None else NO_OFFSETS

    def _has_applied(self, table: SourceTable, until: Offsets) -> bool:
        if table in self._ledger.behind:
            return False
        return all(self._ledger.positions.at(topic, partition) >= end for topic, partition, end in until.places())

    def _finish(self, table: SourceTable, resync: Resync, request: ResyncRequest) -> bool:
        if monotonic_s() < self._not_before_s.get(table, 0.0):
            return False
        try:
            self._rows.remove_old_rows(table, request.order)
        except LakeError as error:
            self._not_before_s[table] = monotonic_s() + _PAUSE_S
            fields = {"event": "resync_waits", "table": str(table), "error": error.what}
            _log.warning("%s: the end of its resync is tried again: %s", table, error, extra=fields)
            return False
        self._ledger.note_resync(table, dataclasses.replace(resync, step=ResyncStep.DONE))
        self.progress.end(table)
        _log.info("%s was fetched anew", table, extra={"event": "resynced", "table": str(table)})
        return True


def _failed(resync: Resync, table: SourceTable, why: str) -> Resync:
    _log.error("%s was not fetched anew: %s", table, why, extra={"event": "resync_failed", "table": str(table)})
    return dataclasses.replace(resync, step=ResyncStep.FAILED, why=why)


def _notification(value: bytes) -> dict[str, Any] | None:
    """A notification about an incremental snapshot, out of its frame; None for any other record."""
    try:
        document = json.loads(value)
    except ValueError:
        return None
    if isinstance(document, dict) and isinstance(document.get("payload"), dict):
        document = document["payload"]
    return document if isinstance(document, dict) and document.get("aggregate_type") == _KIND else None


_ASK_S = 10.0


@dataclass
class SignalledConnector:
    """The connector of a stream, by its topics of notifications and of ``signals``. See ``resync.Connector``."""

    config: dict[str, str]
    tail: LogTail
    signals: str | None

    @staticmethod
    def of(settings: Settings) -> SignalledConnector | None:
        """The connector that the settings describe; None if they name no topic of notifications."""
        debezium, config = settings.source.debezium, settings.kafka.client_properties()
        if debezium.notification_topic is None:
            return None
        return SignalledConnector(config, LogTail(config, debezium.notification_topic), debezium.signal_topic)

    def signal(self, request: ResyncRequest) -> None:
        """Send the signal of an incremental snapshot. Raises ConfigError without a topic of signals, TransientError."""
        if self.signals is None:
            raise ConfigError(
                "the settings do not name the connector's topic of signals", do_next="set source.debezium.signal_topic"
            )
        send_signal(self.config, self.signals, SnapshotSignal(request.id, request.prefix, request.origin))

    def notifications(self) -> Iterable[bytes]:
        """The values that came since the last call, of all partitions of the topic."""
        return [value for records in self.tail.poll() for value in records.values if value is not None]

    def ends(self, places: Offsets) -> Offsets:
        """Kafka's answer, which may take ten seconds."""
        return end_offsets(self.config, places, _ASK_S)
