"""The kind of a lake table by its rules.

It stands alone: targets, tables, verify and commands all ask for it.
"""

from __future__ import annotations

from binlake.settings import TableRules
from hudilake.format.definition.bucketing import Bucketing
from hudilake.format.definition.kind import TableKind


def kind_of(rules: TableRules) -> TableKind:
    """The kind of a lake table with these rules."""
    return TableKind(rules.type, "none" if rules.kind == "append" else rules.index.type)


def first_bucketing(rules: TableRules) -> Bucketing:
    """The buckets of a new lake table with these rules."""
    return kind_of(rules).placement.bucketing(rules.buckets, tuple(rules.index.partition_buckets.items()), {})
