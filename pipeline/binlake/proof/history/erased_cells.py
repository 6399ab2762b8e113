"""A row of an HBase-like store is erased with all its cells, and with the wide row that is derived from them."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.cells import CELL_KEY, CELL_SCHEMA, ROW
from binlake.hbase.derive.faults import is_cell
from binlake.hbase.derive.pairs import DerivedPair, derived_pairs, pair_of_wide
from binlake.hbase.rules.wide import wide_rows
from binlake.load.replay.quarantine_records import QuarantineEntry, QuarantineSelection, held_records
from binlake.proof.history.keys import RowKey, stored_keys
from binlake.settings import Settings
from binlake.tables.catalog import CatalogTable
from binlake.tables.seal import Seal
from hudilake.errors import ConfigError
from hudilake.format.definition.keys import record_keys
from hudilake.storage import Storage
from hudilake.table.table import HudiTable


@dataclass(frozen=True)
class RowKeys:
    """The record keys of a row.

    Args:
        keys: those that are known.
        start: how all of them begin, of the cells of a row of a store; None where ``keys`` are all.
    """

    keys: frozenset[str]
    start: str | None = None

    def __contains__(self, key: str) -> bool:
        return key in self.keys or (self.start is not None and key.startswith(self.start))

    @property
    def all_of_them(self) -> pa.Array | None:
        """All keys, ascending; None if others may be of the row, too."""
        return pa.array(sorted(self.keys), pa.string()) if self.start is None else None


def start_of_cells(row: RowKey, place: CatalogTable) -> str | None:
    """How the record keys of the cells of a row begin; None if not all cells of a row of a store are meant."""
    return f"{ROW}:{row.values[ROW]}," if place.rules.cells is not None and row.values.keys() != set(CELL_KEY) else None


def cell_keys(start: str, table: HudiTable) -> frozenset[str]:
    """The record keys of a table of cells that begin so. Raises CorruptDataError, StorageError."""
    keys = stored_keys(table)
    return frozenset(keys.filter(pc.starts_with(keys, start)).to_pylist())


def pair_of_cells(settings: Settings, place: CatalogTable) -> DerivedPair | None:
    """The pair of a table of cells; None if no wide table is derived from it."""
    return next((pair for pair in derived_pairs(settings) if pair.cells == place.source), None)


def wide_keys(pair: DerivedPair, row: str, table: HudiTable) -> frozenset[str]:
    """The record key of the wide row of a row of the store, in its text form; none if that is no key of the table."""
    keys = wide_rows(CELL_SCHEMA.empty_table(), pa.array([row], pa.string()), pair.declared).gone
    named = pa.table({pair.declared.key.name: keys})
    return frozenset(record_keys(named, table.config.record_key_fields).to_pylist()) if len(keys) else frozenset()


def quarantined_cells(settings: Settings, root: Storage, pair: DerivedPair, row: str) -> list[QuarantineEntry]:
    """The cells of a row that have no place in the wide table, in quarantine. ``root``: the lake's.

    Raises ConfigError if the records have another seal, CorruptDataError, StorageError.
    """
    selection = QuarantineSelection(tables=frozenset({str(pair.wide)}), replayed=True)
    held = held_records(root.sub(settings.quarantine_path), selection, Seal(settings.quarantine.secret()), payload=True)
    return [one for one in held if is_cell(one.topic) and one.key == row.encode()]


def refuse_wide(settings: Settings, place: CatalogTable) -> None:
    """Raise ConfigError for a wide table: its row would be derived again from the cells."""
    if (pair := pair_of_wide(settings, place.source)) is not None:
        raise ConfigError(
            "a wide row is derived from cells, and would be derived again",
            do_next=f"erase the cells of the row, and the wide row goes with them: binlake erase CONF {pair.cells} "
            f"{ROW}=ROW",
            table=place.name,
        )
