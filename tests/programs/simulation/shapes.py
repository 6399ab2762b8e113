"""Which kinds of tables a history has: type, index, buckets, and whether the stream serves its tables itself.

A step draws them, so that a history shrinks to the plainest tables that still fail.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, get_args

from hudilake.policies import IndexType
from tests.programs.crash_points.story import TABLES

Rules = Mapping[str, Any]

#: The rules of tables without a shape.
PLAIN: Final[Rules] = {"buckets": 1, "retention": {"commits": 3}, "compaction": {"mode": "off"}}
_BY_BUCKETS: Final[tuple[Rules, ...]] = (
    {},
    {"buckets": 3},
    {"type": "copy_on_write"},
    {"type": "copy_on_write", "buckets": 2},
    {"conflicts": "row", "buckets": 3},
)
_UPKEEP: Final[Rules] = {"compaction": {"mode": "inline", "after_commits": 2}, "retention": {"commits": 1}}
_NOT_DRAWN: Final = ("bucket", "external", "none")
_INDEXES: Final = tuple(index for index in get_args(IndexType) if index not in _NOT_DRAWN)
_BY_INDEX: Final[tuple[Rules, ...]] = tuple(
    {"index": {"type": index}, "type": kind, "buckets": 2}
    for kind in ("merge_on_read", "copy_on_write")
    for index in _INDEXES
    if (kind, index) != ("copy_on_write", "consistent_bucket")  # Hudi has no such tables
)
#: By table; the other writer knows of buckets alone, and writes orders.
_SHAPES: Final[Mapping[str, tuple[Rules, ...]]] = {
    "accounts": (*_BY_BUCKETS, *_BY_INDEX, *_BY_INDEX),
    "orders": _BY_BUCKETS,
}


def shape(table: str, number: int) -> Rules:
    """The rules of a table, which a number draws."""
    kinds = _SHAPES[table]
    rules = {**PLAIN, **kinds[number // 4 % len(kinds)]}
    return {**rules, **_UPKEEP} if number % 4 == 0 else rules


def tables_section(shapes: Mapping[str, Rules]) -> dict[str, Any]:
    """The section ``tables`` of the settings; accounts are partitioned."""
    partition = {"accounts": {"partition": {"column": "region"}}}
    overrides = [{"match": f"shop.{t}", **partition.get(t, {}), **shapes.get(t, {})} for t in TABLES]
    return {"defaults": dict(PLAIN), "overrides": overrides}
