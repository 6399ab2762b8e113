"""How much a client of the Thrift server may take.

It stands alone: the server, its connections and the wire all keep to it, and it imports none of them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes in bytes and elements, times in seconds.

    Args:
        message: the longest request; as HMS's ``hive.metastore.server.max.message.size``. Memory is taken as bytes
            arrive, never for an announced length.
        string: the longest string of a request.
        container: the longest list or map of a request.
        connections: how many clients are served at the same time; a further one takes the place of the one
            that has been idle for the longest time; if none is idle, it is closed at once.
        idle_seconds: how long a client may be silent between two requests.
        message_seconds: how long a request may take to arrive, and an answer to be taken.
    """

    message: int = 100 << 20
    string: int = 64 << 20
    container: int = 2_000_000
    connections: int = 1000
    idle_seconds: float = 3600.0
    message_seconds: float = 300.0
