"""The sweep: rows whose cells have expired are derived again, though no change has touched them.

No event tells that a cell has expired. So each sweep looks for cells whose time to live (TTL) has ended since the last
one, by the ranges of the timestamps of files, and derives their rows. An expired cell is out of the wide table after
``sweep_seconds`` and the time of a derivation. The wide table's commits say up to when it is swept. A sweep that finds
nothing commits nothing, but now and then, so that compactions do not drop expired cells before a sweep has seen them.
Where one has, every row is derived anew.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.cells import FAMILY, KIND, ROW, TIMESTAMP, CellKind
from binlake.decode.changes import SourceTable
from binlake.hbase.derive.derivation import Deriver
from binlake.hbase.derive.pairs import DerivedPair
from binlake.hbase.derive.run import DerivationResult, portions
from binlake.hbase.settings.rules import CellsRule
from binlake.tables.lake_table import LakeTable
from hudilake.clock import now_ms
from hudilake.read.filters.expressions import And, Eq, Filter, Ge, Lt, Or
from hudilake.read.table_reader import TableReader
from hudilake.services.compaction.completion import recorded_horizon
from hudilake.table.table import HudiTable

_MS_PER_S: Final = 1000
_LONGS: Final = range(-(2**63), 2**63)
#: Part of the lateness after which a sweep is recorded though it has found nothing.
_UNRECORDED: Final = 2


def expired_rows(table: HudiTable, rule: CellsRule, since_ms: int, until_ms: int) -> pa.Array:
    """The rows with a value whose time to live ended after ``since_ms`` and up to ``until_ms`` (wall time in
    milliseconds since 1970): string array of distinct rows.

    Raises CorruptDataError, StorageError.
    """
    condition = _expiring(rule, since_ms, until_ms)
    if condition is None:
        return pa.array([], pa.string())
    batches = TableReader(table).read(condition=condition, columns=[ROW])
    rows = [pc.unique(batch.column(0)).cast(pa.string()) for batch in batches]
    return pc.unique(pa.chunked_array(rows, pa.string()))


@dataclass
class Sweeper:
    """Takes expired cells out of wide tables.

    Args:
        deriver: derives their rows.
    """

    deriver: Deriver
    _looked_ms: dict[SourceTable, int] = field(default_factory=dict)

    def is_due(self, pair: DerivedPair) -> bool:
        """Whether ``sweep_seconds`` have passed since this process looked for expired cells."""
        looked_ms = self._looked_ms.get(pair.wide)
        return looked_ms is None or now_ms() - looked_ms >= pair.declared.sweep_seconds * _MS_PER_S

    def sweep(self, pair: DerivedPair) -> DerivationResult:
        """Derive the rows whose cells have expired since the last sweep. A wide table that has never been derived, or
        whose cells do not expire, stays as it is. Errors as ``Deriver.derive``."""
        if not pair.kept.expires:
            return DerivationResult(pair.wide)
        until_ms = now_ms()
        cells, wide = self.deriver.lake.get(pair.cells_rules), self.deriver.lake.get(pair.wide_rules)
        swept_ms = None if wide is None or wide.recorded.derived is None else wide.recorded.derived.swept_ms
        if cells is None or not swept_ms or until_ms <= swept_ms:
            return DerivationResult(pair.wide)
        cells.hudi.refresh()
        done = self._sweep(pair, cells, swept_ms, until_ms)
        self._looked_ms[pair.wide] = until_ms
        return done

    def _sweep(self, pair: DerivedPair, cells: LakeTable, swept_ms: int, until_ms: int) -> DerivationResult:
        horizon_ms = recorded_horizon(cells.hudi)
        if horizon_ms is not None and horizon_ms > swept_ms:
            return self.deriver.derive(pair, anew="compactions have dropped cells that expired since the last sweep")
        since_ms = max(swept_ms, self._looked_ms.get(pair.wide, 0))
        rows = expired_rows(cells.hudi, pair.kept, since_ms, until_ms)
        if len(rows):
            return self.deriver.derive_rows(pair, portions(rows, self.deriver.portion_rows), until_ms)
        if until_ms - swept_ms >= max(pair.kept.lateness_ms // _UNRECORDED, pair.declared.sweep_seconds * _MS_PER_S):
            return self.deriver.derive_rows(pair, [rows], until_ms)
        return DerivationResult(pair.wide)


def _expiring(rule: CellsRule, since_ms: int, until_ms: int) -> Filter | None:
    """The condition of values that expired in a window; None if there can be none."""
    parts = []
    for family in rule.families:
        if family.ttl_ms is not None:
            begin, end = ((moment_ms - family.ttl_ms) * rule.ticks_per_ms for moment_ms in (since_ms, until_ms))
            if end in _LONGS:
                begin = max(begin, _LONGS.start)
                parts.append(And((Eq(FAMILY, family.name), Ge(TIMESTAMP, begin), Lt(TIMESTAMP, end))))
    return And((Eq(KIND, CellKind.PUT.value), Or(tuple(parts)))) if parts else None
