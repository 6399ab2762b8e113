"""The changes of a table as a Python data source of Spark 4, for streams and for single reads.

::

    from binlake.stream.spark.changes_source import register_changes
    register_changes(spark)
    changes = spark.readStream.format("binlake_changes").option("since", "earliest").load("s3://lake/shop/orders")

Offsets are positions of the table's feed between two commits, so a stream goes on where its checkpoint stands. Spark
asks for them in a Python process beside the driver, which reads the timeline alone; rows are read by tasks.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from hudilake.errors import ConfigError, UnsupportedError
from hudilake.query.changes.position import ChangePosition
from hudilake.query.changes.shares import ChangePlanner, ChangeShare
from hudilake.read import instant_of
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable

try:
    from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
except ImportError:  # Spark 3.5: ``register_changes`` says so
    DataSource = DataSourceReader = DataSourceStreamReader = InputPartition = object
try:  # since Spark 4.2 a source knows where a batch starts, so that it can bound it
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles, SupportsTriggerAvailableNow
except ImportError:
    ReadAllAvailable = ReadMaxFiles = None
    SupportsTriggerAvailableNow = type("SupportsTriggerAvailableNow", (), {})

NAME: Final = "binlake_changes"
#: Before the name of each option of the store.
_STORE: Final = "storage."


def register_changes(spark: SparkSession) -> None:
    """Let a session read changes by ``format("binlake_changes")``. Its workers must be able to import binlake and reach
    the store. Raises UnsupportedError on Spark 3.5, which has no data sources in Python."""
    if DataSource is object:
        raise UnsupportedError(
            "Spark has data sources in Python since 4.0, so this one cannot give the changes of a table",
            do_next="install a pyspark of 4.0 to 4.3, or read them without Spark: Table.changes, binlake changes",
            spark=spark.version,
        )
    spark.dataSource.register(ChangesSource)  # type: ignore[attr-defined] # Spark 3.5 has none


@dataclass(frozen=True)
class ChangeOptions:
    """What the options of a read say. ``store``: options of the store."""

    uri: str
    since: str
    until: str | None
    columns: tuple[str, ...] | None
    most_commits: int | None
    most_partitions: int
    store: Mapping[str, str]

    @classmethod
    def of(cls, options: Mapping[str, str]) -> ChangeOptions:
        """Raises ConfigError for options that are missing, unknown or no such values."""
        given = {name.lower(): text for name, text in options.items()}
        store = {name.removeprefix(_STORE): given.pop(name) for name in list(given) if name.startswith(_STORE)}
        columns = given.pop("columns", None)
        read = cls(
            uri=given.pop("path", ""),
            since=given.pop("since", ""),
            until=None if (until := given.pop("until", None)) is None else instant_of(until),
            columns=None if columns is None else tuple(name.strip() for name in columns.split(",")),
            most_commits=_count("maxCommitsPerTrigger", given.pop("maxcommitspertrigger", None)),
            most_partitions=_count("maxPartitions", given.pop("maxpartitions", None)) or 64,
            store=store,
        )
        if given:
            known = f"since, until, columns, maxCommitsPerTrigger, maxPartitions, {_STORE}NAME"
            raise ConfigError(f"{NAME} has no option {min(given)}", do_next=f"its options are {known}")
        if not read.uri:
            raise ConfigError("no table is named", do_next="give its path or URI to load(...)")
        if not read.since:
            raise ConfigError(
                "no begin is given", do_next='give option("since", "earliest"), or a moment', table=read.uri
            )
        return read

    def open(self) -> HudiTable:
        """The table. Raises UnsupportedError for one of another version, CorruptDataError, StorageError."""
        return HudiTable.open(open_storage(self.uri, self.store))

    def planner(self) -> ChangePlanner:
        """The planner of the table's changes. Raises as ``open`` and ``ChangePlanner``."""
        return ChangePlanner(self.open(), self.columns)


