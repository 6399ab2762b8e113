"""The index of an open table by its kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from hudilake.errors import ConfigError, UnsupportedError
from hudilake.index.base import KeyIndex
from hudilake.index.base_file_index import BaseFileIndex, EveryFile
from hudilake.index.external import ExternalIndex
from hudilake.index.in_memory import InMemoryIndex
from hudilake.index.record import RecordIndex
from hudilake.index.stores.opening import open_store
from hudilake.policies import LookupPolicy
from hudilake.table.table import HudiTable


def open_index(table: HudiTable, policy: LookupPolicy | None = None) -> KeyIndex:
    """The index that finds the rows of a table whose kind looks keys up.

    Args:
        table: open; its configuration names the index.
        policy: what the settings say of it; None for the defaults.

    Raises UnsupportedError for a table of another kind and for one with buckets, ConfigError for an external index
    without a store.
    """
    _refuse_buckets(table)
    name = table.config.kind.index
    if (opened := _OPENED.get(name)) is None:
        raise UnsupportedError(
            f"the index {name} of the table is not looked up",
            do_next="report this error: rows of such a table have their file groups by other means",
            table=table.config.name,
        )
    return opened(table, policy or LookupPolicy())


def _simple(table: HudiTable, _: LookupPolicy) -> KeyIndex:
    return BaseFileIndex(table, EveryFile())


def _bloom(table: HudiTable, _: LookupPolicy) -> KeyIndex:
    from hudilake.index.key_filters import KeyFilters  # needs compiled loops, seconds to import

    return BaseFileIndex(table, KeyFilters(table))


def _in_memory(table: HudiTable, policy: LookupPolicy) -> KeyIndex:
    return InMemoryIndex(table, policy.in_memory_keys)


def _external(table: HudiTable, policy: LookupPolicy) -> KeyIndex:
    if policy.external is None:
        raise ConfigError(
            "the table has an external index, and the settings name no store",
            do_next="set index.external",
            table=table.config.name,
        )
    return ExternalIndex(table, open_store(policy.external))


def _record_index(table: HudiTable, _: LookupPolicy) -> KeyIndex:
    return RecordIndex(table)


_OPENED: Final[Mapping[str, Callable[[HudiTable, LookupPolicy], KeyIndex]]] = {
    "simple": _simple,
    "global_simple": _simple,
    "bloom": _bloom,
    "global_bloom": _bloom,
    "in_memory": _in_memory,
    "external": _external,
    "record_index": _record_index,
    "partitioned_record_index": _record_index,
}


def _refuse_buckets(table: HudiTable) -> None:
    """A table whose properties name no index may have buckets: rows of new keys are in log files then, which a lookup
    does not see. File ids of buckets begin with the bucket's number in eight digits, all others are UUIDs."""
    ids = [piece.file_id for piece in table.file_slices()]
    if ids and all(file_id.startswith("0000") for file_id in ids):
        raise UnsupportedError(
            f"the settings say index {table.config.kind.index}, and the table's file groups are buckets",
            do_next="correct the settings, or make a new table with this index",
            table=table.config.name,
        )
