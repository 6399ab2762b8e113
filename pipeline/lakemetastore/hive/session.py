"""What is known of a client.

It stands alone: the router and the server both use it, and the server may not import the router.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Session:
    """A connection's client. ``user`` and ``groups`` are what the client says of itself (set_ugi); nothing proves it.

    ``on_close`` is called when the connection ends, for what an answerer keeps for it.
    """

    address: str
    user: str | None = None
    groups: list[str] = field(default_factory=list)
    on_close: list[Callable[[], None]] = field(default_factory=list)
