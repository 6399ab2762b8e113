"""The partition definition of a table before each statement: from CREATE TABLE, and what statements have changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from binlake.decode.ddl.clauses import Action, Clause
from binlake.decode.ddl.partitions import ChangePartitions, Partitioning, changed_partitioning


@dataclass(frozen=True, slots=True)
class PartitioningPeriod:
    """A definition that holds from the ordering value ``since`` on; None for a table without partitions."""

    since: int
    partitioning: Partitioning | None


#: The newest CREATE TABLE before an ordering value; None if none is known.
DefinedBefore = Callable[[int], PartitioningPeriod | None]


def nothing_defined(order: int) -> PartitioningPeriod | None:
    """The definition of a table of which no CREATE TABLE is known."""
    return None


@dataclass
class KnownPartitions:
    """Follows a table's definition through its statements. ``created``: what CREATE TABLE has defined."""

    created: DefinedBefore = nothing_defined
    changed: PartitioningPeriod | None = None

    def before(self, order: int) -> PartitioningPeriod | None:
        """The definition before a statement; None if it is not known."""
        created = self.created(order)
        if self.changed is not None and (created is None or created.since < self.changed.since):
            return self.changed
        return created

    def note(self, order: int, action: Action, clauses: Iterable[Clause]) -> None:
        """Note what a statement defines or changes."""
        mine = [clause for clause in clauses if isinstance(clause, ChangePartitions)]
        if action is Action.CREATE:
            self.changed = PartitioningPeriod(order, mine[0].defined if mine else None)
            return
        for clause in mine:
            known = self.before(order)
            if known is not None or clause.defined is not None:
                former = known.partitioning if known is not None else None
                self.changed = PartitioningPeriod(order, changed_partitioning(former, clause))
