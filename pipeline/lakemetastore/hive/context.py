"""What handlers work on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hudilake.clock import now_ms
from lakemetastore.catalog.catalog import Catalog
from lakemetastore.hive.answers import Answers
from lakemetastore.hive.functions import Functions
from lakemetastore.hive.locks import Locks
from lakemetastore.hive.session import Session
from lakemetastore.hive.table_files import TableFiles


@dataclass(frozen=True, slots=True)
class Services:
    """What all clients share. ``started``: seconds since the epoch."""

    catalog: Catalog
    locks: Locks
    functions: Functions
    configuration: Mapping[str, str] = field(default_factory=dict)
    files: TableFiles = field(default_factory=TableFiles)
    answers: Answers = field(default_factory=Answers)
    started: int = field(default_factory=lambda: now_ms() // 1000)


@dataclass(frozen=True, slots=True)
class Context:
    """What all clients share, and the client of this call."""

    services: Services
    session: Session

    @property
    def catalog(self) -> Catalog:
        """The databases, tables and partitions."""
        return self.services.catalog

    @property
    def answers(self) -> Answers:
        """Tables and partitions as bytes."""
        return self.services.answers
