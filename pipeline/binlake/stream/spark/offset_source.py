"""A Python data source of Spark 4 that plans a stream's batches and brings no records: tasks fetch by themselves.

Spark runs it in a Python process beside the driver, for as long as the query lives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NoReturn

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from binlake.source.offsets import Offsets
from binlake.source.planner import OffsetPlanner, PlannedTopics

_NAME = "binlake_offsets"
#: Spark hides options by their names (``session.REDACTED``): this one has the client's properties.
_OPTION = "planned_secret"


def offset_frame(spark: SparkSession, planned: PlannedTopics) -> DataFrame:
    """A stream without rows whose offsets are those of Kafka, in the JSON form of ``Offsets``."""
    spark.dataSource.register(OffsetSource)  # type: ignore[attr-defined] # Spark 3.5 has none
    return spark.readStream.format(_NAME).option(_OPTION, planned.to_text()).load()


class OffsetSource(DataSource):  # type: ignore[misc]
    """The data source by the name under which it is registered."""

    @classmethod
    def name(cls) -> str:
        """Its name for ``format``."""
        return _NAME

    def schema(self) -> str:
        """The column that no row has."""
        return "offset bigint"

    def streamReader(self, schema: StructType) -> OffsetReader:
        """What Spark asks for offsets."""
        return OffsetReader(PlannedTopics.from_text(self.options[_OPTION]))


class OffsetReader(DataSourceStreamReader):  # type: ignore[misc]
    """Answers of the planner in Spark's terms."""

    def __init__(self, planned: PlannedTopics) -> None:
        self._planned = planned
        self._planner = OffsetPlanner(planned)

    def __reduce__(self) -> tuple[type[OffsetReader], tuple[PlannedTopics]]:
        """Spark pickles a reader for its tasks: without the client's properties, as no task asks Kafka by it."""
        return OffsetReader, (replace(self._planned, config={}),)

    def initialOffset(self) -> dict[str, dict[int, int]]:
        """Where a query without a checkpoint begins."""
        return self._planned.position.to_json()

    def latestOffset(self) -> dict[str, dict[int, int]]:
        """The end of the next batch. Spark 4.0 gives no start and no limit, so the planner keeps both."""
        return self._planner.next_end().to_json()

    def partitions(self, start: dict[str, dict[str, int]], end: dict[str, dict[str, int]]) -> Sequence[InputPartition]:
        """None: no record comes this way."""
        self._planner.passed(Offsets.from_json(end))
        return []

    def read(self, partition: InputPartition) -> Iterator[NoReturn]:
        """Not called, because there is no partition."""
        raise AssertionError(f"{_NAME} has no partition {partition}")
