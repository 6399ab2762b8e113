"""Which lake tables plain topics can feed."""

from __future__ import annotations

from binlake.settings.plain import PlainTopicsSettings
from binlake.settings.table_rules import TableRules
from hudilake.policies import GLOBAL_INDEXES


def plain_table_problem(entry: PlainTopicsSettings, rules: TableRules) -> str | None:
    """Why rows of plain topics cannot feed a lake table of these rules; None if they can.

    Such a row comes without its previous version, so a row that leaves its partition would stay there, too.
    """
    key = rules.key or entry.key
    if rules.kind == "append":
        return "a table of kind append has no key" if key else None
    if not key:
        return "name its key, or set kind: append in tables.overrides"
    if rules.partition is None or _finds_rows(entry, rules) or rules.immutable_partition:
        return None
    return (
        f"a row without its previous version cannot leave its partition: take {rules.partition.column} into the key, "
        "or promise immutable_partition: true"
    )


def no_delete(entry: PlainTopicsSettings, rules: TableRules) -> str | None:
    """Why a record without a value cannot delete its row; None if it can."""
    if rules.partition is None or _finds_rows(entry, rules):
        return None
    return (
        f"a record without a value has only a key, and the partition of its row is that of {rules.partition.column}, "
        "which is not in the key"
    )


def _finds_rows(entry: PlainTopicsSettings, rules: TableRules) -> bool:
    """Whether the key tells the partition, or the index finds a key in any partition."""
    column = rules.partition.column if rules.partition is not None else ""
    return column in (rules.key or entry.key) or rules.index.type in GLOBAL_INDEXES
