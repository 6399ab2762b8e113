"""Tells a metastore of completed instants."""

from __future__ import annotations

from lakemetastore.api.paths import INSTANTS
from lakemetastore.api.tables import Registered, Registration
from lakemetastore.client.requests import MetastoreClient


def register(connection: MetastoreClient, location: str, instant: str) -> Registered:
    """Register an instant of the table at a location; the same one twice is one.

    Args:
        connection: to the metastore.
        location: the URI of the table's root.
        instant: the requested time.

    Raises MetastoreUnreachableError, RefusedRequestError, TransientError.
    """
    return connection.ask("POST", INSTANTS, Registered, body=Registration(location=location, instant=instant))
