"""What binlake supports of a table's properties: the one list by which every table is opened.

A property of ``hoodie.properties`` may change what every file of the table means. So a value that is not in the list,
and a name that is not in it, is an error that names both, before a data file is read or anything is changed. The list
has every property that Hudi 1.2.0 writes there (``HoodieTableConfig``) and binlake's own.

Some tables can be read and not written to: a commit, or a repair, would have to keep something that binlake does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from hudilake.errors import CorruptDataError, UnsupportedError
from hudilake.format.definition.change_logs import CHANGE_LOG, CHANGE_LOG_MODE, unwritten_change_logs
from hudilake.format.definition.kind import (
    BUCKET_ENGINE,
    COMMIT_TIME,
    EVENT_TIME,
    INDEX,
    INDEX_TYPE,
    MERGE_MODE,
    TYPE,
    stated_indexes,
)
from hudilake.format.definition.older import LAYOUT, LAYOUTS, VERSION

_PATH: Final = ".hoodie/hoodie.properties"
_NAME: Final = "hoodie.table.name"
_GENERATOR: Final = "hoodie.table.keygenerator.type"
_GENERATOR_CLASS: Final = "hoodie.table.keygenerator.class"
_ORDERING: Final = "hoodie.table.ordering.fields"
_PRECOMBINE: Final = "hoodie.table.precombine.field"
_RECORD_KEY: Final = "hoodie.table.recordkey.fields"
_PARTITIONS: Final = "hoodie.table.partition.fields"
_KEY_OF_WRITERS: Final = "hoodie.datasource.write.recordkey.field"
_RULES: Final = "hoodie.bucket.index.partition.expressions"
_BUCKETS: Final = "hoodie.bucket.index.num.buckets"


@dataclass(frozen=True, slots=True)
class _Values:
    """The values of a property: with ``read`` a table is read, with ``write`` it is also changed; None for any value.

    ``needed``: whether a table without the property cannot be understood.
    """

    read: tuple[str, ...] | None = None
    write: tuple[str, ...] | None = None
    needed: bool = False


def _only(*values: str, needed: bool = False) -> _Values:
    return _Values(values, values, needed)


def _read_only(*values: str, write: tuple[str, ...], needed: bool = False) -> _Values:
    return _Values((*write, *values), write, needed)


_ANY = _Values()
_FLAG = _only("true", "false")
_PLAIN: Final = ("SIMPLE", "SIMPLE_AVRO", "COMPLEX", "COMPLEX_AVRO", "NON_PARTITION", "NON_PARTITION_AVRO")
_FORMATTED: Final = ("TIMESTAMP", "TIMESTAMP_AVRO", "CUSTOM", "CUSTOM_AVRO")
#: Of paths that a key generator formats from times.
_TIMES: Final = (
    "timestamp.type",
    "timestamp.scalar.time.unit",
    "input.dateformat",
    "input.dateformat.list.delimiter.regex",
    "input.timezone",
    "output.dateformat",
    "output.timezone",
    "timezone",
)
_INDEX_TYPES: Final = (
    "INMEMORY",
    "BLOOM",
    "GLOBAL_BLOOM",
    "SIMPLE",
    "GLOBAL_SIMPLE",
    "BUCKET",
    "FLINK_STATE",
    "RECORD_INDEX",
    "GLOBAL_RECORD_LEVEL_INDEX",
    "RECORD_LEVEL_INDEX",
)

_SUPPORTED: Final[Mapping[str, _Values]] = {
    # How files and timeline are laid out.
    VERSION: _read_only("8", "6", write=("9",), needed=True),
    LAYOUT: _read_only("1", write=("2",), needed=True),
    "hoodie.table.initial.version": _ANY,
    TYPE: _only("COPY_ON_WRITE", "MERGE_ON_READ", needed=True),
    "hoodie.table.format": _only("native"),
    "hoodie.table.base.file.format": _read_only("LANCE", write=("PARQUET",)),
    "hoodie.table.ro.file.format": _only("PARQUET"),
    "hoodie.table.log.file.format": _only("HOODIE_LOG"),
    "hoodie.table.rt.file.format": _only("HOODIE_LOG"),
    "hoodie.table.multiple.base.file.formats.enable": _only("false"),
    "hoodie.table.features": _only(""),
    "hoodie.timeline.path": _only("timeline"),
    "hoodie.timeline.history.path": _only("history"),
    "hoodie.archivelog.folder": _ANY,  # of tables before version 8
    "hoodie.table.timeline.timezone": _only("UTC", "LOCAL"),
    "hoodie.populate.meta.fields": _read_only("false", write=("true",)),
    "hoodie.bootstrap.base.path": _only(""),
    "hoodie.bootstrap.index.enable": _ANY,  # it says nothing without a base path, nor do the next two
    "hoodie.bootstrap.index.class": _ANY,
    "hoodie.bootstrap.index.type": _ANY,
    # How rows of one key are merged.
    MERGE_MODE: _only(EVENT_TIME, COMMIT_TIME, needed=True),
    "hoodie.record.merge.strategy.id": _ANY,  # these three must fit the merge mode
    "hoodie.compaction.record.merger.strategy": _ANY,
    "hoodie.compaction.payload.class": _ANY,
    "hoodie.table.legacy.payload.class": _ANY,  # of a table before version 9; the merge mode replaced it
    "hoodie.table.partial.update.mode": _only(""),
    _RECORD_KEY: _ANY,
    _KEY_OF_WRITERS: _ANY,  # it must be the same
    _ORDERING: _ANY,
    _PRECOMBINE: _ANY,  # another name of the ordering fields
    CHANGE_LOG: _FLAG,  # which tables have it, and in which modes: change_logs
    CHANGE_LOG_MODE: _ANY,
    # Keys and partition paths.
    _GENERATOR: _Values((*_PLAIN, *_FORMATTED), _PLAIN, needed=True),
    _GENERATOR_CLASS: _ANY,  # it must fit the type
    _PARTITIONS: _ANY,
    "hoodie.datasource.write.hive_style_partitioning": _FLAG,
    "hoodie.datasource.write.partitionpath.urlencode": _FLAG,
    "hoodie.datasource.write.slash.separated.date.partitioning": _read_only("true", write=("false",)),
    "hoodie.datasource.write.drop.partition.columns": _only("false"),
    "hoodie.partition.metafile.use.base.format": _only("false"),
    **{f"hoodie.keygen.timebased.{name}": _Values(None, ()) for name in _TIMES},
    "hoodie.keygen.datetime.parser.class": _Values(None, ()),
    # Indexes.
    INDEX_TYPE: _only(*_INDEX_TYPES),
    BUCKET_ENGINE: _only("SIMPLE", "CONSISTENT_HASHING"),
    _BUCKETS: _ANY,
    "hoodie.bucket.index.hash.field": _ANY,
    _RULES: _ANY,
    "hoodie.bucket.index.partition.rule.type": _only("", "regex"),
    "hoodie.table.metadata.partitions": _ANY,
    "hoodie.table.metadata.partitions.inflight": _Values(None, ("",)),
    "hoodie.table.index.defs.path": _only("", ".hoodie/.index_defs/index.json"),
    "hoodie.table.secondary.indexes.metadata": _Values(None, ("",)),
    # Names, and what only other programs use.
    _NAME: _ANY,
    "hoodie.database.name": _ANY,
    "hoodie.table.checksum": _ANY,
    "hoodie.table.create.schema": _ANY,
    "hoodie.table.partition_extractor_class": _ANY,
    # binlake's own.
    INDEX: _only(*stated_indexes()),
    "binlake.merging": _ANY,
    "binlake.recordkey.first": _ANY,
    "binlake.recordkey.since": _ANY,
    "binlake.buckets.history": _ANY,
}
#: Names that may say what files mean. Hudi's other names are settings of its writers and services, which a user may
#: have put into the file: reading does not depend on them, what writers must do may.
_MEANING: Final = (
    "binlake.",
    "hoodie.archivelog.",
    "hoodie.base.",
    "hoodie.bootstrap.",
    "hoodie.compaction.",
    "hoodie.database.",
    "hoodie.datasource.write.",
    "hoodie.keygen.",
    "hoodie.log.",
    "hoodie.partition.",
    "hoodie.populate.",
    "hoodie.properties.",
    "hoodie.record.",
    "hoodie.table.",
    "hoodie.timeline.",
)
#: What says that buckets are the nodes of a hash ring.
_RING: Final = {BUCKET_ENGINE: "CONSISTENT_HASHING", INDEX: "consistent_bucket"}
_MODEL: Final = "org.apache.hudi.common.model."
#: Merge mode -> the strategies and payload classes that mean the same.
_MERGES: Final[Mapping[str, tuple[str, ...]]] = {
    EVENT_TIME: (
        "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
        f"{_MODEL}DefaultHoodieRecordPayload",
        f"{_MODEL}EventTimeAvroPayload",
    ),
    COMMIT_TIME: ("ce9acb64-bde0-424c-9b91-f6ebba25356d", f"{_MODEL}OverwriteWithLatestAvroPayload"),
}
_OF_MODE: Final = (
    "hoodie.record.merge.strategy.id",
    "hoodie.compaction.record.merger.strategy",
    "hoodie.compaction.payload.class",
)
_GENERATORS: Final[Mapping[str, str]] = {
    "SIMPLE": "Simple",
    "COMPLEX": "Complex",
    "NON_PARTITION": "Nonpartitioned",
    "TIMESTAMP": "TimestampBased",
    "CUSTOM": "Custom",
}
#: File ids have eight digits for the bucket.
_COUNT: Final = re.compile(r"[1-9][0-9]{0,7}")


def check_readable(values: Mapping[str, str]) -> None:
    """Raise for properties by which binlake cannot read a table: UnsupportedError, which names the property and its
    value, or CorruptDataError for one that is missing. ``values``: in the words of version 9 (``older``)."""
    for name, known in _SUPPORTED.items():  # the version first: it says what the others mean
        if name in values and known.read is not None and values[name] not in known.read:
            raise _refused(values, name, f"it reads tables where this is {_one_of(known.read)}")
    for name in values:
        if name not in _SUPPORTED and name.lower().startswith(_MEANING):
            raise _refused(values, name, "it does not know what this property means")
    for name, known in _SUPPORTED.items():
        if known.needed and name not in values:
            raise CorruptDataError(
                f"hoodie.properties lacks {name}",
                do_next="restore it from its backup or a copy",
                table=values.get(_NAME),
                path=_PATH,
            )
    if values[LAYOUT] != LAYOUTS[values[VERSION]]:
        raise _refused(values, LAYOUT, f"{VERSION} is {values[VERSION]}")
    for name, why in (*_merging(values), *_keys(values), *_buckets(values)):
        raise _refused(values, name, why)


def check_changeable(values: Mapping[str, str]) -> None:
    """Raise UnsupportedError for properties of a table that binlake reads and must not change, be it by a commit or by
    a repair."""
    for name, value in values.items():
        known = _SUPPORTED.get(name)
        if known is None and name.lower().startswith("hoodie."):
            raise _refused(values, name, "it does not know what this property asks of a writer")
        if known is not None and known.write is not None and value not in known.write:
            raise _refused(values, name, f"it changes only tables where this is {_one_of(known.write)}")
    for name, why in unwritten_change_logs(values):
        raise _refused(values, name, why)


def _merging(values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Names of properties that contradict the merge mode, each with the reason."""
    mode, ordering = values[MERGE_MODE], values.get(_ORDERING, "")
    for name in _OF_MODE:
        if values.get(name, "") not in ("", *_MERGES[mode]):
            yield name, f"{MERGE_MODE} is {mode}"
    if mode == EVENT_TIME and (not ordering or ordering.strip() != ordering or "," in ordering):
        yield _ORDERING, f"{mode} needs one field"
    if values.get(_PRECOMBINE, ordering) != ordering:
        yield _PRECOMBINE, f"{_ORDERING} is {ordering or 'not set'}"


