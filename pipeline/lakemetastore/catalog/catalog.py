"""A catalog of databases, tables and partitions with the rules of the Hive Metastore 3.1.3.

What it knows is in logs of one store; each call reads the newest state, or one of at most ``check_after_ms`` ago. It
touches no files: it makes and deletes no directories, and a new name moves no data. It stands alone: it joins the
catalog's four parts, and none of them imports it.
"""

from __future__ import annotations

from lakemetastore.catalog.databases import Databases
from lakemetastore.catalog.logs import CatalogLogs
from lakemetastore.catalog.partition_calls import PartitionCalls
from lakemetastore.catalog.statistics import StatisticsCalls
from lakemetastore.catalog.tables import Tables
from lakemetastore.log.policy import LogPolicy
from lakemetastore.log.stores.base import LogStore

WAREHOUSE = "file:/user/hive/warehouse"


class Catalog:
    """The ``databases``, ``tables``, ``partitions`` and ``statistics`` of a store. Threads may share it; a process
    needs one for each store.

    Args:
        store: of the logs. Any number of processes may use it.
        warehouse: location of tables that come without one; of the database ``default`` if the catalog is new.
        policy: how logs are kept, and how old a state may be.

    All calls raise StorageError when the store does not answer.
    """

    def __init__(self, store: LogStore, *, warehouse: str = WAREHOUSE, policy: LogPolicy | None = None) -> None:
        logs = CatalogLogs(store, policy or LogPolicy())
        self.databases = Databases(logs, warehouse)
        self.tables = Tables(logs, warehouse)
        self.partitions = PartitionCalls(logs)
        self.statistics = StatisticsCalls(logs)
