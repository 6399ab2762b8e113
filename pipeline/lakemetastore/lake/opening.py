"""A metastore and its lakes, as the settings of its service say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from hudilake.storage import open_storage
from lakemetastore.catalog.catalog import Catalog
from lakemetastore.lake.lake_tables import LakeTables
from lakemetastore.lake.lease import Lease
from lakemetastore.lake.named import NamedLake
from lakemetastore.lake.reconcile import Reconciler
from lakemetastore.lake.registration import Registration
from lakemetastore.log.policy import LogPolicy
from lakemetastore.log.stores.base import LogStore
from lakemetastore.log.stores.opening import open_store
from lakemetastore.settings.service import MetastoreSettings, ServedLake

#: A process keeps the right to reconcile for so many rounds.
_ROUNDS = 3


@dataclass(frozen=True)
class Metastore:
    """A store's catalog, the states of its Hudi tables, and what brings them up to date."""

    store: LogStore
    catalog: Catalog
    lakes: LakeTables
    reconciler: Reconciler

    @property
    def registration(self) -> Registration:
        """Registers tables."""
        return self.reconciler.registration

    def close(self) -> None:
        """Wait for snapshots that are being written, then release the store."""
        self.lakes.close()
        self.store.close()


def open_lakes(lakes: Iterable[ServedLake]) -> list[NamedLake]:
    """The lakes of a service's settings. Raises ConfigError as ``NamedLake``, and SettingsError for a stream's settings
    file."""
    return [_open_lake(lake) for lake in lakes]


def _open_lake(lake: ServedLake) -> NamedLake:
    if lake.settings is not None:
        return NamedLake.of_settings(lake.settings)
    return NamedLake.of_root(open_storage(str(lake.uri), lake.storage_options()))


def metastore_of(settings: MetastoreSettings) -> Metastore:
    """The metastore of a service's settings. Errors as ``open_lakes``, and those of ``open_store``."""
    policy = LogPolicy(check_after_ms=settings.store.check_after_ms, snapshot_every=settings.store.snapshot_every)
    store = open_store(settings.store.uri, settings.store.store_options())
    catalog = Catalog(store, warehouse=settings.warehouse, policy=policy)
    lakes = LakeTables(store, policy)
    lease = Lease(store, "reconcile", _ROUNDS * settings.reconcile_seconds)
    served = open_lakes(settings.lakes)
    reconciler = Reconciler(Registration(catalog, lakes), served, settings.reconcile_seconds, lease)
    return Metastore(store, catalog, lakes, reconciler)


@contextmanager
def opened_metastore(settings: MetastoreSettings) -> Iterator[Metastore]:
    """The metastore until the end of the block."""
    metastore = metastore_of(settings)
    try:
        yield metastore
    finally:
        metastore.close()
