"""What tables do not have whose rows are not those of a table of the source: cells and wide rows of a store that has no
binlog and no SQL, and the versions of a history table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from binlake.settings import TableRules
from binlake.tables.catalog import CatalogTable
from hudilake.errors import UnsupportedError
from hudilake.format.definition.kind_support import KindRefusal, TableOperation
from hudilake.table.directory import BrokenTable


def lacks(rules: TableRules, operation: TableOperation) -> KindRefusal | None:
    """Why such a table does not have an operation; None if it has it, and for any other table."""
    if rules.cells is not None:
        return _OF_CELLS.get(operation)
    if rules.merge.keeps_versions:
        return _OF_VERSIONS.get(operation)
    return _OF_WIDE.get(operation) if rules.wide is not None else None


def refuse_lacking(rules: TableRules, operation: TableOperation, table: str) -> None:
    """Raise UnsupportedError if such a table does not have an operation. ``table``: its name."""
    if (refusal := lacks(rules, operation)) is not None:
        raise UnsupportedError(refusal.why, do_next=refusal.do_next, table=table)


def having(
    found: Sequence[CatalogTable | BrokenTable], operation: TableOperation, *, named: bool
) -> list[CatalogTable | BrokenTable]:
    """The tables that have an operation.

    ``named``: the user asked for these tables. Then, and if none is left, the first that lacks it raises
    UnsupportedError.
    """
    left: list[CatalogTable | BrokenTable] = []
    lacking: list[CatalogTable] = []
    for table in found:
        if isinstance(table, CatalogTable) and lacks(table.rules, operation) is not None:
            lacking.append(table)
        else:
            left.append(table)
    if lacking and (named or not left):
        refuse_lacking(lacking[0].rules, operation, lacking[0].name)
    return left


_OF_CELLS: Final = {
    TableOperation.BACKFILL: KindRefusal(
        "a table of cells holds what the store wrote, and a backfill would add what it did not",
        "write the cells in the store, or load a scan: binlake replay --scan",
    ),
    TableOperation.REVERT: KindRefusal(
        "a table of cells has no transactions and no before images, and would differ from the store",
        "write the former values in the store; its versions are in the table",
    ),
    TableOperation.VERIFY: KindRefusal(
        "the source of a table of cells is no database that answers SQL",
        "export a scan of the store, and compare it with the visible cells",
    ),
    TableOperation.RESYNC: KindRefusal(
        "no connector can send the rows of a store again",
        "export a new scan of the store, and load it: binlake replay --scan",
    ),
}
_OF_WIDE: Final = {
    TableOperation.BACKFILL: KindRefusal(
        "a wide table is derived from its table of cells, and the next derivation would undo the backfill",
        "declare the column in tables.cells, and it is derived for all rows",
    ),
    TableOperation.REVERT: KindRefusal(
        "a wide table is derived from its table of cells, and the next derivation would undo the revert",
        "write the former values in the store",
    ),
    TableOperation.VERIFY: KindRefusal(
        "the source of a wide table is no database that answers SQL",
        "compare it with its cells: binlake derive --check",
    ),
    TableOperation.RESYNC: KindRefusal(
        "a wide table is derived from its table of cells and not fetched", "derive all rows anew: binlake derive --all"
    ),
}
_OF_VERSIONS: Final = {
    TableOperation.BACKFILL: KindRefusal(
        "a version is what the row was at the source, and a backfill would change what was",
        "backfill the table of the rows",
    ),
    TableOperation.REVERT: KindRefusal(
        "a history table has the versions that the source's log says, and a revert is not in it",
        "revert the table of the rows; the history table stays as it is",
    ),
    TableOperation.VERIFY: KindRefusal(
        "the source has no versions to compare with",
        "compare the table of the rows, which are those of the current versions",
    ),
    TableOperation.RESYNC: KindRefusal(
        "the source has no versions to fetch",
        "fetch the table of the rows anew: each row that is read becomes a version",
    ),
}
