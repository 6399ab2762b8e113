"""The interface by which the keeper of DDL reads the source's schemas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from binlake.decode.changes import SourceTable
from binlake.decode.schemas.schemas import SchemaVersion
from binlake.schema.rules.ddl_log import DdlLog


class KnownSchemas(Protocol):
    """The statements and the definitions of tables that a stream has met."""

    ddl: DdlLog

    def sources(self) -> set[SourceTable]:
        """The tables with a known definition."""
        ...

    def sources_of(self, topics: Iterable[str]) -> set[SourceTable]:
        """Those of them whose records come from these topics, judged by the topics' names."""
        ...

    def versions(self, source: SourceTable) -> tuple[SchemaVersion, ...]:
        """All definitions of a table, ordered by position."""
        ...
