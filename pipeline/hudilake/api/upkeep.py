"""The table services behind the façade: each on one open table, to its end, in this process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import pyarrow as pa

from hudilake.api.changes import deletes_have_orders, may_be_null
from hudilake.api.rows import Rows, conformed, rows_of
from hudilake.errors import CommitUnknownError, ConfigError, LakeError, LostOwnershipError, UnsupportedError
from hudilake.format.definition.bucketing import Bucketing
from hudilake.format.definition.keys import check_own_keys, record_keys
from hudilake.format.files.file_group_write import WriteContext, WriteResult
from hudilake.format.files.names import TOMBSTONES_PATH
from hudilake.format.timeline.instant import Instant
from hudilake.index.open import open_index
from hudilake.policies import ClusteringPolicy, CompactionPolicy, FileSizePolicy
from hudilake.services import compaction
from hudilake.services.clustering.completion import ClusteringResult
from hudilake.services.clustering.config import ClusteringConfig
from hudilake.services.clustering.service import Clustering
from hudilake.services.compaction import CompactionConfig
from hudilake.services.erasure.erase import keys_with
from hudilake.services.erasure.rewrite import KeepKeys, Rewrite
from hudilake.services.erasure.search import refuse_kind
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
    return compaction.run(table, CompactionConfig.of(policy or _default_policy(table)), one_by_one, now=now)


def _default_policy(table: HudiTable) -> CompactionPolicy:
    policy = CompactionPolicy()
    if deletes_have_orders(table.config, table.schema):
        return policy
    return policy.model_copy(update={"tombstone_retention_hours": 0.0})


def cluster(table: HudiTable, policy: ClusteringPolicy, sizes: FileSizePolicy) -> ClusteringResult | None:
    """Lay the rows of a table out anew; None if no file would become better. Errors as those of the steps."""
    service = Clustering(table, ClusteringConfig(policy, sizes), one_by_one, keeps_of(table))
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


def keeps_of(table: HudiTable) -> KeepKeys | None:
    """What the index of a table learns of the keys that a commit takes away; None where the files are the index."""

    def keep(instant: str, results: Sequence[WriteResult]) -> None:
        open_index(table).keep(instant, [result.keys for result in results if result.keys is not None])

    return keep if table.config.kind.keeps_keys else None


def record_keys_of(table: HudiTable, rows: Rows) -> frozenset[str]:
    """The record keys of rows that name them; of an append table those of all rows with the given values. Raises
    ConfigError for rows without the columns of the key or with a record key that other values have, too,
    UnsupportedError for a table whose kind has no erasure."""
    refuse_kind(table)
    if not table.config.record_key_fields:
        given = rows_of(rows, table.schema)
        named = given.to_pylist() if given.num_columns else [{}]
        return frozenset[str]().union(*(keys_with(table, values) for values in named))
    fields = table.config.record_key_fields
    given = rows_of(rows, table.schema)
    if lacking := [name for name in fields if name not in given.column_names]:
        raise ConfigError(
            f"the rows to erase lack {', '.join(lacking)}",
            do_next="give the columns of the record key",
            table=table.config.name,
        )
    schema = pa.schema([table.schema.field(name) for name in fields])
    rows = conformed(given.select(fields), schema, fields)
    check_own_keys(rows, fields, may_be_null(schema, fields), table.config.name)
    return frozenset(record_keys(rows, fields).to_pylist())


def erasing(table: HudiTable) -> Rewrite:
    """How rows are erased from a table by this façade."""
    return Rewrite(table, CompactionConfig.of(_default_policy(table)), keeps_of(table))


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
        if self.hudi.storage.list_dirs(TOMBSTONES_PATH):
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
