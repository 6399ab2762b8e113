"""What a Hive table in the catalog says otherwise than its Hudi table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lakemetastore.catalog.locations import same_place
from lakemetastore.catalog.logs import TableEntry
from lakemetastore.catalog.names import partition_name
from lakemetastore.lake.hive_tables import LAST_COMMIT, LAST_COMPLETION
from lakemetastore.model import Column, Partition, SerDe, Storage, Table


@dataclass(frozen=True, slots=True)
class PartitionDifferences:
    """What the partitions of a Hive table are otherwise than they should be.

    Args:
        missing: those that it lacks.
        surplus: the names of those that it should not have.
        changed: those that are at another place or stored otherwise, as they should be.
    """

    missing: list[Partition]
    surplus: list[str]
    changed: list[Partition]


def same_definition(known: Table, wanted: Table) -> bool:
    """Whether a Hive table says of its Hudi table what it should. Parameters of others, and how far HiveSync has come,
    do not matter."""
    return (
        same_but_place(known, wanted)
        and same_place(known.storage.serde.parameters.get("path"), wanted.location)
        and same_place(known.location, wanted.location)
    )


def same_but_place(known: Table, wanted: Table) -> bool:
    """Whether it does, the table's place apart."""
    return (
        _types(known.storage.columns) == _types(wanted.storage.columns)
        and _types(known.partition_keys) == _types(wanted.partition_keys)
        and _format(known.storage) == _format(wanted.storage)
        and _without_path(wanted.storage.serde).items() <= known.storage.serde.parameters.items()
        and known.kind == wanted.kind
        and _own(wanted).items() <= known.parameters.items()
    )


def partition_differences(entry: TableEntry, wanted: Sequence[Partition]) -> PartitionDifferences:
    """What the partitions of a Hive table are otherwise than ``wanted``."""
    keys = entry.table.partition_keys
    by_name = {partition_name(keys, partition.values): partition for partition in wanted}
    known = dict(zip(entry.partitions.names(), entry.partitions, strict=True))
    return PartitionDifferences(
        [p for name, p in by_name.items() if name not in known],
        sorted(known.keys() - by_name.keys()),
        [p for name, p in by_name.items() if name in known and not _same_partition(known[name], p)],
    )


def _same_partition(known: Partition, wanted: Partition) -> bool:
    return same_place(known.location, wanted.location) and _format(known.storage) == _format(wanted.storage)


def _format(storage: Storage) -> tuple[str | None, ...]:
    return storage.input_format, storage.output_format, storage.serde.library


def _own(table: Table) -> dict[str, str]:
    return {key: value for key, value in table.parameters.items() if key not in (LAST_COMMIT, LAST_COMPLETION)}


def _without_path(serde: SerDe) -> dict[str, str]:
    return {key: value for key, value in serde.parameters.items() if key != "path"}


def _types(columns: Iterable[Column]) -> list[tuple[str, str]]:
    return [(column.name, column.type) for column in columns]
