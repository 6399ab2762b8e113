"""The rules of a lake table, and the parts of them that are sections of their own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pydantic import ValidationInfo, field_validator

from binlake.hbase.settings.rules import CellsRule, WideRule
from binlake.settings.fanout import ColumnsRule
from binlake.settings.index import IndexSettings, RowsKind
from binlake.settings.merging import GroupRule, MergeRule
from binlake.settings.schema_changes import SchemaChangeSettings
from hudilake.policies import (
    ChangeLog,
    ClusteringPolicy,
    CompactionPolicy,
    Conflicts,
    FileSizePolicy,
    MetadataPolicy,
    RetentionPolicy,
    TableType,
)
from hudilake.validation import Section, Text, mistake

Transform = Literal["identity", "year", "month", "day", "hour"]
Compression = Literal["zstd", "snappy", "none"]


class PartitionSettings(Section):
    """How a lake table is partitioned."""

    column: Text
    """The source column."""
    transform: Transform = "identity"
    """``identity`` takes the value itself; the others the year, month, day or hour (UTC) of a temporal column."""
    name: Text | None = None
    """The partition field's name; by default the column's, followed by ``_<transform>`` if there is one."""

    @field_validator("name")
    @classmethod
    def _apart_from_the_column(cls, name: str | None, info: ValidationInfo) -> str | None:
        transform, column = info.data.get("transform"), info.data.get("column")
        if name is None or transform is None or column is None:
            return name
        if (transform == "identity") != (name == column):
            raise mistake("must be the column's own name with identity, and another one with any other transform")
        return name

    @property
    def field(self) -> str:
        """The name of the partition field: the given one, or the default from column and transform."""
        return self.name or (self.column if self.transform == "identity" else f"{self.column}_{self.transform}")


class _MetadataSwitch(Section):
    enabled: bool = True
    """Keep a metadata table. false drops an existing one; true builds it from the files of the table."""


class MetadataSettings(MetadataPolicy, _MetadataSwitch):
    """The metadata table of a lake table: readers list files and skip them by it."""


class _CompactionPlace(Section):
    mode: Literal["async", "inline", "process", "off"] = "async"
    """``async``: beside the batches; ``inline``: between them; ``process``: left to ``binlake compact``, with
    cleaning and archival; ``off``: never."""


class CompactionSettings(CompactionPolicy, _CompactionPlace):
    """Compaction of a lake table: its log files become base files. It begins at the first trigger that is met."""


class _ClusteringPlace(Section):
    mode: Literal["async", "inline", "process"] = "process"
    """``async``: beside the batches; ``inline``: between them; ``process``: left to ``binlake cluster``."""


class ClusteringSettings(ClusteringPolicy, _ClusteringPlace):
    """Clustering of a lake table: rows are laid out anew across file groups."""


class RetentionSettings(RetentionPolicy):
    """How long older file slices stay, for slow readers and for time travel.

    The active timeline is cut to about as many commits; older ones go to the table's history.
    """


@dataclass(frozen=True, slots=True)
class TableRules:
    """All rules of one lake table, defaults and override merged. Picklable: they are sent to tasks.

    ``path`` is relative to the lake's root. ``key`` None means the key of the messages or the schema.
    ``immutable_partition`` promises that the partition column of a row never changes, so that before images need not
    be read. ``metadata`` None means no metadata table, ``compaction`` None no compaction, ``retention`` None neither
    cleaning nor archival. ``columns`` None means all columns, unchanged. ``groups``: the sources of a stitched table;
    none for any other table. ``cells``: of a table of cells; ``wide``: of a wide table that is derived from one.
    """

    path: str
    buckets: int
    key: tuple[str, ...] | None
    partition: PartitionSettings | None
    compression: Compression
    compression_level: int
    immutable_partition: bool
    hive_style: bool
    metadata: MetadataSettings | None = field(default_factory=MetadataSettings)
    compaction: CompactionSettings | None = None
    retention: RetentionSettings | None = None
    columns: ColumnsRule | None = None
    schema_changes: SchemaChangeSettings = field(default_factory=SchemaChangeSettings)
    merge: MergeRule = field(default_factory=MergeRule)
    conflicts: Conflicts = "queue"
    groups: tuple[GroupRule, ...] = ()
    kind: RowsKind = "upsert"
    type: TableType = "merge_on_read"
    change_log: ChangeLog | None = None
    index: IndexSettings = field(default_factory=IndexSettings)
    files: FileSizePolicy = field(default_factory=FileSizePolicy)
    clustering: ClusteringSettings = field(default_factory=ClusteringSettings)
    cells: CellsRule | None = None
    wide: WideRule | None = None
