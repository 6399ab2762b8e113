"""What handlers work on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pipeline.clock import now_ms
from pipeline.metastore.hive.session import Session


@dataclass(frozen=True, slots=True)
class Services:
    """What all clients share. ``started``: seconds since the epoch."""

    configuration: Mapping[str, str]
    started: int = field(default_factory=lambda: now_ms() // 1000)


@dataclass(frozen=True, slots=True)
class Context:
    """What all clients share, and the client of this call."""

    services: Services
    session: Session
