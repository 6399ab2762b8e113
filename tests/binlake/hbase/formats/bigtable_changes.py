"""Bigtable's change records, written by hand: the template's documented members as Protocol Buffers print them."""

from __future__ import annotations

import base64
from typing import Any

EVER = (1 << 63) - 1
COMMIT_US = 1_700_000_000_123_456


def b64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def change(mod: str = "SET_CELL", **members: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON value
    """A record as Protocol Buffers print it: 64-bit numbers are text."""
    common = {
        "rowKey": b64(b"r\xff"),
        "modType": mod,
        "isGC": False,
        "tieBreaker": 3,
        "commitTimestamp": str(COMMIT_US),
        "columnFamily": "cf",
        "sourceInstance": "shop",
        "sourceCluster": "shop-c1",
        "sourceTable": "orders",
    }
    own = {
        "SET_CELL": {"column": b64(b"q"), "timestamp": "7000", "value": b64(b"v")},
        "DELETE_CELLS": {"column": b64(b"q")},
    }
    return {name: value for name, value in (common | own.get(mod, {}) | members).items() if value is not None}


CHANGES = (
    change(),
    change("DELETE_CELLS", timestampFrom="5000", timestampTo="8000"),
    change("DELETE_CELLS", timestampFrom="0", isGC=True),
    change("DELETE_FAMILY"),
    change(column="", value="", timestamp="0"),
)