def _keys(values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    name = _GENERATORS[values[_GENERATOR].removesuffix("_AVRO")]
    classes = [f"org.apache.hudi.keygen.{name}{avro}KeyGenerator" for avro in ("", "Avro")]
    fields = [values.get(field, "").count(",") for field in (_PARTITIONS, _RECORD_KEY)]
    if name == "Simple" and any(fields):
        yield _GENERATOR, f"{_PARTITIONS} and {_RECORD_KEY} have several fields"
    if name == "Nonpartitioned" and values.get(_PARTITIONS):
        yield _GENERATOR, f"{_PARTITIONS} is {values[_PARTITIONS]}"
    if values.get(_KEY_OF_WRITERS, values.get(_RECORD_KEY)) != values.get(_RECORD_KEY):
        yield _KEY_OF_WRITERS, f"{_RECORD_KEY} is {values.get(_RECORD_KEY, 'not set')}"
    if values.get(_GENERATOR_CLASS, "") not in ("", *classes):
        yield _GENERATOR_CLASS, f"{_GENERATOR} is {values[_GENERATOR]}"


def _buckets(values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    index = values.get(INDEX, "")
    stated = stated_indexes().get(index, {})
    if any(values.get(name, said) != said for name, said in stated.items()) or (
        index == "none" and INDEX_TYPE in values
    ):
        yield INDEX, f"{INDEX_TYPE} and {BUCKET_ENGINE} state another index"
    hashes = [name for name, value in _RING.items() if values.get(name) == value]
    if values[TYPE] == "COPY_ON_WRITE" and hashes:
        yield hashes[0], f"Hudi has no hash rings where {TYPE} is COPY_ON_WRITE"
    if hashes and not values.get(_BUCKETS):
        yield hashes[0], f"{_BUCKETS} is not set"
    if values.get(_BUCKETS) and not _COUNT.fullmatch(values[_BUCKETS]):
        yield _BUCKETS, "it is no number of buckets"
    if values.get(_RULES) and not _are_rules(values[_RULES]):
        yield _RULES, "these are no regular expressions with numbers of buckets"


def _are_rules(text: str) -> bool:
    for part in text.split(";"):
        rule, _, count = part.rpartition(",")
        if not rule or not _COUNT.fullmatch(count.strip()):
            return False
        try:
            re.compile(rule)
        except re.error:
            return False
    return True


def _one_of(values: tuple[str, ...]) -> str:
    return " or ".join(value or "empty" for value in values) or "not set"


def _refused(values: Mapping[str, str], name: str, why: str) -> UnsupportedError:
    value = values.get(name, "")
    return UnsupportedError(
        f"{name} is {value[:200] or 'not set'}, which binlake does not support: {why}",
        do_next="use Hudi for this table, or the binlake version that wrote it",
        table=values.get(_NAME),
        path=_PATH,
    )
