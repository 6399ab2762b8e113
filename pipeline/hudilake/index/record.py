"""RECORD_INDEX: the place of every record key is in the metadata table, of the whole table or of each partition."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pyarrow as pa

from hudilake.errors import UnsupportedError
from hudilake.format.files.file_group_write import KeyChanges
from hudilake.index.base import KeyLocations, LookupCost
from hudilake.table.table import HudiTable


class RecordIndex:
    """The record index of an open table (see ``base.KeyIndex``). The metadata table takes in the changes of a commit
    itself (``WriteResult.keys``), under the commit's instant: a rollback undoes both."""

    def __init__(self, table: HudiTable) -> None:
        self._table = table

    def locate(self, keys: pa.Array, partition_paths: pa.Array) -> KeyLocations:
        """As ``KeyIndex.locate``; the cost counts file groups of the index as files. Raises UnsupportedError for a
        table without a record index."""
        begun = time.perf_counter()
        metadata = self._table.metadata_table
        if metadata is None or metadata.record_index is None:
            raise UnsupportedError(
                "the table has no record index",
                do_next="set metadata.enabled: true for the table, and start again: it is then built from the files",
                table=self._table.config.name,
            )
        before = metadata.meter.bytes_read
        locations = metadata.record_index.locate(keys, partition_paths)
        cost = LookupCost(
            keys=len(keys),
            files=len(metadata.record_index.groups),
            candidates=locations.groups,
            files_read=locations.groups,
            bytes_read=metadata.meter.bytes_read - before,
            seconds=time.perf_counter() - begun,
        )
        return KeyLocations(locations.partition_paths, locations.file_ids, cost)

    def keep(self, instant: str, changes: Sequence[KeyChanges]) -> None:
        """Nothing: the commit itself tells the metadata table."""
