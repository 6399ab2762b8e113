"""Stores TRUNCATEs of tables that are not in the lake yet, until older rows of these tables come.

In binlog order they need not be stored. A replay may read a TRUNCATE first, and rows from before it hours later, or in
its next run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from binlake.decode.changes import SourceTable
from binlake.rows.upsert.truncates import NOTHING_TRUNCATED, Truncates
from hudilake.errors import CorruptDataError
from hudilake.storage import Storage, StorageNotFoundError

_FILE = "truncates.json"
_VERSION = 1


class EarlyTruncates:
    """TRUNCATEs by lake table, stored in a replay's state."""

    def __init__(self, state: Storage) -> None:
        self._state = state
        self._known = self._load()

    def __iter__(self) -> Iterator[SourceTable]:
        return iter(self._known)

    def of(self, source: SourceTable) -> Truncates:
        """The TRUNCATEs of a table."""
        return self._known.get(source, NOTHING_TRUNCATED)

    def keep(self, found: Mapping[SourceTable, Truncates]) -> None:
        """Store more TRUNCATEs. Raises StorageError."""
        news = {source: one for source, one in found.items() if one.news_to(self.of(source))}
        if not news:
            return
        self._known |= {source: self.of(source).merged(one) for source, one in news.items()}
        tables = [
            [s.database, s.table, one.to_text()] for s, one in sorted(self._known.items(), key=lambda i: str(i[0]))
        ]
        document = {"version": _VERSION, "tables": tables}
        self._state.write(_FILE, json.dumps(document, ensure_ascii=False).encode())

    def _load(self) -> dict[SourceTable, Truncates]:
        try:
            document = json.loads(self._state.read(_FILE))
            if document["version"] != _VERSION:
                raise ValueError(f"version {document['version']}")
            return {SourceTable(d, t): Truncates.from_text(text) for d, t, text in document["tables"]}
        except StorageNotFoundError:
            return {}
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptDataError(
                f"the TRUNCATEs that replays keep cannot be read: {error}",
                do_next="restore the file; or delete it, if the hours with these TRUNCATEs are replayed again",
                path=f"{self._state.uri}/{_FILE}",
            ) from error
