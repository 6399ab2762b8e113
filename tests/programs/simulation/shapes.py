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
#: All events have all columns, so that a row is as its newest event.
_ENGINES: Final[tuple[Rules, ...]] = tuple(
    {"merge": {"engine": "partial_update"}, "type": kind, "buckets": 2} for kind in ("merge_on_read", "copy_on_write")
)
#: What has to come in the source's sequence, because what is counted cannot be told from what came before.
_IN_SEQUENCE: Final = ("first_row", "aggregate")
_FACTS: Final[tuple[Rules, ...]] = tuple(
    {**rules, "type": kind, "buckets": 2}
    for kind in ("merge_on_read", "copy_on_write")
    for rules in (
        {"merge": {"engine": "first_row"}},
        {"merge": {"engine": "aggregate", "columns": {"id": "count", "balance": "sum"}}, "key": ["region"]},
        {"kind": "append"},
        {"history": "scd2"},
    )
)
#: By table; the other writer knows of buckets alone, and writes orders.
_SHAPES: Final[Mapping[str, tuple[Rules, ...]]] = {
    "accounts": (*_BY_BUCKETS, *_BY_INDEX, *_BY_INDEX, *_ENGINES, *_FACTS, *_FACTS),
    "orders": _BY_BUCKETS,
}


def shape(table: str, number: int) -> Rules:
    """The rules of a table, which a number draws."""
    kinds = _SHAPES[table]
    rules = {**PLAIN, **kinds[number // 4 % len(kinds)]}
    return {**rules, **_UPKEEP} if number % 4 == 0 else rules


def engine_of(rules: Rules) -> str:
    """What makes the rows: a merge engine, or "append"."""
    return "append" if rules.get("kind") == "append" else str(rules.get("merge", {}).get("engine", "newest"))


def table_in_order(shapes: Mapping[str, Rules], table: str) -> bool:
    """Whether the records of a table come in the source's sequence."""
    return engine_of(shapes.get(table, {})) in _IN_SEQUENCE


def tables_section(shapes: Mapping[str, Rules]) -> dict[str, Any]:
    """The section ``tables`` of the settings; accounts are partitioned."""
    partition = {"accounts": {"partition": {"column": "region"}}}
    histories = [
        {"table": f"shop.{t}", "to": f"shop.{t}_history", "kind": rules["history"]}
        for t, rules in shapes.items()
        if "history" in rules
    ]
    own = {t: {name: value for name, value in rules.items() if name != "history"} for t, rules in shapes.items()}
    overrides = [{"match": f"shop.{t}", **partition.get(t, {}), **own.get(t, {})} for t in TABLES]
    return {"defaults": dict(PLAIN), "overrides": overrides, **({"history": histories} if histories else {})}
