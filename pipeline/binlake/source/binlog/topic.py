"""The topic of a server's binlog, under which offsets are kept. It stands alone: commands ask it without Arrow."""

from __future__ import annotations

_PREFIX = "binlog/"


def is_binlog(topic: str) -> bool:
    """Whether a topic is the binlog of a server: differences of its offsets count nothing."""
    return topic.startswith(_PREFIX)


def topic_of(identity: str | int) -> str:
    """The topic of the server with a ``server_uuid``, of a MariaDB with a ``server_id``."""
    return f"{_PREFIX}{identity}"
