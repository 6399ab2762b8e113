"""What the HTTP API needs of the catalog."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pipeline.metastore.model.objects import Table


class NamedTable(Protocol):
    """A table of the catalog in one version."""

    @property
    def table(self) -> Table:
        """Its definition."""
        ...

    @property
    def version(self) -> int:
        """The version of its log."""
        ...


class Names(Protocol):
    """Databases and tables by name. Every method raises CatalogError, StorageError."""

    def databases(self) -> Sequence[str]:
        """The names of all databases."""
        ...

    def tables(self, database: str) -> Sequence[str]:
        """The names of a database's tables."""
        ...

    def table(self, database: str, name: str) -> NamedTable:
        """A table."""
        ...
