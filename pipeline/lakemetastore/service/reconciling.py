"""The process that keeps the metastore in line with its lakes, beside those that answer.

It stands alone: only the process of this part imports it.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from lakemetastore.lake.opening import metastore_of
from lakemetastore.service.part import Report
from lakemetastore.settings.service import MetastoreSettings


class ReconcilerPart:
    """Reads the lakes at intervals from ``start`` to ``stop``. Of several services on one store one does a round."""

    def __init__(self, settings: MetastoreSettings) -> None:
        self._settings = settings
        self._registry = CollectorRegistry()
        Gauge("binlake_metastore_lakes", "Lakes of the settings.", registry=self._registry).set(len(settings.lakes))

    def start(self) -> None:
        """Open the store and begin the first round. Raises ConfigError, StorageError."""
        self._metastore = metastore_of(self._settings)
        self._metastore.reconciler.start()

    def stop(self) -> None:
        """Let the table in hand end, then close the store."""
        self._metastore.reconciler.stop()
        self._metastore.close()

    def report(self) -> Report:
        """How many lakes there are."""
        return Report((), generate_latest(self._registry).decode())
