"""Columns that a source table no longer has: DROP and RENAME leave them in the lake."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from demo.messages import Message
from demo.truth import TruthTable


def gone_columns(table: TruthTable, messages: Iterable[Message]) -> frozenset[str]:
    """Columns that recorded events of ``table`` have and the final table does not have."""
    seen: set[str] = set()
    for message in messages:
        event = _payload(message)
        if event is not None:
            seen |= (event.get("after") or {}).keys()
    return frozenset(seen - {c.name for c in table.columns})


def _payload(message: Message) -> dict[str, Any] | None:
    """The Debezium envelope of a message, with or without an embedded schema; None for a tombstone."""
    if message.value is None:
        return None
    value: dict[str, Any] = json.loads(message.value)
    inner = value.get("payload")
    return inner if "schema" in value and isinstance(inner, dict) else value
