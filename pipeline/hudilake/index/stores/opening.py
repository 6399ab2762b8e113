"""The store that the settings name.

It stands alone: it alone knows all stores.
"""

from __future__ import annotations

from hudilake.extras import require_extra
from hudilake.index.stores.base import KeyValueStore
from hudilake.index.stores.hbase_store import HBaseStore
from hudilake.policies import ExternalStorePolicy


def open_store(policy: ExternalStorePolicy) -> KeyValueStore:
    """The store; it is opened when it is first used. Raises MissingExtraError."""
    if policy.store == "lmdb":
        require_extra("hudilake", "lmdb", "lmdb")
        from hudilake.index.stores.lmdb_store import LmdbStore  # an extra

        return LmdbStore(policy.path or "")
    return HBaseStore(policy.url or "", policy.table, policy.timeout_seconds)
