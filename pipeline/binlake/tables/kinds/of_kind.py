"""The object of a table's kind: the one place that chooses by the kind, so it stands alone."""

from __future__ import annotations

from binlake.settings import TableRules
from binlake.tables.kinds.append import AppendedRows
from binlake.tables.kinds.buckets import BucketRows
from binlake.tables.kinds.looked_up import LookedUpRows
from binlake.tables.kinds.rows import TableRows
from hudilake.storage import Storage
from hudilake.table.table import HudiTable


def rows_of(storage: Storage, table: HudiTable, rules: TableRules) -> TableRows:
    """What places and writes the rows of an open table. Arguments as ``TableRows``."""
    kind = table.config.kind
    if kind.appends:
        return AppendedRows(storage, table, rules)
    return LookedUpRows(storage, table, rules) if kind.looks_up else BucketRows(storage, table, rules)
