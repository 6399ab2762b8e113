"""What tasks must know of DDL: whom rows belong to, what is done to those before a statement, which are refused."""

from __future__ import annotations

import bisect
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from pipeline.decode.changes import FILE_BITS, POSITION_BITS, ChangeBatch, Control, ControlKind, Decoded, SourceTable
from pipeline.decode.selection import rows_where
from pipeline.schema_changes.rules.restatement import Restatement

#: A record of a table that a schema change tool made, counted as filtered.
SHADOW_TABLE = "shadow_table"
#: Why rows after a refused statement are in quarantine.
DDL_REFUSED = "ddl_refused"
_I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Name:
    """From ordering value ``since`` on, rows of a name go to the table of ``identity``; None: ``why`` they do not."""

    since: int
    identity: SourceTable | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Rows from ``since`` on, to ``until`` if that is not None, are refused."""

    since: int
    until: int | None
    why: str


@dataclass(frozen=True, slots=True)
class SourceDdl:
    """What is done to the rows of one source table. ``texts``: its whole numbers that the lake keeps as text."""

    restatements: tuple[Restatement, ...] = ()
    texts: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()


NO_DDL = SourceDdl()


@dataclass(frozen=True)
class DdlPlan:
    """``names``: of tables that were ever renamed, ascending. ``tables``: by the first name of the source's table."""

    names: Mapping[SourceTable, Sequence[Name]] = field(default_factory=dict)
    shadows: Collection[SourceTable] = frozenset()
    tables: Mapping[SourceTable, SourceDdl] = field(default_factory=dict)

    def of(self, source: SourceTable) -> SourceDdl:
        """What is done to the rows of a table."""
        return self.tables.get(source, NO_DDL)


def name_at(names: Sequence[Name], order: int) -> Name | None:
    """What a name stands for at an ordering value; None before its first change.

    Snapshot rows, which are ordered before all others, were read under the name's last meaning.
    """
    if names and not has_binlog_place(order) and has_binlog_place(names[-1].since):
        return names[-1]
    at = bisect.bisect_right(names, order, key=lambda name: name.since)
    return names[at - 1] if at else None


def has_binlog_place(order: int) -> bool:
    """Whether an ordering value is a place in a binlog, and not a snapshot's time or a Kafka offset."""
    return bool((order >> POSITION_BITS) & ((1 << FILE_BITS) - 1))


@dataclass
class Named:
    """What was decoded, under the names of the tables it belongs to. ``refused``: batches of none, and why."""

    decoded: Decoded
    refused: list[tuple[ChangeBatch, str]] = field(default_factory=list)


def named(decoded: Decoded, plan: DdlPlan) -> Named:
    """Take out what belongs to shadow tables, and give what belongs to renamed tables their first name."""
    if not (plan.names or plan.shadows):
        return Named(decoded)
    found = Named(Decoded(filtered=dict(decoded.filtered)))
    mine = found.decoded
    mine.unknown_columns = {s: names for s, names in decoded.unknown_columns.items() if s not in plan.shadows}
    for record in decoded.quarantined:
        if record.source in plan.shadows:
            mine.count_filtered(record.source, SHADOW_TABLE)
        else:
            mine.quarantined.append(record)
    for control in decoded.controls:
        _take_control(control, plan, mine)
    for batch in decoded.changes:
        if batch.schema.source in plan.shadows:
            mine.count_filtered(batch.schema.source, SHADOW_TABLE, len(np.unique(batch.rows.column("__offset"))))
        else:
            _take_batch(batch, plan.names.get(batch.schema.source, ()), found)
    return found


def _take_control(control: Control, plan: DdlPlan, mine: Decoded) -> None:
    if control.kind is ControlKind.TRUNCATE and control.source in plan.shadows:
        mine.count_filtered(control.source, SHADOW_TABLE)
        return
    name = name_at(plan.names.get(control.source, ()), control.order)
    if control.kind is ControlKind.TRUNCATE and name is not None and name.identity is not None:
        control = replace(control, source=name.identity)
    mine.controls.append(control)


def _take_batch(batch: ChangeBatch, names: Sequence[Name], found: Named) -> None:
    if not names:
        found.decoded.changes.append(batch)
        return
    for name, part in _parted(batch, names):
        if name is None:
            found.decoded.changes.append(part)
        elif name.identity is None:
            found.refused.append((part, name.why))
        else:
            schema = replace(part.schema, source=name.identity)
            found.decoded.changes.append(replace(part, schema=schema))


def _parted(batch: ChangeBatch, names: Sequence[Name]) -> Iterator[tuple[Name | None, ChangeBatch]]:
    orders = np.asarray(batch.rows.column("__order").to_numpy(), dtype=np.int64)
    distinct, codes = np.unique(orders, return_inverse=True)
    meant = [name_at(names, order) for order in distinct.tolist()]
    for name in dict.fromkeys(meant):
        mask = np.array([other == name for other in meant], dtype=bool)[codes]
        yield name, batch if mask.all() else rows_where(batch, mask)


def refused(
    batch: ChangeBatch, refusals: Sequence[Refusal]
) -> tuple[ChangeBatch | None, list[tuple[ChangeBatch, str]]]:
    """The rows that may go on (None: none), and those that a refused statement came before, with the reason."""
    bad: list[tuple[ChangeBatch, str]] = []
    for refusal in refusals:
        orders = np.asarray(batch.rows.column("__order").to_numpy(), dtype=np.int64)
        mask = orders >= refusal.since
        if refusal.until is not None:
            mask &= orders < refusal.until
        if mask.all():
            return None, [*bad, (batch, refusal.why)]
        if mask.any():
            bad.append((rows_where(batch, mask), refusal.why))
            batch = rows_where(batch, ~mask)
    return batch, bad
