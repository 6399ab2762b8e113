"""The metastore's state of a table in place of its metadata table: partitions, files and column ranges without a read
of storage. Bloom filters and the record index stay with the metadata table."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from functools import partial

from hudilake.errors import LakeError
from hudilake.format.files.column_stats import ColumnRange
from hudilake.format.timeline.instant import COMPLETED_ACTIONS
from hudilake.metadata.records.delta import FileKey
from hudilake.read.index import TableIndex, table_index
from hudilake.storage.base import FileInfo
from hudilake.table.table import HudiTable
from lakemetastore.http.open_tables import IndexOf
from lakemetastore.lake.lake_tables import LakeTables
from lakemetastore.lake.state import LakeState

_log = logging.getLogger(__name__)


class StateLookups:
    """The files and column ranges of a state. The ranges of a partition are decoded on first use, and kept."""

    def __init__(self, state: LakeState) -> None:
        self._state = state
        self._ranges: dict[str, dict[str, dict[str, ColumnRange]]] = {}

    def partition_paths(self) -> list[str]:
        """Returns the partition paths, sorted, without partitions that lost their last file."""
        return self._state.partitions()

    def listed(self, partition_paths: Iterable[str]) -> dict[str, list[FileInfo]]:
        """Returns the files of each of these partitions by its path, without times of change."""
        return {path: self._state.listed(path) for path in partition_paths}

    def column_ranges(
        self, columns: Collection[str], files: Iterable[FileKey]
    ) -> dict[FileKey, dict[str, ColumnRange]]:
        """Returns the statistics of these columns by file and column; files and columns without any are left out."""
        ranges_by_file: dict[FileKey, dict[str, ColumnRange]] = {}
        for path, name in files:
            if path not in self._ranges:
                self._ranges[path] = self._state.ranges(path)
            of_file = self._ranges[path].get(name, {})
            if chosen := {column: of_file[column] for column in columns if column in of_file}:
                ranges_by_file[path, name] = chosen
        return ranges_by_file


def state_index(table: HudiTable, states: LakeTables) -> TableIndex | None:
    """The index of a table by the metastore's state; None if that is not the state of the same timeline.

    Raises StorageError if the metastore's store does not answer.
    """
    state = states.state(table.storage.uri).state
    known = {instant.instant for instant in state.timeline()}
    timeline = table.timeline
    if known != {*timeline.pending(), *timeline.completed_actions(COMPLETED_ACTIONS)}:
        return None
    return TableIndex(table.storage, table.config.metadata_partitions, timeline, StateLookups(state))


def index_by(states: LakeTables | None) -> IndexOf:
    """Opens indexes by the metastore's states where it can, else by the tables' own metadata tables."""
    if states is None:
        return table_index
    return partial(_index_of, states)


def _index_of(states: LakeTables, table: HudiTable) -> TableIndex | None:
    try:
        return state_index(table, states) or table_index(table)
    except LakeError as error:
        _log.warning("the state of a table is not read: %s", error, extra={"event": "state_failed"})
        return table_index(table)
