"""Stores table definitions that arrive among the rows (Maxwell's DDL) in the stream's state.

A topic of rows is not read again from its beginning, so the definitions in it must be stored. If the state is lost, no
row is lost: rows of tables without a definition go to quarantine, and can be replayed once ``source.schemas`` declares
the tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from binlake.position.state_document import StateDocument
from binlake.settings import Settings
from hudilake.storage import open_storage

FILE = "definitions.json"
_DOCUMENT = StateDocument(
    FILE,
    "the definitions of tables",
    "restore the file, or delete it and declare the tables in source.schemas",
)


class Definitions:
    """The records of a stream that define tables, in the order in which they were learned."""

    def __init__(self, settings: Settings) -> None:
        self._uri, self._options = settings.state_uri, settings.state_options()
        self._wanted = settings.source.format in ("auto", "maxwell")
        self._loaded = False

    def load(self) -> list[bytes]:
        """The records that earlier runs stored, at the first call; later calls return an empty list.

        Raises CorruptDataError, StorageError.
        """
        if self._loaded or not self._wanted:
            return []
        self._loaded = True
        return [record.encode() for record in self._read()]

    def keep(self, records: Sequence[bytes]) -> None:
        """Add records to those stored by now: a replay may write at the same time. Raises as ``load``."""
        kept = dict.fromkeys([*self._read(), *(record.decode() for record in records)])
        _DOCUMENT.write(open_storage(self._uri, self._options), {"records": list(kept)})

    def _read(self) -> list[str]:
        def parse(fields: dict[str, Any]) -> list[str]:
            return [str(record) for record in fields["records"]]

        return _DOCUMENT.read(open_storage(self._uri, self._options), parse) or []
