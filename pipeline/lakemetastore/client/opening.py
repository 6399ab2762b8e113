"""The client of the metastore that settings name.

It stands alone: registration and queries both open a client by it.
"""

from __future__ import annotations

from lakemetastore.client.plans import ServicePlans
from lakemetastore.client.requests import MetastoreClient
from lakemetastore.settings.connection import MetastoreConnection


def client_of(settings: MetastoreConnection) -> MetastoreClient | None:
    """The client; None if the settings name no address. Raises ConfigError for addresses that are none."""
    if not settings.addresses:
        return None
    return MetastoreClient(settings.addresses, settings.timeout_seconds, ca_file=settings.ca_file)


def plans_of(settings: MetastoreConnection) -> ServicePlans | None:
    """The source of plans for readers; None if the settings name no address. Raises as ``client_of``."""
    client = client_of(settings)
    return None if client is None else ServicePlans(client, settings.max_age_ms)
