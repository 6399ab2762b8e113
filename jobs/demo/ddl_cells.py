"""Which cells no event filled: found by replaying the recorded events of a table in plain Python.

DDL writes no row events, so a column that came by ADD COLUMN or under a new name is absent from the last event of
every row that was not touched afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from jobs.demo.messages import Message
from jobs.demo.truth import TruthColumn, TruthTable
from jobs.demo.values import INTEGERS, TEXTS, Value, truth_values
from jobs.demo.verdict import DdlOnly, Row

#: (binlog file number, position, row): snapshot rows have file number 0 and the source's seconds as position.
Order = tuple[int, int, int]


def ddl_only(table: TruthTable, messages: Iterable[Message]) -> DdlOnly:
    """The cells of ``table`` that its recorded events did not fill, and the columns that are no more.

    Raises ValueError for a key column that is neither an integer nor text.
    """
    names = [c.name for c in table.columns]
    keys = _keys(table)
    last: dict[Row, tuple[Order, Mapping[str, Any]]] = {}
    seen: set[str] = set()
    for message in messages:
        event = payload(message)
        if event is None or event.get("after") is None:
            continue
        image = event["after"]
        seen |= image.keys()
        key, order = _key(table, image), _order(event)
        if key not in last or last[key][0] <= order:
            last[key] = (order, image)
    absent = {n: frozenset(k for k, (_, image) in last.items() if n not in image and k in keys) for n in names}
    return DdlOnly({n: rows for n, rows in absent.items() if rows and table.key}, frozenset(seen - set(names)))


def _keys(table: TruthTable) -> set[Row]:
    names = [c.name for c in table.columns]
    return set(zip(*(truth_values(table, names.index(k)) for k in table.key), strict=True))


def payload(message: Message) -> dict[str, Any] | None:
    """The Debezium envelope of a message, with or without an embedded schema; None for a tombstone."""
    if message.value is None:
        return None
    value: dict[str, Any] = json.loads(message.value)
    inner = value.get("payload")
    return inner if "schema" in value and isinstance(inner, dict) else value


def _order(event: Mapping[str, Any]) -> Order:
    source = event["source"]
    if event["op"] == "r":
        return 0, source["ts_ms"] // 1000, 0
    return int(source["file"].rsplit(".", 1)[-1]), source["pos"], source["row"]


def _key(table: TruthTable, image: Mapping[str, Any]) -> Row:
    columns = {c.name: c for c in table.columns}
    return tuple(_key_value(columns[k], image[k]) for k in table.key)


def _key_value(column: TruthColumn, value: int | str) -> Value:
    if column.data_type in INTEGERS and isinstance(value, int):
        return value + (1 << 64) if column.unsigned and value < 0 else value
    if column.data_type in TEXTS and isinstance(value, str):
        return value
    raise ValueError(f"key column {column.name} of type {column.type} is not known to the verdict")
