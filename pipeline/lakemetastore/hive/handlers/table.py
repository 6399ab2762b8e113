"""All methods that are served.

It stands alone: it imports all handlers, and none of them imports it.
"""

from __future__ import annotations

from lakemetastore.hive.handlers import (
    databases,
    functions,
    locks,
    partition_changes,
    partition_files,
    partition_specs,
    partitions,
    server,
    statistics,
    table_changes,
    tables,
    unowned,
)
from lakemetastore.hive.methods import HiveMethod, methods

METHODS: dict[str, HiveMethod] = methods(
    {
        **server.CALLS,
        **databases.CALLS,
        **tables.CALLS,
        **table_changes.CALLS,
        **partitions.CALLS,
        **partition_changes.CALLS,
        **partition_files.CALLS,
        **partition_specs.CALLS,
        **statistics.CALLS,
        **functions.CALLS,
        **locks.CALLS,
        **unowned.CALLS,
    }
)
