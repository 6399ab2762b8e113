"""What the examples of docstrings and pages may use: ``hudilake``, ``pa``, the table ``orders`` and a free ``uri``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

import hudilake

ROWS = [
    {"id": 1, "qty": 4, "day": "d1", "updated_at": 1},
    {"id": 2, "qty": 2, "day": "d1", "updated_at": 1},
    {"id": 3, "qty": 5, "day": "d1", "updated_at": 1},
]


def world(place: Path) -> dict[str, Any]:
    """The names of an example, with tables below ``place``."""
    schema = pa.schema({"id": pa.int64(), "qty": pa.int64(), "day": pa.string(), "updated_at": pa.int64()})
    where = str(place / "orders")
    orders = hudilake.create_table(where, schema, key="id", order_by="updated_at", partition_by="day", buckets=2)
    orders.upsert(ROWS)
    return {"hudilake": hudilake, "pa": pa, "orders": orders, "uri": str(place / "new")}