def _count(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise ConfigError(f"{name} is a number, at least 1, and not {text!r}", do_next="correct the option")
    return int(text)


class ChangesSource(DataSource):  # type: ignore[misc]
    """The data source by the name under which it is registered."""

    @classmethod
    def name(cls) -> str:
        """Its name for ``format``."""
        return NAME

    def schema(self) -> StructType:
        """The columns of a change. Raises UnsupportedError for column types that Spark does not have."""
        return _spark_schema(ChangeOptions.of(self.options).planner())

    def reader(self, schema: StructType) -> ChangesReader:
        """What Spark asks for a single read."""
        options = ChangeOptions.of(self.options)
        if options.most_commits is not None:
            why = "maxCommitsPerTrigger bounds the batches of a stream, and this is a single read"
            raise ConfigError(why, do_next="leave it out, or give until", table=options.uri)
        return ChangesReader(options, schema)

    def streamReader(self, schema: StructType) -> ChangesStream:
        """What Spark asks for a stream."""
        return ChangesStream(ChangeOptions.of(self.options), schema)


@dataclass
class SharePartition(InputPartition):  # type: ignore[misc]
    """What one task reads."""

    share: ChangeShare
    columns: tuple[str, ...]


class ChangeTasks:
    """Partitions planned, and read by tasks: of a stream's batches and of single reads. It is pickled for the tasks.

    Args:
        options: of the read.
        schema: the columns that Spark takes.
    """

    def __init__(self, options: ChangeOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._kept: ChangePlanner | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_kept": None}

    def planner(self) -> ChangePlanner:
        """The planner of this process. Raises UnsupportedError for other columns than Spark takes, and as
        ``ChangeOptions.planner``."""
        if self._kept is None:
            planner = self._options.planner()
            if _spark_schema(planner) != self._schema:
                raise UnsupportedError(
                    "the columns of this DataFrame are not those of the table now",
                    do_next="make it anew without schema(...); a stream goes on at its checkpoint",
                    table=self._options.uri,
                )
            self._kept = planner
        return self._kept

    def planned(self, start: ChangePosition, end: ChangePosition) -> list[SharePartition]:
        """The partitions between two positions. Errors as ``planner`` and ``ChangePlanner.shares``."""
        planner = self.planner()
        columns = tuple(planner.columns)
        return [SharePartition(share, columns) for share in planner.shares(start, end, self._options.most_partitions)]

    def read(self, partition: object) -> Iterator[pa.RecordBatch]:
        """The changes of a partition; a task calls it. Errors as ``ChangeShare.read``."""
        if not isinstance(partition, SharePartition):
            return  # Spark's own, where there is none
        schema = _arrow_schema(self._schema)
        for batch in partition.share.read(self._options.open(), partition.columns):
            yield batch.cast(schema)


class ChangesReader(DataSourceReader):  # type: ignore[misc]
    """A single read: from ``since`` to ``until`` or now."""

    def __init__(self, options: ChangeOptions, schema: StructType) -> None:
        self._options = options
        self._tasks = ChangeTasks(options, schema)

    def partitions(self) -> list[SharePartition]:
        """The partitions. Spark plans a DataFrame when it first runs, and keeps its plan."""
        planner = self._tasks.planner()
        start = planner.begin(self._options.since)
        return self._tasks.planned(start, planner.latest(start, until=self._options.until))

    def read(self, partition: object) -> Iterator[pa.RecordBatch]:
        """The changes of a partition; a task calls it."""
        return self._tasks.read(partition)


class ChangesStream(SupportsTriggerAvailableNow, DataSourceStreamReader):  # type: ignore[misc]
    """Batches of a stream. An offset has the fields of a position between two commits."""

    def __init__(self, options: ChangeOptions, schema: StructType) -> None:
        self._options = options
        self._tasks = ChangeTasks(options, schema)
        self._last: str | None = None

    def _planner(self) -> ChangePlanner:
        """Checks the options, too: Spark hides an error that is raised before there is a reader."""
        if self._options.until is not None:
            raise ConfigError(
                "a stream has no end, so until means nothing",
                do_next="leave it out; trigger(availableNow=True) ends a stream",
                table=self._options.uri,
            )
        if self._options.most_commits is not None and ReadMaxFiles is None:
            raise UnsupportedError(
                "a batch cannot be bounded: only since Spark 4.2 does a data source in Python know where it starts",
                do_next="leave out maxCommitsPerTrigger, or install Spark 4.2",
                table=self._options.uri,
            )
        return self._tasks.planner()

    def initialOffset(self) -> dict[str, str]:
        """Where a query without a checkpoint begins."""
        return _offset(self._planner().begin(self._options.since))

    def getDefaultReadLimit(self) -> Any:  # noqa: ANN401 - Spark's limit
        """The most commits of a batch, in the one of Spark's limits that comes nearest."""
        most = self._options.most_commits
        return ReadAllAvailable() if most is None else ReadMaxFiles(most)

    def prepareForTriggerAvailableNow(self) -> None:
        """Commits that complete from now on are not for this run."""
        self._last = self._planner().latest(None).completed

    def latestOffset(self, start: Mapping[str, str] | None = None, limit: Any = None) -> dict[str, str]:  # noqa: ANN401
        """The end of the next batch. Spark 4.0 and 4.1 give no start."""
        most = limit.max_files if ReadMaxFiles is not None and isinstance(limit, ReadMaxFiles) else None
        begin = None if start is None else _position(start)
        return _offset(self._planner().latest(begin, most, self._last))

    def reportLatestOffset(self) -> dict[str, str]:
        """The end of the table, for the query's progress."""
        return _offset(self._planner().latest(None))

    def partitions(self, start: Mapping[str, str], end: Mapping[str, str]) -> Sequence[SharePartition]:
        """The partitions of a batch."""
        return self._tasks.planned(_position(start), _position(end))

    def read(self, partition: object) -> Iterator[pa.RecordBatch]:
        """The changes of a partition; a task calls it."""
        return self._tasks.read(partition)


def _offset(position: ChangePosition) -> dict[str, str]:
    return {name: text for name, text in asdict(position).items() if text is not None}


def _position(offset: Mapping[str, str]) -> ChangePosition:
    return ChangePosition.from_json(json.dumps(dict(offset)))


def _spark_schema(planner: ChangePlanner) -> StructType:
    sides = pa.struct([one.with_nullable(True) for one in planner.schema.field("after").type])
    schema = pa.schema(
        [pa.field(one.name, sides if pa.types.is_struct(one.type) else one.type) for one in planner.schema]
    )
    try:
        return from_arrow_schema(schema, prefer_timestamp_ntz=True)
    except TypeError as error:
        raise UnsupportedError(f"Spark has no such column type: {error}", do_next="leave the column out") from error


def _arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow types that Spark takes of a data source, which are not to differ in anything."""
    zone = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
    return to_arrow_schema(schema, **zone)
