"""The lakes of a service's settings."""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.settings import Settings
from pipeline.settings.metastore.service import ServedLake
from pipeline.storage import Storage, open_storage


def lake_roots(lakes: Iterable[ServedLake]) -> list[Storage]:
    """The root of each lake. Raises ConfigError for a settings file that cannot be read."""
    return [_root(lake) for lake in lakes]


def _root(lake: ServedLake) -> Storage:
    if lake.settings is None:
        return open_storage(str(lake.uri), lake.storage_options())
    of_stream = Settings.load(lake.settings).lake
    return open_storage(of_stream.uri, of_stream.storage_options())
