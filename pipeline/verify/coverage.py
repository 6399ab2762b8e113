"""Whether the lake has applied everything up to a position of the source's binlog.

Kafka stands between the two, so it takes three steps: the connector has sent a change from behind the position, which
the stream's ledger shows (its heights); then the ends of the table's topics in Kafka are noted; then the table's
commits cover these ends. A connector sends in the order of the binlog. Where nothing is changed behind the position,
the first step cannot be shown, and some seconds take its place.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from pipeline.clock import monotonic_s
from pipeline.lake.catalog import CatalogTable
from pipeline.lake.lake_table import LakeTable
from pipeline.position.ledger import Ledger
from pipeline.settings import Settings
from pipeline.source.log_tail import partitions_of, watermarks
from pipeline.source.offsets import Offsets
from pipeline.storage import open_storage

_POLL_S = 0.25


class Coverage(Protocol):
    """Brings the lake to a position."""

    def reach(self, table: CatalogTable, order: int, *, proven: bool) -> bool:
        """Wait until the table has applied everything up to an ordering value.

        ``proven``: wait also for the proof that nothing is on its way between the source and Kafka. Without it, and
        where the lake did not reach the position in time, the answer is False.
        """
        ...


class AsItIs:
    """The lake is taken as it is: its stream is known to be through, or does not run."""

    def reach(self, table: CatalogTable, order: int, *, proven: bool) -> bool:
        """Always true."""
        return True


@dataclass
class StreamCoverage:
    """Waits for the stream of the settings.

    Args:
        settings: of the stream.
        wait_s: the longest wait, in seconds.
        quiet_s: so long nothing from behind the position must have come for it to count as passed.
    """

    settings: Settings
    wait_s: float = 120.0
    quiet_s: float = 10.0
    _passed: int = -1
    _late: bool = False

    def reach(self, table: CatalogTable, order: int, *, proven: bool) -> bool:
        """See ``Coverage``. Raises TransientError if Kafka does not answer, StorageError."""
        if proven and order > self._passed:
            self._wait(lambda: self._has_passed(order), self.quiet_s)
            self._passed = order
        ends = self._ends(table)
        reached = self._wait(lambda: not self._missing(table, ends), 0 if self._late else self.wait_s)
        self._late = not reached  # a stream that does not run is not waited for again and again
        return reached and order <= self._passed

    def _wait(self, condition: Callable[[], bool], most_s: float) -> bool:
        deadline_s = monotonic_s() + most_s
        while not condition():
            if monotonic_s() >= deadline_s:
                return False
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
        config = self.settings.kafka.client_properties()
        topics = LakeTable.look(table.storage, table.rules).topics(self.settings.name)
        places = ((t, p, watermarks(config, t, p)[1]) for t in sorted(topics) for p in partitions_of(config, t))
        return Offsets.of_places(places)

    def _missing(self, table: CatalogTable, ends: Offsets) -> bool:
        """Whether records below these offsets are not applied. A batch without rows for the table commits nothing to
        it; then the ledger tells its position."""
        standing = LakeTable.look(table.storage, table.rules).standing(self.settings.name)
        ledger = self._ledger()
        if ledger is not None and table.source not in ledger.behind:
            standing = standing.furthest(ledger.positions)
        return any(standing.at(topic, partition) < end for topic, partition, end in ends.places())
