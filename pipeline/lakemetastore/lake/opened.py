"""A Hudi table as the metastore reads it: its properties, its timeline, and its files, without a writer's state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hudilake.format.definition.config import TableConfig, load_config
from hudilake.format.timeline.timeline import Timeline
from hudilake.read.index import TableIndex
from hudilake.read.listing import Listing
from hudilake.storage import Storage
from hudilake.storage.base import FileInfo
from hudilake.table.columns import avro_schema_of


@dataclass(frozen=True)
class OpenedTable:
    """A table as of one listing of its timeline. Columns of any type may be in its schema."""

    storage: Storage
    config: TableConfig
    timeline: Timeline

    @classmethod
    def open(cls, storage: Storage) -> OpenedTable:
        """Read the properties and list the timeline. Raises ConfigError if there is no table, UnsupportedError for
        one of table version 6 or with Lance files, CorruptDataError, StorageError."""
        config, _ = load_config(storage)
        config.refuse_older("the metastore", parquet=True)
        return cls(storage, config, Timeline.load(storage))

    @property
    def index(self) -> TableIndex | None:
        """The table's metadata table as of the first use of each of its partitions; None if it has none."""
        if not self.config.metadata_partitions:
            return None
        return TableIndex(self.storage, self.config.metadata_partitions, self.timeline)

    def schema_text(self) -> str:
        """The Avro schema of the write that was requested last. Errors as ``avro_schema_of``."""
        return avro_schema_of(self.config, self.timeline)

    def listing(self) -> Listing:
        """Where its partitions and files are listed: its metadata table if it can be used, else storage."""
        return Listing.of(self.storage, self.index, self.timeline)

    def files(self, paths: Sequence[str] | None = None) -> dict[str, list[FileInfo]]:
        """All files by partition path. ``paths``: of these partitions alone. Raises StorageError, CorruptDataError."""
        listing = self.listing()
        return listing.files(listing.partitions() if paths is None else paths)
