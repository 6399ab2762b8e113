"""The wide tables of a stream: derived after their tables of cells have committed, each for itself.

A wide table that cannot be derived is noted as behind and does not delay its table of cells. It goes on as other tables
that are behind do: by itself after an error that passes, else after ``binlake table resume``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Executor
from functools import cached_property
from typing import TYPE_CHECKING

from binlake.decode.changes import SourceTable
from binlake.hbase.derive.pairs import DerivedPair, derived_pairs, pair_of_wide
from binlake.settings import Settings
from binlake.stream.batches.policy import BatchPolicy
from binlake.stream.monitoring.progress import DerivedRows, TableProgress
from binlake.tables.lake import Lake
from binlake.tables.quarantine import QuarantineTable
from binlake.tables.services.table_services import TableServices
from hudilake.clock import now_ms
from hudilake.errors import LakeError

if TYPE_CHECKING:
    from binlake.hbase.derive.derivation import Deriver
    from binlake.hbase.derive.run import DerivationResult
    from binlake.hbase.derive.sweep import Sweeper

_log = logging.getLogger(__name__)


class Derivations:
    """Derives the wide tables of the settings, one after the other.

    Args:
        settings: of the stream.
        lake: the tables.
        services: their upkeep.
        quarantine: takes cells that have no place in a wide table.
        policy: of the batches: which wide tables are held back.
        pool: reads and writes files.
    """

    def __init__(
        self,
        settings: Settings,
        lake: Lake,
        services: TableServices,
        quarantine: QuarantineTable,
        policy: BatchPolicy,
        pool: Executor,
    ) -> None:
        self._settings, self._lake, self._policy = settings, lake, policy
        self._services, self._quarantine, self._pool = services, quarantine, pool

    @cached_property
    def _deriver(self) -> Deriver:
        from binlake.hbase.derive.cell_store import store_of
        from binlake.hbase.derive.derivation import (
            Deriver,  # most streams have no wide table, and its rules are compiled
        )

        settings, kept = self._settings, store_of(self._settings)
        most = settings.quarantine.max_records_per_batch
        return Deriver(settings.name, self._lake, self._services, self._quarantine, self._pool, kept, most)

    @cached_property
    def _sweeper(self) -> Sweeper:
        from binlake.hbase.derive.sweep import Sweeper  # as ``Deriver``

        return Sweeper(self._deriver)

    @cached_property
    def _pairs(self) -> list[DerivedPair]:
        return derived_pairs(self._settings)

    def after(self, committed: Collection[SourceTable], trigger_ms: int) -> list[TableProgress]:
        """Derive the wide tables of those tables of cells that have committed. Returns their progress; raises no
        LakeError."""
        pairs = [pair for pair in self._pairs if pair.cells in committed]
        return [progress for pair in pairs if (progress := self._one(pair, trigger_ms)) is not None]

    def missing(self) -> list[TableProgress]:
        """Derive what a crash, or another writer of a table of cells, has left to derive. As ``after``."""
        return self._news_of(self._pairs)

    def expired(self) -> list[TableProgress]:
        """Take expired cells out of the wide tables whose sweep is due. As ``after``."""
        due = [pair for pair in self._pairs if pair.kept.expires and self._sweeper.is_due(pair)]
        return self._news_of(due, self._sweeper.sweep) if due else []

    def catch_up(self, wide: SourceTable) -> TableProgress:
        """Derive a wide table that is behind. Raises LakeError; ConfigError if the settings derive no such table."""
        pair = pair_of_wide(self._settings, wide)
        assert pair is not None
        began_ms = now_ms()
        try:
            return _progress(self._deriver.derive(pair), began_ms)
        except LakeError:
            self._lake.forget(pair.wide_rules.path)
            raise

    def _news_of(
        self, pairs: Iterable[DerivedPair], how: Callable[[DerivedPair], DerivationResult] | None = None
    ) -> list[TableProgress]:
        """Derive between two batches: the progress of those wide tables that had rows to derive, or failed."""
        began_ms = now_ms()
        progress = [self._one(pair, began_ms, how) for pair in pairs]
        return [one for one in progress if one is not None and (one.error or (one.derived and one.derived.rows))]

    def _one(
        self, pair: DerivedPair, trigger_ms: int, how: Callable[[DerivedPair], DerivationResult] | None = None
    ) -> TableProgress | None:
        """Derive a wide table unless it is held back. ``how``: None to bring it up to date."""
        if not self._policy.derives(pair.wide):
            return None
        try:
            done = (how or self._deriver.derive)(pair)
        except LakeError as raised:
            self._lake.forget(pair.wide_rules.path)
            error = self._lake.judged(pair.cells_rules, self._lake.judged(pair.wide_rules, raised))
            fields = {"event": "not_derived", "table": str(pair.wide), "error": error.what, "next": error.do_next}
            _log.error("%s could not be derived: %s", pair.wide, error, extra=fields)
            self._policy.cannot_go_on(pair.wide, error)
            return TableProgress(str(pair.wide), error=str(error))
        if self._lake.opened(pair.wide_rules.path) is not None:
            self._policy.derived(pair.wide, pair.wide_rules.path)
        return _progress(done, trigger_ms)


def took_ms(tables: Sequence[TableProgress]) -> float:
    """The time of derivations in milliseconds."""
    return sum(one.derived.took_ms for one in tables if one.derived is not None)


def _progress(done: DerivationResult, trigger_ms: int) -> TableProgress:
    committed = bool(done.instants)
    oldest, newest = done.source_ms or (0, 0)
    why = f"every row was derived: {done.why}" if done.why else None
    return TableProgress(
        table=str(done.wide),
        commit_instant=done.instants[-1] if committed else None,
        commit_latency_ms=float(done.visible_ms - trigger_ms) if committed else None,
        freshness_oldest_ms=done.visible_ms - oldest if committed and oldest else None,
        freshness_newest_ms=done.visible_ms - newest if committed and newest else None,
        bytes_written=done.bytes_written,
        compaction_instant=done.services.compacted,
        clustering_instant=done.services.clustered,
        warning=why or done.services.warning,
        derived=DerivedRows(done.rows, done.upserts, done.gone, done.faults, done.took_ms),
    )
