"""SQL expressions over the rows and the before images of a change batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from binlake.decode.changes import META_NAMES, ChangeBatch
from binlake.rows.upsert.computed import compute


@dataclass(frozen=True, slots=True)
class Evaluated:
    """``rows``, ``before``: one column an expression; without before images, ``before`` has none. ``bad``: the rows for
    which one fails. ``why``: the error of one of them."""

    rows: pa.Table
    before: pa.Table
    bad: frozenset[int] = frozenset()
    why: str = ""


NOTHING_EVALUATED = Evaluated(pa.table({}), pa.table({}))


def evaluate(batch: ChangeBatch, expressions: Sequence[tuple[str, str]]) -> Evaluated:
    """Evaluate (name, expression) pairs. Raises UnsupportedError as ``compute``."""
    source = batch.origin or batch.schema.source
    rows = compute(batch.rows.drop_columns(list(META_NAMES)), expressions, source)
    if batch.before is None:
        return Evaluated(rows.columns, pa.table({}), frozenset(rows.bad), rows.why)
    before = compute(batch.before, expressions, source)
    bad = {*rows.bad, *batch.before_at[list(before.bad)].tolist()}
    return Evaluated(rows.columns, before.columns, frozenset(bad), rows.why or before.why)


def beside(rows: pa.Table, added: pa.Table) -> pa.Table:
    """The value columns, then the added columns, then the meta columns of the change batch."""
    at = len([n for n in rows.column_names if n not in META_NAMES])
    for field, column in zip(added.schema, added.columns, strict=True):
        rows = rows.add_column(at, field, column)
        at += 1
    return rows
