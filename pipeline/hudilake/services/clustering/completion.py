"""The end of a clustering: one replacecommit, under the table's lock.

Commits may have written file groups of the plan since it was made, or compactions may have been planned on them. Their
units are left out: their new files are deleted, and the old file groups stay as they are. So no change is lost,
whatever has happened between the plan and its completion. A commit that began before and writes a replaced file group
later is refused by its own check (``table.overtaking``) and written again.

The steps are those of any commit (``actions.commit``): the metadata table, then the completed file. A crash before the
completed file leaves an inflight instant, which the table's next writer rolls back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hudilake.commit.commit import OvertakenError, withdraw
from hudilake.errors import CommitUnknownError, LakeError, LostOwnershipError
from hudilake.format.files.file_group_write import WriteResult
from hudilake.format.layout.order import order_extra
from hudilake.services.clustering.job import ClusteringJob, UnitResult, holding
from hudilake.services.clustering.plan import ClusteringUnit
from hudilake.table.table import HudiTable

#: Tells the index of a table which keys the files of an instant have, before the instant completes.
Keep = Callable[[str, Sequence[WriteResult]], None]


@dataclass(frozen=True)
class ClusteringResult:
    """What a clustering has done.

    Args:
        instant: its requested time.
        completed: whether anything was published; else it was rolled back.
        replaced, made: numbers of file groups.
        rows: how many rows were laid out.
        bytes_written: of the new files.
        gave_way: how many units of the plan were left out.

    Example:
        >>> events = hudilake.create_table(uri, pa.schema({"device": pa.int64()}))
        >>> for device in (2, 1):
        ...     _ = events.append([{"device": device}])
        >>> done = events.cluster(hudilake.ClusteringPolicy(order_by=hudilake.OrderPolicy(columns=("device",))))
        >>> done.completed, done.replaced, done.made, done.rows
        (True, 1, 1, 2)
    """

    instant: str
    completed: bool
    replaced: int = 0
    made: int = 0
    rows: int = 0
    bytes_written: int = 0
    gave_way: int = 0

    @property
    def counts(self) -> Mapping[str, int]:
        """All numbers, by name."""
        return {name: value for name, value in vars(self).items() if name not in ("instant", "completed")}


def complete(
    table: HudiTable, job: ClusteringJob, made: Sequence[UnitResult], keep: Keep | None = None
) -> ClusteringResult:
    """Publish the units of a clustering that still hold; if there are none, the clustering is rolled back.

    Args:
        table: the object that put it in flight; it is refreshed under its lock.
        job: from ``prepare``.
        made: of all its units.
        keep: of a table whose index keeps keys by itself.

    On an error the clustering is rolled back before the error goes on, unless its outcome is unknown. Raises
    OvertakenError if the table's properties have changed meanwhile, LostOwnershipError if another process rolled it
    back, LockHeldError, CommitUnknownError, CorruptDataError, StorageError.
    """
    time, results = job.time, [result for one in made for result in one.results]
    if table.state.begun.of(time) is None:
        withdraw(table.storage, time, [result.path for result in results])
        raise LostOwnershipError(
            "the table was opened again since this clustering began",
            do_next="none needed: the next clustering plans anew",
            instant=time,
            table=table.config.name,
        )
    try:
        with table.exclusively():
            table.refresh()
            _check_properties(table, time)
            return _publish(table, job, made, keep)
    except (CommitUnknownError, LostOwnershipError):
        raise
    except LakeError:
        give_up(table, job)
        raise


def give_up(table: HudiTable, job: ClusteringJob) -> None:
    """Roll a clustering back after an error. If that fails, the table's next writer does it."""
    try:
        table.abort(job.time)
    except LakeError:
        table.ownership.end(job.time)


def _check_properties(table: HudiTable, time: str) -> None:
    """The files say what the metadata table as of the beginning keeps of them."""
    if table.state.begun.properties_changed_since(time):
        raise OvertakenError(
            "another process changed the table's properties since this clustering began",
            do_next="none needed: the next clustering plans anew",
            instant=time,
            table=table.config.name,
        )


def _publish(table: HudiTable, job: ClusteringJob, made: Sequence[UnitResult], keep: Keep | None) -> ClusteringResult:
    sound = {unit.groups for unit in holding(table, job.units, job.time)}
    held = [one for one in made if one.unit.groups in sound]
    for one in made:
        if one.unit.groups not in sound:
            for result in one.results:
                table.storage.delete(result.path)
    gave_way = job.planned - len(held)
    if not held:
        table.abort(job.time)
        return ClusteringResult(job.time, completed=False, gave_way=gave_way)
    results = [result for one in held for result in one.results]
    table.rebase(job.time, whole=False)
    if keep is not None:
        keep(job.time, results)
    table.commit(job.time, results, order_extra(job.context.order), replaced=_replaced(one.unit for one in held))
    return ClusteringResult(
        job.time,
        completed=True,
        replaced=sum(len(one.unit.sources) for one in held),
        made=len(results),
        rows=sum(result.num_upserts for result in results),
        bytes_written=sum(result.size_bytes for result in results),
        gave_way=gave_way,
    )


def _replaced(units: Iterable[ClusteringUnit]) -> Mapping[str, tuple[str, ...]]:
    by_path: dict[str, list[str]] = {}
    for unit in units:
        by_path.setdefault(unit.partition_path, []).extend(source.file_id for source in unit.sources)
    return {path: tuple(sorted(ids)) for path, ids in sorted(by_path.items())}
