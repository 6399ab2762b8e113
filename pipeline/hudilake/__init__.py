"""The Hudi table format from Python: tables of table version 9 read, written and looked after. No Spark and no Kafka.

The names here are the public surface; everything else may change between versions. A name is imported when it is first
used: ``import hudilake`` alone loads neither pyarrow nor anything else that is large.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hudilake.api.history import Commit
    from hudilake.api.opening import create_table, open_table, table_exists
    from hudilake.api.reader import Reader, ScanTask
    from hudilake.api.sql import sql
    from hudilake.api.table import Table
    from hudilake.api.transaction import Transaction
    from hudilake.commit.commit import OvertakenError
    from hudilake.commit.savepoint_record import Savepoint
    from hudilake.errors import (
        CommitUnknownError,
        ConfigError,
        CorruptDataError,
        LakeError,
        LostOwnershipError,
        TransientError,
        UnsupportedError,
    )
    from hudilake.locking.base import LockHeldError
    from hudilake.locking.choose import LockConfig
    from hudilake.policies import (
        ClusteringPolicy,
        CompactionPolicy,
        FileSizePolicy,
        MetadataPolicy,
        OrderPolicy,
        RetentionPolicy,
    )
    from hudilake.query.changes.feed import ChangeFeed
    from hudilake.query.changes.position import ChangePosition
    from hudilake.query.samples.batches import SampleBatch
    from hudilake.query.samples.position import SamplePosition
    from hudilake.query.samples.samples import Samples
    from hudilake.query.sql.limits import Limits
    from hudilake.read.filters.expressions import (
        And,
        Eq,
        Ge,
        Gt,
        In,
        IsNotNull,
        IsNull,
        Le,
        Lt,
        Ne,
        Not,
        Or,
        StartsWith,
    )
    from hudilake.read.query import Incremental, Snapshot, instant_of
    from hudilake.services.clustering.completion import ClusteringResult
    from hudilake.services.fsck.findings import Finding, Report
    from hudilake.services.rebucket.steps import RebucketResult
    from hudilake.storage.base import AlreadyExistsError, FileInfo, Storage, StorageError, StorageNotFoundError
    from hudilake.storage.opening import open_storage

#: Where the public names are, in the order of the documentation.
_HOMES = {
    "hudilake.api.opening": "open_table create_table table_exists",
    "hudilake.api.table": "Table",
    "hudilake.api.transaction": "Transaction",
    "hudilake.api.reader": "Reader ScanTask",
    "hudilake.api.history": "Commit",
    "hudilake.api.sql": "sql",
    "hudilake.query.sql.limits": "Limits",
    "hudilake.read.query": "Snapshot Incremental instant_of",
    "hudilake.read.filters.expressions": "Eq Ne Lt Le Gt Ge In IsNull IsNotNull StartsWith And Or Not",
    "hudilake.query.changes.feed": "ChangeFeed",
    "hudilake.query.changes.position": "ChangePosition",
    "hudilake.query.samples.samples": "Samples",
    "hudilake.query.samples.batches": "SampleBatch",
    "hudilake.query.samples.position": "SamplePosition",
    "hudilake.policies": "MetadataPolicy CompactionPolicy ClusteringPolicy OrderPolicy RetentionPolicy FileSizePolicy",
    "hudilake.locking.choose": "LockConfig",
    "hudilake.commit.savepoint_record": "Savepoint",
    "hudilake.services.clustering.completion": "ClusteringResult",
    "hudilake.services.rebucket.steps": "RebucketResult",
    "hudilake.services.fsck.findings": "Report Finding",
    "hudilake.storage.opening": "open_storage",
    "hudilake.storage.base": "Storage FileInfo StorageError StorageNotFoundError AlreadyExistsError",
    "hudilake.errors": "LakeError ConfigError CorruptDataError "
    "TransientError UnsupportedError LostOwnershipError CommitUnknownError",
    "hudilake.commit.commit": "OvertakenError",
    "hudilake.locking.base": "LockHeldError",
}
_MODULES = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [
    "AlreadyExistsError",
    "And",
    "ChangeFeed",
    "ChangePosition",
    "ClusteringPolicy",
    "ClusteringResult",
    "Commit",
    "CommitUnknownError",
    "CompactionPolicy",
    "ConfigError",
    "CorruptDataError",
    "Eq",
    "FileInfo",
    "FileSizePolicy",
    "Finding",
    "Ge",
    "Gt",
    "In",
    "Incremental",
    "IsNotNull",
    "IsNull",
    "LakeError",
    "Le",
    "Limits",
    "LockConfig",
    "LockHeldError",
    "LostOwnershipError",
    "Lt",
    "MetadataPolicy",
    "Ne",
    "Not",
    "Or",
    "OrderPolicy",
    "OvertakenError",
    "Reader",
    "RebucketResult",
    "Report",
    "RetentionPolicy",
    "SampleBatch",
    "SamplePosition",
    "Samples",
    "Savepoint",
    "ScanTask",
    "Snapshot",
    "StartsWith",
    "Storage",
    "StorageError",
    "StorageNotFoundError",
    "Table",
    "Transaction",
    "TransientError",
    "UnsupportedError",
    "create_table",
    "instant_of",
    "open_storage",
    "open_table",
    "sql",
    "table_exists",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any public name
    """A public name, imported on its first use."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
