"""Which rules tables of cells and wide tables cannot have, and which names they cannot share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from binlake.hbase.settings.tables import CellsSettings
from binlake.settings.table_rules import TableRules

#: Indexes by which the bucket of a row follows from its key.
_INDEXES_OF_CELLS: Final = ("bucket",)
_INDEXES_OF_WIDE: Final = ("bucket", "consistent_bucket")


def cells_problem(rules: TableRules) -> str | None:
    """Which of its rules a table of cells cannot have; None if it can have them all."""
    if rules.key is not None:
        return "its key is that of a cell: leave key out"
    if rules.partition is not None:
        return "it cannot be partitioned, because the cells of a row are read together: set partition: null for it"
    return _problem_of_both(rules, _INDEXES_OF_CELLS)


def wide_problem(rules: TableRules, given_key: Sequence[str] | None) -> str | None:
    """Which of its rules a wide table cannot have; None if it can have all. ``given_key``: that of the settings."""
    if given_key is not None:
        return "its key is its :key column: leave key out"
    if rules.partition is not None:
        return "it cannot be partitioned, because the only column that never changes is its key: set partition: null"
    return _problem_of_both(rules, _INDEXES_OF_WIDE)


def _problem_of_both(rules: TableRules, indexes: Sequence[str]) -> str | None:
    if rules.kind == "append":
        return "it cannot be of kind append: rows of an append table are never put together"
    engine = "it cannot have merge.engine: {}, because the store's own rules say what counts"
    if (why := rules.merge.refusal(engine)) is not None:
        return why
    if rules.index.type not in indexes:
        return f"it cannot have index.type: {rules.index.type}; take {' or '.join(indexes)}"
    if rules.conflicts == "column":
        return "it cannot have conflicts: column, because its rows are written whole"
    if rules.columns is not None:
        return "its columns are given: leave columns (include, exclude, mask, computed) out, or set columns: {} for it"
    return None


def shared_name(stores: Iterable[CellsSettings], stitched: Iterable[str]) -> str | None:
    """What is named twice among the stores' tables and the lake tables of them; None if nothing is.

    ``stitched``: the names of stitched tables. Readers and file systems may ignore the case of names.
    """
    taken: dict[str, str] = {name.lower(): f"stitched table {name}" for name in stitched}
    sources: set[str] = set()
    for store in stores:
        if store.source in sources:
            return f"two entries are of {store.source}"
        sources.add(store.source)
        for name in store.lake_tables:
            what = f"{'the table of cells' if name == store.cells_table else 'the wide table'} of {store.source}"
            if (other := taken.setdefault(name.lower(), what)) != what:
                return f"{other} and {what} have one name, {name}"
    return None
