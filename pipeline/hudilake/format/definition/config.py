"""What a table is: its key, order, partitioning, buckets, kind and merging, which ``hoodie.properties`` states.

A new table's definition is made of settings; whoever needs a part of it holds this value. In words of table version 9.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property

import pyarrow as pa

from hudilake.errors import ConfigError, CorruptDataError, UnsupportedError
from hudilake.format.definition.bucketing import Bucketing, PartitionBuckets, expressions_of, rules_of
from hudilake.format.definition.change_logs import CHANGE_LOG, change_log_of, check_same_change_log, with_change_log
from hudilake.format.definition.consistent import ConsistentBuckets, HashingMetadata
from hudilake.format.definition.keys import PartitionLayout
from hudilake.format.definition.kind import (
    BUCKET_ENGINE,
    COMMIT_TIME,
    INDEX,
    INDEX_TYPE,
    MERGE_MODE,
    TYPE,
    UNKNOWN,
    TableKind,
)
from hudilake.format.definition.merging import MERGING_PROPERTY, NEWEST, Merging
from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.definition.older import BASE_FORMAT, LAYOUT, META_FIELDS, PLAIN, in_words_of_9, refuse_unnamed
from hudilake.format.definition.properties import PROPERTIES_PATH, dump_properties, load_properties
from hudilake.format.definition.schema import check_names
from hudilake.format.definition.supported import check_changeable, check_readable
from hudilake.policies import ChangeLog
from hudilake.storage.base import FileInfo, Storage, StorageNotFoundError

PROPERTIES_BACKUP_PATH = ".hoodie/hoodie.properties.backup"
NUM_BUCKETS = "hoodie.bucket.index.num.buckets"
#: ``regex,count;regex,count``, with the rule ``regex``.
PARTITION_BUCKETS = "hoodie.bucket.index.partition.expressions"
_PARTITION_RULE = "hoodie.bucket.index.partition.rule.type"
CREATE_SCHEMA = "hoodie.table.create.schema"
ORDERING_FIELDS = "hoodie.table.ordering.fields"
#: Hudi's procedures on tables with buckets ask for it (measured: ``run_compaction``).
_KEY_OF_WRITERS = "hoodie.datasource.write.recordkey.field"

#: Properties of every table that binlake makes; the values are those of Hudi 1.2.0.
_FORMAT = {**PLAIN}
_CONSTANT = {
    "hoodie.table.initial.version": "9",
    "hoodie.archivelog.folder": "history",
    "hoodie.timeline.history.path": "history",
    "hoodie.timeline.path": "timeline",
    "hoodie.table.timeline.timezone": "UTC",
    "hoodie.datasource.write.drop.partition.columns": "false",
    CHANGE_LOG: "false",
    "hoodie.table.format": "native",
    "hoodie.partition.metafile.use.base.format": "false",
    "hoodie.table.multiple.base.file.formats.enable": "false",
}
#: What ``TableKind`` says.
_KIND = (TYPE, MERGE_MODE, INDEX_TYPE, BUCKET_ENGINE, INDEX)
_TYPED = {
    "hoodie.table.name",
    "hoodie.database.name",
    "hoodie.table.recordkey.fields",
    _KEY_OF_WRITERS,
    "hoodie.table.partition.fields",
    ORDERING_FIELDS,
    "hoodie.table.keygenerator.type",
    "hoodie.table.checksum",
    "hoodie.datasource.write.hive_style_partitioning",
    "hoodie.datasource.write.partitionpath.urlencode",
    "hoodie.table.metadata.partitions",
    "hoodie.bucket.index.hash.field",
    NUM_BUCKETS,
    PARTITION_BUCKETS,
    _PARTITION_RULE,
    *_KIND,
}
#: Typed properties that binlake derives from others; another writer may have other values.
DERIVED = (
    "hoodie.table.keygenerator.type",
    "hoodie.bucket.index.hash.field",
    PARTITION_BUCKETS,
    _PARTITION_RULE,
    ORDERING_FIELDS,
    *_KIND,
)


@dataclass(frozen=True)
class TableConfig:
    """The definition of a table: the typed part of ``hoodie.properties``; ``extra`` keeps every other property.

    ``record_key_fields`` is empty for an append table. ``bucket_count`` is 0 for a table without buckets, and for one
    whose properties lack it (one made by another writer). ``partition_buckets``: the bucket counts of partitions by
    regular expression; ``bucket_count`` is that of all others. ``ordering_field`` is "" for a table without one.
    ``index_fields``: the first of the record key fields, where the bucket is that of their values alone; empty where it
    is that of the whole key. ``rings``: with consistent hashing, the hashing metadata of partitions that are not as new
    ones are; it is not in ``hoodie.properties``.
    """

    name: str
    record_key_fields: tuple[str, ...]
    ordering_field: str
    bucket_count: int
    partition_fields: tuple[str, ...] = ()
    database: str = ""
    hive_style: bool = True
    url_encode: bool = True
    metadata_partitions: tuple[str, ...] = ()
    kind: TableKind = field(default_factory=TableKind)
    partition_buckets: tuple[tuple[str, int], ...] = ()
    index_fields: tuple[str, ...] = ()
    rings: Mapping[str, HashingMetadata] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def checksum(self) -> str:
        """CRC32 of ``<database>.<name>``, decimal (``HoodieTableConfig.generateChecksum``)."""
        return str(zlib.crc32(f"{self.database}.{self.name}".encode()))

    @property
    def timeline_layout(self) -> int:
        """The layout of its timeline: 1 for a table of version 6, else 2."""
        return int(self.extra.get(LAYOUT, PLAIN[LAYOUT]))

    @property
    def has_meta_fields(self) -> bool:
        """Whether its files have the meta fields, the record key among them."""
        return self.extra.get(META_FIELDS, "true") == "true"

    def refuse_older(self, what: str, parquet: bool = False) -> None:
        """Raise UnsupportedError as ``refuse_unnamed``; with ``parquet`` also for other base files than Parquet."""
        refuse_unnamed(self.extra, what, self.name, *([BASE_FORMAT] if parquet else []))

    @property
    def keygenerator_type(self) -> str:
        """The key generator that spells this table's keys and partition paths."""
        if not self.partition_fields:
            return "NON_PARTITION"
        single = len(self.partition_fields) == 1 and len(self.record_key_fields) <= 1
        return "SIMPLE" if single else "COMPLEX"

    @property
    def hash_fields(self) -> tuple[str, ...]:
        """The fields whose values decide the bucket of a row: all of the record key, or the first of them."""
        return self.index_fields or self.record_key_fields

    @property
    def has_buckets(self) -> bool:
        """Whether file groups are buckets; also of a table whose properties lack the bucket count."""
        return self.kind.computed or self.kind.index == UNKNOWN

    @cached_property
    def bucketing(self) -> Bucketing:
        """Where rows go by their keys; one bucket for a table without buckets."""
        return self.kind.placement.bucketing(max(self.bucket_count, 1), self.partition_buckets, self.rings)

    def with_bucketing(self, bucketing: Bucketing) -> TableConfig:
        """The same table with other buckets; itself if it has none."""
        if not self.has_buckets:
            return self
        if isinstance(bucketing, ConsistentBuckets):
            return replace(self, bucket_count=bucketing.number, rings=bucketing.partitions)
        if isinstance(bucketing, PartitionBuckets):
            return replace(self, bucket_count=bucketing.default, partition_buckets=bucketing.rules)
        return replace(self, bucket_count=bucketing.count(""), partition_buckets=())

    @cached_property
    def layout(self) -> PartitionLayout:
        """How its partition paths are spelled."""
        return PartitionLayout(self.partition_fields, self.hive_style, self.url_encode)

    @cached_property
    def merging(self) -> Merging:
        """How its writer merges. Raises CorruptDataError for a property that binlake cannot read."""
        text = self.extra.get(MERGING_PROPERTY)
        return NEWEST if text is None else Merging.parse(text, self.name)

    def with_merging(self, merging: Merging) -> TableConfig:
        """The same table with other merging."""
        stated = merging.to_json()
        if stated == self.extra.get(MERGING_PROPERTY):
            return self
        extra = {key: value for key, value in self.extra.items() if key != MERGING_PROPERTY}
        return replace(self, extra=extra if stated is None else {**extra, MERGING_PROPERTY: stated})

    @property
    def change_log(self) -> ChangeLog | None:
        """What its commits keep of each changed row (``change_logs``)."""
        return change_log_of(self.extra)

    def with_change_log(self, mode: ChangeLog | None) -> TableConfig:
        """The same table with change logs of that mode; itself for None."""
        return replace(self, extra=with_change_log(self.extra, mode))

    @property
    def is_ours(self) -> bool:
        """Whether the properties say all that a writer needs to know of the index."""
        return self.kind.index != UNKNOWN and (self.bucket_count > 0 or not self.kind.computed)

    def properties(self) -> dict[str, str]:
        """Every property of the table, in the order they are written."""
        values = {
            "hoodie.table.name": self.name,
            "hoodie.database.name": self.database,
            **_FORMAT,
            **(self.kind if self.is_ours else replace(self.kind, index=UNKNOWN)).properties(),
            "hoodie.table.recordkey.fields": ",".join(self.record_key_fields),
            _KEY_OF_WRITERS: ",".join(self.record_key_fields) if self.is_ours and self.kind.computed else "",
            "hoodie.table.partition.fields": ",".join(self.partition_fields),
            ORDERING_FIELDS: self.ordering_field,
            "hoodie.table.keygenerator.type": self.keygenerator_type,
            "hoodie.datasource.write.hive_style_partitioning": _flag(self.hive_style),
            "hoodie.datasource.write.partitionpath.urlencode": _flag(self.url_encode),
            "hoodie.bucket.index.hash.field": ",".join(self.hash_fields) if self.has_buckets else "",
            NUM_BUCKETS: str(self.bucket_count) if self.bucket_count else "",
            PARTITION_BUCKETS: expressions_of(self.partition_buckets),
            _PARTITION_RULE: "regex" if self.partition_buckets else "",
            "hoodie.table.metadata.partitions": ",".join(sorted(self.metadata_partitions)),
            **(_CONSTANT if self.is_ours else {}),
            **self.extra,
            "hoodie.table.checksum": self.checksum,
        }
        return {key: value for key, value in values.items() if value != "" or key in self.extra}

    def to_properties(self) -> bytes:
        """The bytes of ``hoodie.properties``."""
        return dump_properties(self.properties(), "Updated by binlake")

    @classmethod
    def from_properties(cls, data: bytes) -> TableConfig:
        """Read ``hoodie.properties``: every door to a table comes through here.

        Raises UnsupportedError for properties that binlake does not support (``supported``), CorruptDataError for a
        file that lacks some, or with a checksum of another name.
        """
        values = in_words_of_9(load_properties(data))
        if "hoodie.table.name" not in values:
            raise CorruptDataError(
                "hoodie.properties names no table",
                do_next="restore it from its backup or a copy",
                path=PROPERTIES_PATH,
            )
        check_readable(values)
        kind = TableKind.of_properties(values)
        config = cls(
            name=values["hoodie.table.name"],
            database=values.get("hoodie.database.name", ""),
            record_key_fields=_names(values.get("hoodie.table.recordkey.fields")),
            partition_fields=_names(values.get("hoodie.table.partition.fields")),
            ordering_field=_ordering_field(values, kind),
            bucket_count=int(values.get(NUM_BUCKETS) or 0),
            hive_style=values.get("hoodie.datasource.write.hive_style_partitioning") == "true",
            url_encode=values.get("hoodie.datasource.write.partitionpath.urlencode") == "true",
            metadata_partitions=tuple(sorted(_names(values.get("hoodie.table.metadata.partitions")))),
            kind=kind,
            partition_buckets=rules_of(values.get(PARTITION_BUCKETS)),
            extra={k: v for k, v in values.items() if k not in _TYPED},
        )
        config = replace(config, index_fields=config._index_fields(values))
        config = replace(config, extra={**config.extra, **config._foreign_values(values)})
        if values.get("hoodie.table.checksum", config.checksum) != config.checksum:
            raise CorruptDataError(
                "hoodie.properties has a wrong checksum",
                do_next="restore it from its backup or a copy",
                path=PROPERTIES_PATH,
            )
        return config

    def _index_fields(self, values: Mapping[str, str]) -> tuple[str, ...]:
        """The fields that are hashed, where they are the first of the record key and not all of it."""
        named, key = _names(values.get("hoodie.bucket.index.hash.field")), self.record_key_fields
        return named if self.has_buckets and len(named) < len(key) and named == key[: len(named)] else ()

    def _foreign_values(self, values: Mapping[str, str]) -> dict[str, str]:
        """Properties of keys and buckets by another writer that the typed fields lack: a rewrite must keep them."""
        ours = self.properties()
        return {key: values[key] for key in DERIVED if key in values and values[key] != ours.get(key)}

    def with_metadata_partitions(self, partitions: tuple[str, ...]) -> TableConfig:
        """The same table with other metadata table partitions listed."""
        return replace(self, metadata_partitions=tuple(sorted(partitions)))

    @property
    def kept_partitions(self) -> set[MetadataPartition]:
        """The metadata partitions that binlake's commits keep current in a table of this kind."""
        without = set() if self.kind.record_index is not None else {MetadataPartition.RECORD_INDEX}
        return set(MetadataPartition) - without

    def restated_hours(self, hours: float) -> float:
        """How long a compaction restates deletes, so that older rows that come late do not return; 0 where they are
        kept beside the files. ``hours``: as the settings say."""
        return hours if self.kind.placement.restates_deletes and not self.merging.by_writer else 0

    def check_writable(self) -> None:
        """Raise UnsupportedError for a table that binlake cannot write to: another merge mode or spelling of keys, or
        an index that its commits would not update."""
        self.check_changeable()
        properties = self.properties()
        for key, value in self._written().items():
            if properties.get(key, value).removesuffix("_AVRO") != value:
                raise UnsupportedError(
                    f"{key} is {properties[key]}, binlake writes {value} only",
                    do_next="write to a table that has this value, or make a new table with binlake",
                    table=self.name,
                )
        if foreign := sorted(set(self.metadata_partitions) - self.kept_partitions):
            raise UnsupportedError(
                f"the table has metadata partitions that binlake cannot keep current: {', '.join(foreign)}",
                do_next="drop those indexes with Hudi, or stop writing to the table",
                table=self.name,
            )
        if not self.is_ours:
            raise UnsupportedError(
                f"the table's properties lack its bucket count ({NUM_BUCKETS})",
                do_next="write to a table whose properties have it, or make a new table with binlake",
                table=self.name,
            )

    def check_changeable(self) -> None:
        """Raise UnsupportedError for a table that neither commits nor repairs of binlake may change."""
        check_changeable(self.properties())

    def _written(self) -> dict[str, str]:
        """What the properties must say for this table's rows to be where binlake looks for them."""
        values = {**self.kind.properties(), "hoodie.table.keygenerator.type": self.keygenerator_type}
        if self.kind.computed:
            values["hoodie.bucket.index.hash.field"] = ",".join(self.hash_fields)
        return values

    def check_columns(self, schema: pa.Schema) -> None:
        """Raise ConfigError or UnsupportedError for columns that a table of this configuration cannot have."""
        names = set(schema.names)
        needed = {*self.record_key_fields, *self.partition_fields, self.ordering_field} - {""}
        if missing := sorted(needed - names):
            raise ConfigError(
                f"the table's keys, partitions or ordering name columns {missing}, which its schema lacks",
                do_next="correct the column names in the settings",
                table=self.name,
            )
        check_names(schema, self.name)

    def check_same_identity(self, other: TableConfig) -> None:
        """Raise ConfigError if the other config (settings, or the current file) would put rows into other files."""
        free = {"metadata_partitions", "rings", "extra"}
        other = other.with_index_of(self)
        for item in fields(self):
            expected, actual = getattr(self, item.name), getattr(other, item.name)
            if item.name not in free and expected != actual:
                raise ConfigError(
                    f"{item.name} is {actual!r} where {expected!r} was expected: rows would go to wrong file groups",
                    do_next="restore the old value, or rebuild the table under a new path",
                    table=self.name,
                    path=PROPERTIES_PATH,
                )
        check_same_change_log(self.extra, other.extra, self.name)

    def with_index_of(self, expected: TableConfig) -> TableConfig:
        """The same table with the index of another configuration (``TableKind.with_index_of``)."""
        return replace(self, kind=self.kind.with_index_of(expected.kind))


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _ordering_field(values: Mapping[str, str], kind: TableKind) -> str:
    """The column that orders rows of one key; "" where the later commit always wins, whatever column is named."""
    if values[MERGE_MODE] == COMMIT_TIME and not kind.appends:
        return ""
    return values.get(ORDERING_FIELDS, "")


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def load_config(storage: Storage) -> tuple[TableConfig, FileInfo | None]:
    """``hoodie.properties``, or its backup while another writer is changing it; and the file's size and time.

    Raises ConfigError if there is no table, UnsupportedError, CorruptDataError, StorageError.
    """
    for path in (PROPERTIES_PATH, PROPERTIES_BACKUP_PATH):
        properties = storage.stat(path)
        try:
            data = storage.read(path)
        except StorageNotFoundError:
            continue
        try:
            return TableConfig.from_properties(data), properties if path == PROPERTIES_PATH else None
        except CorruptDataError:
            if path == PROPERTIES_BACKUP_PATH or storage.stat(PROPERTIES_BACKUP_PATH) is None:
                raise
    raise ConfigError("there is no Hudi table at this path", do_next="check the path", path=storage.uri)
