"""The metadata table of an open table: made, told of commits and rollbacks, and looked after."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hudilake.errors import BinlakeError
from hudilake.format.definition.config import PROPERTIES_PATH
from hudilake.format.files.file_group_write import WriteResult
from hudilake.metadata.commit_entries import added_files, changed_keys
from hudilake.metadata.config import MetadataConfig
from hudilake.metadata.initialise import drop, initialise, kept_partitions
from hudilake.metadata.records.delta import MetadataDelta
from hudilake.metadata.services import rollback as metadata_rollback
from hudilake.metadata.services.upkeep import is_due, maintain
from hudilake.table.table_state import TableState


class MetadataKeeping(TableState):
    """The state of an open table whose metadata table is kept current, if its properties list one."""

    def keep_metadata(self, settings: MetadataConfig | None) -> bool:
        """Initialise the metadata table, initialise it again with other partitions, or drop it, as the settings
        require.

        Args:
            settings: its settings; None for no metadata table.

        Returns whether it was changed. An initialisation reads the data files once. Raises ConfigError for a table
        with pending commits, UnsupportedError for one that binlake cannot write to, CorruptDataError, StorageError.
        """
        self.config.check_writable()
        self._metadata_config = settings or MetadataConfig()
        if self._is_kept(settings):
            return False
        with self.exclusively():
            self._check_config()
            return not self._is_kept(settings) and self._keep(settings)

    def _is_kept(self, settings: MetadataConfig | None) -> bool:
        partitions = kept_partitions(self.config, settings) if settings is not None else []
        return set(partitions) == set(self.config.metadata_partitions)

    def _keep(self, settings: MetadataConfig | None) -> bool:
        if self.config.metadata_partitions:
            self.config = drop(self.storage, self.config)
        if settings is not None:
            self.config = initialise(
                self.storage, self.config, self.timeline, self._clock, self.schema, self._metadata_config
            )
        self._index, self._properties = None, self.storage.stat(PROPERTIES_PATH)
        return True

    def maintain(self) -> str | None:
        """Run the metadata table's services after a commit, if they are due.

        Returns the reason if they fail: the commits stay valid, and the next call tries again.
        """
        try:
            if self.metadata_table is None or not is_due(self.metadata_table):
                return None
            with self.exclusively():
                if self.metadata_table is not None:
                    maintain(self.metadata_table)
        except BinlakeError as error:
            self._index = None
            return f"the metadata table's services failed: {error}"
        return None

    def _indexed_columns(self, schema: pa.Schema) -> tuple[str, ...] | None:
        index = self.metadata_table
        return index.columns_under(schema) if index is not None and index.columns else None

    def _note(self, instant: str, results: Sequence[WriteResult], columns: pa.Schema) -> None:
        """Record a commit in the metadata table: the written files, and base files of new file groups."""
        index = self.metadata_table
        if index is not None and results:
            added = added_files(index, self.config.name, instant, results, columns)
            keys = changed_keys(instant, results) if index.record_index is not None else ()
            index.apply(instant, MetadataDelta(added, keys=keys), columns)

    def _undo_entries(self, instant: str, rollback: str) -> None:
        """Undo the metadata table's entries of an instant that is being rolled back."""
        if self.metadata_table is not None:
            metadata_rollback.roll_back(self.metadata_table, instant, rollback)
