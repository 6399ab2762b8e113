"""The metadata table of an open table: made, given commits and rollbacks, and looked after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from hudilake.commit.preconditions import is_time
from hudilake.errors import LakeError
from hudilake.format.files.file_group_write import WriteResult
from hudilake.format.timeline.timeline import Timeline
from hudilake.metadata.commit_entries import added_files, changed_keys, listed_change_logs
from hudilake.metadata.config import MetadataConfig
from hudilake.metadata.initialise import drop, initialise, kept_partitions
from hudilake.metadata.records.delta import MetadataDelta
from hudilake.metadata.records.layout import METADATA_PATH
from hudilake.metadata.services import rollback as metadata_rollback
from hudilake.metadata.services.upkeep import is_due, maintain, recover
from hudilake.table.table_state import TableState


@dataclass(frozen=True, slots=True)
class MetadataUpkeep:
    """Keeps the metadata table of an open table current, if its properties list one.

    ``table``: its state, which is changed with the metadata table.
    """

    table: TableState

    def keep(self, settings: MetadataConfig | None) -> bool:
        """Initialise the metadata table, initialise it again with other partitions, or drop it, as the settings
        require.

        Args:
            settings: its settings; None for no metadata table.

        Returns whether it was changed. An initialisation reads the data files once. Raises ConfigError for a table
        with pending commits, UnsupportedError for one that binlake cannot write to, CorruptDataError, StorageError.
        """
        self.table.config.check_writable()
        self.table.metadata_config = settings or MetadataConfig()
        if self._is_kept(settings):
            return False
        with self.table.exclusively():
            self.table.check_config()
            return not self._is_kept(settings) and self._made(settings)

    def _is_kept(self, settings: MetadataConfig | None) -> bool:
        partitions = kept_partitions(self.table.config, settings) if settings is not None else []
        return set(partitions) == set(self.table.config.metadata_partitions)

    def _made(self, settings: MetadataConfig | None) -> bool:
        table = self.table
        if table.config.metadata_partitions:
            table.config = drop(table.storage, table.config)
        if settings is not None:
            table.config = initialise(
                table.storage, table.config, table.timeline, table.clock, table.schema, table.metadata_config
            )
        table.note_properties()
        return True

    def has_pending(self) -> bool:
        """Whether an action on the metadata table is pending, by the names in its timeline; later times of the table
        are after all of its own.

        Raises UnsupportedError for a table that binlake cannot write to, StorageError.
        """
        if not self.table.config.metadata_partitions:
            return False
        self.table.config.check_writable()
        timeline = Timeline.load(self.table.storage.sub(METADATA_PATH))
        if is_time(latest := timeline.latest_time() or ""):
            self.table.clock.observe(latest)
        return bool(timeline.pending())

    def recover(self) -> None:
        """Finish or undo what is pending on the metadata table. Errors as ``upkeep.recover``."""
        if self.table.metadata_table is not None:
            recover(self.table.metadata_table)

    def maintain(self) -> str | None:
        """Run the metadata table's services after a commit, if they are due.

        Returns the reason if they fail: the commits stay valid, and the next call tries again.
        """
        try:
            if self.table.metadata_table is None or not is_due(self.table.metadata_table):
                return None
            with self.table.exclusively():
                if self.table.metadata_table is not None:
                    maintain(self.table.metadata_table)
        except LakeError as error:
            self.table.forget_index()
            return f"the metadata table's services failed: {error}"
        return None

    def indexed_columns(self, schema: pa.Schema) -> tuple[str, ...] | None:
        """The columns among ``schema`` whose statistics are kept; None for none."""
        index = self.table.metadata_table
        return index.columns_under(schema) if index is not None and index.columns else None

    def note(self, instant: str, results: Sequence[WriteResult], columns: pa.Schema) -> None:
        """Record a commit in the metadata table: the written files, and base files of new file groups."""
        index = self.table.metadata_table
        if index is not None and results:
            added = added_files(index, self.table.config.name, instant, results, columns)
            keys = changed_keys(instant, results) if index.record_index is not None else ()
            delta = MetadataDelta(added, keys=keys, listed=listed_change_logs(results))
            index.apply(instant, delta, columns)

    def undo(self, instant: str, rollback: str) -> None:
        """Undo the metadata table's entries of an instant that is being rolled back."""
        if self.table.metadata_table is not None:
            metadata_rollback.roll_back(self.table.metadata_table, instant, rollback)
