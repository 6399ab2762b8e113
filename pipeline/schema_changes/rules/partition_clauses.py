"""Judges a clause about partitions: which rows it removes, or why that is not known."""

from __future__ import annotations

import pyarrow as pa

from pipeline.decode.ddl.partitions import ChangePartitions, PartitionAction
from pipeline.errors import UnsupportedError
from pipeline.schema_changes.rules.partitions.known import Defined
from pipeline.schema_changes.rules.partitions.members import Removal, check_removal

_REMOVES = frozenset({PartitionAction.DROP, PartitionAction.TRUNCATE})
_EXCHANGES = frozenset({PartitionAction.EXCHANGE, PartitionAction.IMPORT})


def changes_rows(clause: ChangePartitions) -> bool:
    """Whether a clause removes or replaces rows, and not only moves them between partitions."""
    return clause.action in _REMOVES | _EXCHANGES


def removal_of(clause: ChangePartitions, known: Defined | None, schema: pa.Schema) -> Removal:
    """The rows that a clause removes.

    Args:
        clause: one that ``changes_rows``.
        known: the table's definition before it.
        schema: the lake's columns.

    Raises UnsupportedError, with the reason, where the rows are not known exactly.
    """
    if clause.action in _EXCHANGES:
        raise UnsupportedError("the rows of the other table take the place of the partition's rows", do_next="")
    if known is None or known.partitioning is None:
        raise UnsupportedError("the table's partition definition is not known", do_next="")
    removal = Removal(known.partitioning, () if clause.every else clause.names)
    check_removal(removal, schema)
    return removal


def partitions_text(clause: ChangePartitions) -> str:
    """The clause in words, for verdicts."""
    names = "all partitions" if clause.every else f"partition {', '.join(clause.names)}"
    return f"{clause.action} {names}"
