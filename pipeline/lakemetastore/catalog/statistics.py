"""Statistics of columns, as clients send them. What is in them is not looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lakemetastore.catalog.entries import StatisticsDropped, StatisticsPut, TableChange
from lakemetastore.catalog.logs import CatalogLogs, TableEntry
from lakemetastore.catalog.names import qualified
from lakemetastore.catalog.table_state import TableState
from lakemetastore.errors import NoSuchObjectError


class StatisticsCalls:
    """The calls about statistics of columns. See ``Catalog``. The empty partition name stands for the table."""

    def __init__(self, logs: CatalogLogs) -> None:
        self._logs = logs

    def get(self, entry: TableEntry, columns: Sequence[str], partition: str = "") -> dict[str, bytes]:
        """The statistics of some columns, of those that have any, as they were sent."""
        known = entry.statistics.get(partition, {})
        return {column: known[column] for column in columns if column in known}

    def put(self, database: str, name: str, columns: Mapping[str, bytes], partition: str = "") -> None:
        """Keep statistics of columns; other columns keep theirs.

        Raises NoSuchObjectError for an unknown table or partition.
        """

        entry = self._logs.find(database, name)

        def propose(state: TableState) -> TableChange:
            if state.table is None:
                raise NoSuchObjectError(f"{qualified(database, name)} table not found")
            if partition and state.partitions.position(partition) is None:
                raise NoSuchObjectError("Partition for which stats is gathered doesn't exist.")
            return StatisticsPut(partition, dict(columns))

        self._logs.table(entry.id).commit(propose)

    def drop(self, database: str, name: str, column: str | None = None, partition: str = "") -> None:
        """Forget the statistics of one column, or of all. Raises NoSuchObjectError if there are none."""
        entry = self._logs.find(database, name)

        def propose(state: TableState) -> TableChange:
            known = state.statistics.get(partition, {})
            if not known or (column is not None and column not in known):
                raise NoSuchObjectError(
                    f"Column stats doesn't exist for db={database} table={name}{f' col={column}' if column else ''}"
                )
            return StatisticsDropped(partition, column)

        self._logs.table(entry.id).commit(propose)
