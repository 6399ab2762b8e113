"""The table services behind the façade: each on one open table, to its end, in this process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import pyarrow as pa

from hudilake.api.changes import deletes_have_orders
from hudilake.errors import CommitUnknownError, LakeError, LostOwnershipError, UnsupportedError
from hudilake.format.definition.bucketing import Bucketing
from hudilake.format.files.file_group_write import WriteContext, WriteResult
from hudilake.format.timeline.instant import Instant
from hudilake.index.open import open_index
from hudilake.policies import ClusteringPolicy, CompactionPolicy, FileSizePolicy
from hudilake.services import compaction
from hudilake.services.clustering.completion import ClusteringResult
from hudilake.services.clustering.config import ClusteringConfig
from hudilake.services.clustering.service import Clustering
from hudilake.services.planned import one_by_one
from hudilake.services.rebucket import steps
from hudilake.services.rebucket.steps import Mover, RebucketResult
from hudilake.table.bucket_counts import stated_buckets
from hudilake.table.table import HudiTable


def compact(table: HudiTable, policy: CompactionPolicy | None, *, now: bool) -> list[Instant]:
    """Compact a table; returns the compactions that completed. Errors as ``compaction.run``.

    Args:
        table: open.
        policy: when it is due and how base files are written. None for the defaults; deletes are kept where they have
            an ordering value that keeps older rows out (``Transaction.delete``).
        now: compact even if it is not due.
    """
    if policy is None:
        policy = CompactionPolicy()
        if not deletes_have_orders(table.config, table.schema):
            policy = policy.model_copy(update={"tombstone_retention_hours": 0.0})
    return compaction.run(table, compaction.CompactionConfig.of(policy), one_by_one, now=now)


def cluster(table: HudiTable, policy: ClusteringPolicy, sizes: FileSizePolicy) -> ClusteringResult | None:
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


#: Where binlake keeps the orders of deleted rows that the format has no place for, by the ids of file groups.
_KEPT_DELETES = ".hoodie/.binlake/tombstones"


@dataclass(frozen=True, slots=True)
class PlainWriter:
    """The writer of a table whose commits record nothing but rows, as a move to other buckets asks it
    (``RebucketWriter``).

    Args:
        hudi: the table.
    """

    hudi: HudiTable

    @property
    def name(self) -> str:
        """The table's name."""
        return self.hudi.config.name

    def refresh(self) -> None:
        """Take in what others have committed. Raises UnsupportedError once another writer keeps deleted rows beside the
        files: they would be found under the former file groups alone."""
        self.hudi.refresh()
        if self.hudi.storage.list_dirs(_KEPT_DELETES):
            raise UnsupportedError(
                "binlake keeps orders of deleted rows for the table's file groups",
                do_next="use binlake rebucket, which carries them over",
                table=self.name,
            )

    def context(self, instant: str) -> WriteContext:
        """How files of an instant are written."""
        return self.hudi.write_context(instant)

    @contextmanager
    def undone_on_error(self, instant: str) -> Iterator[None]:
        """Roll an instant back before an error goes on; if that fails, the table's next writer does it."""
        try:
            yield
        except (CommitUnknownError, LostOwnershipError):
            raise
        except BaseException:
            with suppress(LakeError):
                self.hudi.abort(instant)
            raise

    def carry_deletes(self, _: Mover) -> list[WriteResult]:
        """Nothing is kept beside the files."""
        return []

    def commit(
        self,
        context: WriteContext,
        results: Sequence[WriteResult],
        replaced: Mapping[str, tuple[str, ...]],
        bucketing: Bucketing,
    ) -> None:
        """Complete the replacecommit."""
        extra = stated_buckets(bucketing)
        self.hudi.commit(context.instant, results, extra, context.arrow_schema, replaced=replaced)
        self.hudi.maintain()


def rebucket(table: HudiTable, wanted: Bucketing) -> RebucketResult:
    """Move the rows of a table to other buckets. Errors as ``steps.rebucket``."""
    return steps.rebucket(PlainWriter(table), wanted, compaction.CompactionConfig(), one_by_one)


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
