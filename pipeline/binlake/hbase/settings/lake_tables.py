"""The lake tables of stores: which is which, and what their rules are besides those of any table.

It stands alone: the settings of tables, the stream and the derivation all ask it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from binlake.hbase.settings.tables import CellsSettings


def cells_table_of(stores: Iterable[CellsSettings], source: str) -> tuple[str, str] | None:
    """Database and table of the cells of a store's table (``namespace.table``); None if no store has it."""
    named = next((store.cells_table for store in stores if store.source == source), None)
    return None if named is None else split_name(named)


def has_table(stores: Iterable[CellsSettings], table: str) -> bool:
    """Whether a lake table (``database.table``) is one of the stores' tables. Readers ignore the case of names."""
    return any(table.lower() == name.lower() for store in stores for name in store.lake_tables)


def rules_of(stores: Iterable[CellsSettings], table: str) -> dict[str, Any]:
    """The fields of ``TableRules`` that a table of cells or a wide table has; none for any other table."""
    for store in stores:
        if table == store.cells_table:
            return {"cells": store.cells_rule()}
        if table == store.wide_table and (wide := store.wide_rule()) is not None:
            return {"key": (wide.key.name,), "wide": wide}
    return {}


def split_name(name: str) -> tuple[str, str]:
    """Database and table of ``database.table``."""
    database, table = name.split(".")
    return database, table
