"""What a Hive table in the catalog says otherwise than its Hudi table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pipeline.metastore.catalog.logs import TableEntry
from pipeline.metastore.catalog.names import partition_name
from pipeline.metastore.lake.hive_tables import LAST_COMMIT, LAST_COMPLETION, same_place
from pipeline.metastore.model.objects import Column, Partition, SerDe, Table


def same_definition(known: Table, wanted: Table) -> bool:
    """Whether a Hive table says of its Hudi table what it should. Parameters of others, and how far HiveSync has come,
    do not matter."""
    mine, theirs = known.storage, wanted.storage
    return (
        _types(mine.columns) == _types(theirs.columns)
        and _types(known.partition_keys) == _types(wanted.partition_keys)
        and (mine.input_format, mine.output_format, mine.serde.library)
        == (theirs.input_format, theirs.output_format, theirs.serde.library)
        and _without_path(theirs.serde).items() <= mine.serde.parameters.items()
        and same_place(mine.serde.parameters.get("path"), wanted.location)
        and same_place(known.location, wanted.location)
        and known.kind == wanted.kind
        and _own(wanted).items() <= known.parameters.items()
    )


def partition_differences(entry: TableEntry, wanted: Sequence[Partition]) -> tuple[list[Partition], list[str]]:
    """The partitions that a Hive table lacks, and the names of those that it has in surplus."""
    keys = entry.table.partition_keys
    by_name = {partition_name(keys, partition.values): partition for partition in wanted}
    known = set(entry.partitions.names())
    return [p for name, p in by_name.items() if name not in known], sorted(known - by_name.keys())


def _own(table: Table) -> dict[str, str]:
    return {key: value for key, value in table.parameters.items() if key not in (LAST_COMMIT, LAST_COMPLETION)}


def _without_path(serde: SerDe) -> dict[str, str]:
    return {key: value for key, value in serde.parameters.items() if key != "path"}


def _types(columns: Iterable[Column]) -> list[tuple[str, str]]:
    return [(column.name, column.type) for column in columns]
