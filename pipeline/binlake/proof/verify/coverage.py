"""Whether the lake has applied everything up to a position of the source's binlog.

Kafka stands between the two, so it takes three steps: the connector has sent a change from behind the position, which
the stream's ledger shows (its heights); then the ends of the table's topics in Kafka are noted; then the table's
commits cover these ends. The topics of statements are read up to their ends, too: what the source calls a table is
known then. A connector sends in the order of the binlog. Where nothing is changed behind the position,
the first step cannot be shown, and some seconds take its place. A stream that reads the binlog itself needs the last
step alone: the end of the binlog is behind the position.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from binlake.position.ledger import Ledger
from binlake.settings import Settings
from binlake.source.binlog.places import PARTITION
from binlake.source.binlog.reading import BinlogSource
from binlake.source.offsets import Offsets
from binlake.source.source_log import source_log
from binlake.tables.catalog import CatalogTable
from binlake.tables.lake_table import LakeTable
from binlake.tables.names import TableNames
from hudilake.clock import monotonic_s
from hudilake.storage import open_storage

_log = logging.getLogger(__name__)
_POLL_S = 0.25


class LakeCoverage(Protocol):
    """Brings the lake to a position."""

    def reach(self, table: CatalogTable, order: int, *, proven: bool) -> bool:
        """Wait until the table has applied everything up to an ordering value.

        ``proven``: wait also for the proof that nothing is on its way between the source and Kafka. Without it, and
        where the lake did not reach the position in time, the answer is False.
        """
        ...

    def hears(self, order: int) -> bool:
        """Wait until the stream knows the statements up to an ordering value, and so the names of tables there; False
        if it does not in time."""
        ...


@dataclass
class AsItIs:
    """The lake is taken as it is: its stream is known to be through, or does not run."""

    settings: Settings

    def reach(self, table: CatalogTable, order: int, *, proven: bool) -> bool:
        """Always true."""
        return True

    def hears(self, order: int) -> bool:
        """Tells without waiting whether the stream knows the statements up to their end."""
        return has_heard(self.settings, statements_end(self.settings))


@dataclass
class StreamCoverage:
    """Waits for the stream of the settings.

    Args:
        settings: of the stream.
        wait_s: the longest wait, in seconds.
        quiet_s: so long nothing from behind the position must have come for it to count as passed.
        silent_s: a wait that is longer is announced, once.
    """

    settings: Settings
    wait_s: float = 120.0
    quiet_s: float = 10.0
    silent_s: float = 2.0
    _passed: int = -1
    _late: bool = False

    def reach(self, table: CatalogTable, order: int, *, proven: bool) -> bool:
        """See ``LakeCoverage``. Raises TransientError if Kafka does not answer, StorageError."""
        reads_binlog = self.settings.source.mysql is not None
        if proven and not reads_binlog:
            self._pass(order)
        ends, statements = self._ends(table), statements_end(self.settings)
        reached = self._reach(lambda: not self._missing(table, ends) and has_heard(self.settings, statements))
        return reached and (reads_binlog or order <= self._passed)

    def hears(self, order: int) -> bool:
        """See ``LakeCoverage``. Raises TransientError if Kafka does not answer, StorageError."""
        if self.settings.source.mysql is not None:
            ends = _binlog_end(self.settings)
            return self._reach(lambda: (ledger := self._ledger()) is not None and not ends.ahead_of(ledger.positions))
        if not self.settings.kafka.ddl_topics:
            return True
        self._pass(order)
        statements = statements_end(self.settings)
        return self._reach(lambda: has_heard(self.settings, statements))

    def _pass(self, order: int) -> None:
        if order > self._passed:
            self._wait(lambda: self._has_passed(order), self.quiet_s)
            self._passed = order

    def _reach(self, condition: Callable[[], bool]) -> bool:
        reached = self._wait(condition, 0 if self._late else self.wait_s)
        self._late = not reached  # a stream that does not run is not waited for again and again
        return reached

    def _wait(self, condition: Callable[[], bool], most_s: float) -> bool:
        begun_s, is_announced = monotonic_s(), False
        while not condition():
            waited_s = monotonic_s() - begun_s
            if waited_s >= most_s:
                return False
            if waited_s >= self.silent_s and not is_announced:
                is_announced = True
                _log.info(
                    "waiting for the stream to reach the source's position, at most %g s; --no-wait takes the lake as "
                    "it is",
                    most_s,
                    extra={"event": "verify_waits"},
                )
            time.sleep(_POLL_S)
        return True

    def _ledger(self) -> Ledger | None:
        state = open_storage(self.settings.state_uri, self.settings.state_options())
        return Ledger.load(state, self.settings.name)

    def _has_passed(self, order: int) -> bool:
        """Whether the stream has applied a change from behind the position, of any table."""
        ledger = self._ledger()
        heights = ledger.heights.values() if ledger is not None else ()
        return any(height > order for topics in heights for parts in topics.values() for height, _ in parts.values())

    def _ends(self, table: CatalogTable) -> Offsets:
        """The next offsets of the topics that feed the table."""
        return _ends_of(LakeTable.look(table.storage, table.rules).topics(self.settings.name), self.settings)

    def _missing(self, table: CatalogTable, ends: Offsets) -> bool:
        """Whether records below these offsets are not applied. A batch without rows for the table commits nothing to
        it; then the ledger tells its position."""
        standing = LakeTable.look(table.storage, table.rules).standing(self.settings.name)
        ledger = self._ledger()
        if ledger is not None and table.source not in ledger.behind:
            standing = standing.furthest(ledger.positions)
        return any(standing.at(topic, partition) < end for topic, partition, end in ends.places())


def _binlog_end(settings: Settings) -> Offsets:
    server = BinlogSource.open(settings).server
    return Offsets({server.topic: {PARTITION: server.end}})


def statements_end(settings: Settings) -> Offsets:
    """The next offsets of the topics of statements; none where they stand among the rows. Raises TransientError,
    ConfigError."""
    return _ends_of(settings.kafka.ddl_topics, settings)


def has_heard(settings: Settings, until: Offsets) -> bool:
    """Whether the names of the tables follow from all statements below these offsets."""
    root = open_storage(settings.lake.uri, settings.lake.storage_options())
    heard = TableNames.load(root, settings.name).heard
    return all(heard.at(topic, partition) >= end for topic, partition, end in until.places())


def _ends_of(topics: Iterable[str], settings: Settings) -> Offsets:
    log = source_log(settings)
    return Offsets.of_places((t, p, log.held(t, p)[1]) for t in sorted(topics) for p in log.partitions(t))
