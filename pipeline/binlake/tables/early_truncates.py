"""Stores TRUNCATEs of tables that are not in the lake yet, until older rows of these tables come.

In binlog order they need not be stored. A replay may read a TRUNCATE first, and rows from before it hours later, or in
its next run. A stream may read it from one partition, and rows from before it in a later batch from another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from binlake.decode.changes import SourceTable
from binlake.position.state_document import StateDocument
from binlake.rows.upsert.truncates import NOTHING_TRUNCATED, Truncates
from hudilake.storage import Storage

_DOCUMENT = StateDocument(
    "truncates.json",
    "the TRUNCATEs of tables that are not there yet",
    "restore the file; or delete it, if no rows from before these TRUNCATEs will come any more",
)


class EarlyTruncates:
    """TRUNCATEs by lake table, stored in the state of a stream or a replay."""

    def __init__(self, state: Storage) -> None:
        self._state = state
        self._known = self._load()

    def __iter__(self) -> Iterator[SourceTable]:
        return iter(self._known)

    def joined(self, source: SourceTable, truncates: Truncates) -> Truncates:
        """The TRUNCATEs of a table with those that are stored: also of a table that is there, for who made it may have
        died before its first commit."""
        early = self._known.get(source)
        return truncates if early is None else truncates.merged(early)

    def keep(self, found: Mapping[SourceTable, Truncates]) -> None:
        """Store more TRUNCATEs. Raises StorageError."""
        news = {source: one for source, one in found.items() if one.news_to(self._of(source))}
        if not news:
            return
        self._known |= {source: self._of(source).merged(one).bounded() for source, one in news.items()}
        tables = [
            [s.database, s.table, one.to_text()] for s, one in sorted(self._known.items(), key=lambda i: str(i[0]))
        ]
        _DOCUMENT.write(self._state, {"tables": tables})

    def _of(self, source: SourceTable) -> Truncates:
        return self._known.get(source, NOTHING_TRUNCATED)

    def _load(self) -> dict[SourceTable, Truncates]:
        def parse(fields: dict[str, Any]) -> dict[SourceTable, Truncates]:
            return {SourceTable(d, t): Truncates.from_text(text) for d, t, text in fields["tables"]}

        return _DOCUMENT.read(self._state, parse) or {}
