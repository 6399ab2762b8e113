"""The plan of a clustering: units of file groups that are laid out together, and what Hudi's plans say of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hudilake.commit.compaction_plan import Operation
from hudilake.errors import UnsupportedError
from hudilake.format.definition import kind_support
from hudilake.format.files.names import parse_base_name, parse_log_name
from hudilake.format.files.view import FileSlice
from hudilake.format.layout.order import Order, order_extra, recorded_order
from hudilake.format.timeline.clustering_plan import (
    SORT_AND_SIZE,
    SORT_COLUMNS,
    ClusteringPlan,
    PlannedGroup,
    PlannedSlice,
)
from hudilake.format.timeline.timeline import FileGroupId
from hudilake.policies import OrderPolicy
from hudilake.services.clustering.config import ClusteringConfig
from hudilake.services.clustering.selection import Taken, bytes_of, selected
from hudilake.services.compaction.scheduling import logs_before
from hudilake.table.table import HudiTable

if TYPE_CHECKING:
    from hudilake.format.layout.bounds import Bounds

_SUMMED = ("TOTAL_LOG_FILES", "TOTAL_LOG_FILES_SIZE", "TOTAL_IO_READ_MB", "TOTAL_IO_WRITE_MB", "TOTAL_IO_MB")


@dataclass(frozen=True)
class Unit:
    """File groups of one partition that are laid out together, by one task. Picklable.

    Args:
        partition_path: of the file groups.
        sources: a slice of each file group, as operations of a compaction, in a fixed order.
        size: bytes of the sources; 0 if the plan does not say them.
        outputs: about how many file groups they become.
        bounds: of the ranges by which the order numbers values, once they are known; None for an order without.
    """

    partition_path: str
    sources: tuple[Operation, ...]
    size: int
    outputs: int
    bounds: Bounds | None = None

    @property
    def groups(self) -> frozenset[FileGroupId]:
        """The file groups that it replaces."""
        return frozenset(source.group for source in self.sources)


def plan(table: HudiTable, config: ClusteringConfig, busy: Collection[FileGroupId] = (), time: str = "~") -> list[Unit]:
    """What a clustering would lay out now; nothing if no file would become better.

    Args:
        table: as of its last refresh.
        config: the settings.
        busy: file groups that others have planned: left out.
        time: log files whose commits completed before it are taken; "~" for all.

    Raises UnsupportedError for a table whose rows may not leave their file group, CorruptDataError, StorageError.
    """
    table.config.kind.refuse(kind_support.Operation.CLUSTERING, table.config.name)
    slices = [piece for piece in table.file_slices() if (piece.partition_path, piece.file_id) not in busy]
    settled = [piece for piece in slices if logs_before(table.timeline, piece.log_files, time) == piece.log_files]
    return [_unit(taken, config) for taken in selected(table, settled, config)]


def _unit(taken: Taken, config: ClusteringConfig) -> Unit:
    sources = tuple(Operation.of(piece, piece.log_files) for piece in taken)
    size = sum(map(bytes_of, taken))
    return Unit(taken[0].partition_path, sources, size, config.outputs(size))


def plan_of(units: Sequence[Unit], config: ClusteringConfig) -> ClusteringPlan:
    """The plan that Hudi can execute too: by the same columns, along the curve that its writer is given."""
    order = config.order
    params = {SORT_COLUMNS: ",".join(order.columns)} if order is not None else {}
    groups = tuple(planned_group(unit.sources, unit.outputs) for unit in units)
    return ClusteringPlan(groups, SORT_AND_SIZE, params, order_extra(order))


def planned_group(sources: Sequence[Operation], outputs: int, extra: Mapping[str, str] | None = None) -> PlannedGroup:
    """Slices that become ``outputs`` file groups. ``extra``: further keys of the strategy."""
    slices = tuple(PlannedSlice(s.partition_path, s.file_id, s.base_file, s.log_files) for s in sources)
    metrics = {name: sum(source.metrics.get(name, 0.0) for source in sources) for name in _SUMMED}
    return PlannedGroup(slices, outputs, extra or {}, metrics)


def units_of(planned: ClusteringPlan) -> list[Unit]:
    """The units of a plan, ours or Hudi's.

    Raises UnsupportedError for a plan that binlake does not execute, CorruptDataError for files that are no data files.
    """
    if planned.strategy != SORT_AND_SIZE:
        raise UnsupportedError(
            f"binlake does not execute clusterings by {planned.strategy.rpartition('.')[2] or 'no strategy'}",
            do_next="execute the clustering with Hudi, or roll it back with Hudi",
        )
    if not planned.keeps_times:
        raise UnsupportedError(
            "the clustering would give all rows a new commit time",
            do_next="execute it with Hudi, or plan it again with hoodie.clustering.preserve.commit.metadata=true",
        )
    return [
        Unit(group.partition_path, tuple(map(_operation, group.slices)), 0, group.outputs) for group in planned.groups
    ]


def _operation(piece: PlannedSlice) -> Operation:
    base = parse_base_name(piece.base_file) if piece.base_file is not None else None
    logs = [parse_log_name(name) for name in piece.log_files]
    instants = [base.instant] if base is not None else [log.instant for log in logs if log is not None]
    if (base is None and piece.base_file is not None) or None in logs or not instants:
        raise UnsupportedError(
            "the clustering plan names files that are not data files",
            do_next="roll the clustering back with the writer that made it",
            file_group=piece.file_id,
        )
    return Operation(piece.partition_path, piece.file_id, instants[0], piece.base_file, piece.log_files)


def order_of(planned: ClusteringPlan) -> Order | None:
    """The order that a plan asks for: ours, or along a z-order by the columns of Hudi's plan, which does not name the
    curve (measured). Raises CorruptDataError."""
    ours, columns = recorded_order(planned.extra), planned.params.get(SORT_COLUMNS)
    if ours is not None or not columns:
        return ours
    return Order(OrderPolicy(columns=tuple(name.strip() for name in columns.split(","))))


def holds(unit: Unit, slices: Mapping[FileGroupId, FileSlice]) -> bool:
    """Whether the file groups of a unit are as they were planned. ``slices``: the newest ones."""
    return all(source.group in slices and _as_planned(source, slices[source.group]) for source in unit.sources)


def _as_planned(source: Operation, piece: FileSlice) -> bool:
    base = str(piece.base_file.name) if piece.base_file is not None else None
    return base == source.base_file and {str(log.name) for log in piece.log_files} == set(source.log_files)
