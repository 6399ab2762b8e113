"""The table services behind the façade: each on one open table, to its end, in this process."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hudilake.errors import LostOwnershipError
from hudilake.format.files.file_group_write import WriteResult
from hudilake.format.timeline.instant import Instant
from hudilake.index.open import open_index
from hudilake.policies import ClusteringPolicy, CompactionPolicy, FileSizePolicy
from hudilake.services import compaction
from hudilake.services.clustering.completion import Clustered
from hudilake.services.clustering.config import ClusteringConfig
from hudilake.services.clustering.service import Clustering
from hudilake.services.planned import one_by_one
from hudilake.table.table import HudiTable


def compact(table: HudiTable, policy: CompactionPolicy | None, *, now: bool) -> list[Instant]:
    """Compact a table; returns the compactions that completed. Errors as ``compaction.run``.

    Args:
        table: open.
        policy: when it is due and how base files are written. None for the defaults without kept deletes: those of
            ``Table.delete`` have no ordering value that could keep late changes out.
        now: compact even if it is not due.
    """
    config = compaction.CompactionConfig.of(policy or CompactionPolicy(tombstone_retention_hours=0))
    return compaction.run(table, config, one_by_one, now=now)


def cluster(table: HudiTable, policy: ClusteringPolicy, sizes: FileSizePolicy) -> Clustered | None:
    """Lay the rows of a table out anew; None if no file would become better. Errors as those of the steps."""

    def keep(instant: str, results: Sequence[WriteResult]) -> None:
        open_index(table).keep(instant, [result.keys for result in results if result.keys is not None])

    keeps = keep if table.config.kind.keeps_keys else None
    service = Clustering(table, ClusteringConfig(policy, sizes), one_by_one, keeps)
    requested = service.schedule()
    job = service.prepare(requested) if requested is not None else None
    if job is None:
        return None
    try:
        made = service.execute(job)
    except BaseException:
        service.give_up(job)
        raise
    return service.complete(job, made)


def evolve(table: HudiTable, schema: pa.Schema) -> str:
    """Commit other columns; returns the requested time. Errors as ``HudiTable.commit``."""
    instant = table.begin()
    try:
        table.commit(instant, [], schema=schema)
    except LostOwnershipError:
        raise
    except Exception:
        table.abort(instant)
        raise
    table.maintain()
    return instant
