"""Where a portion is carried out: in Spark tasks, or in this process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from pyspark import SparkContext

from binlake.load.backfill.pieces import InputPortion
from binlake.load.backfill.portion_write import PortionPlan, PortionResult
from binlake.load.backfill.read_rows import RowCounts
from binlake.rows.tasks.plan import TaskFailure
from binlake.rows.upsert.parcel import Parcel
from hudilake.errors import LakeError, TransientError

_Item = Parcel | RowCounts | TaskFailure


class PortionWorkers(Protocol):
    """Carries out portions."""

    def run(self, plan: PortionPlan, portion: InputPortion) -> PortionResult:
        """Read a portion and write it. Raises LakeError."""
        ...


class LocalWorkers:
    """Everything in this process, one file group after the other."""

    def run(self, plan: PortionPlan, portion: InputPortion) -> PortionResult:
        """Reads and writes the portion in this process. Errors as ``PortionWorkers.run``."""
        return plan.write(plan.read(portion, range(len(portion.pieces))))


class SparkWorkers:
    """Tasks read pieces; after a shuffle by file group, other tasks look the rows up and write them."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context

    def run(self, plan: PortionPlan, portion: InputPortion) -> PortionResult:
        """Reads and writes the portion in Spark tasks; raises the first error of a task."""
        shared = self._context.broadcast((plan, portion))
        slots = self._context.defaultParallelism
        count = len(portion.pieces)
        try:
            numbers = self._context.parallelize(range(count), min(count, slots))
            items = numbers.mapPartitions(lambda mine: _read(*shared.value, iter(mine)))
            placed = items.map(lambda item: (_slot(item, slots), item)).partitionBy(slots, lambda slot: slot)
            parts = placed.mapPartitions(lambda mine: _write(shared.value[0], (item for _, item in mine))).collect()
        finally:
            shared.unpersist()
        result = PortionResult()
        for part in parts:
            if isinstance(part, TaskFailure):
                raise part.error
            result.add(part)
        return result


def _slot(item: _Item, slots: int) -> int:
    return item.slot(slots) if isinstance(item, Parcel) else 0


def _read(plan: PortionPlan, portion: InputPortion, at: Iterator[int]) -> Iterator[_Item]:
    try:
        yield from plan.read(portion, at)
    except TransientError:
        raise  # Spark tries the task again
    except LakeError as error:
        yield TaskFailure(error)


def _write(plan: PortionPlan, items: Iterator[_Item]) -> Iterator[PortionResult | TaskFailure]:
    usable: list[Parcel | RowCounts] = []
    for item in items:
        if isinstance(item, TaskFailure):
            yield item
        else:
            usable.append(item)
    try:
        yield plan.write(usable)
    except TransientError:
        raise
    except LakeError as error:
        yield TaskFailure(error)
