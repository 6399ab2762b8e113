"""Stores table definitions that arrive among the rows (Maxwell's DDL, a binlog) in the stream's state.

A topic of rows is not read again from its beginning, so the definitions in it must be stored. If the state is lost, no
row is lost: rows of tables without a definition go to quarantine, and can be replayed once ``source.schemas`` declares
the tables.

A binlog is not read again either, and a statement that was read may wait to be carried out. Its rows bring their own
definitions, so a lost statement would be missed in silence. Therefore the lake has a copy beside the state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
        self._lake = settings.lake if settings.source.mysql is not None else None
        self._copy = replace(_DOCUMENT, path=f".binlake/{settings.name}.{FILE}")
        self._wanted = settings.source.format in ("auto", "maxwell")
        self._loaded = False

    def load(self) -> list[bytes]:
        """The records that earlier runs stored, at the first call; later calls return an empty list.

        Raises CorruptDataError, StorageError.
        """
        if self._loaded or not self._wanted:
            return []
        records = [record.encode() for record in self._read()]
        self._loaded = True
        return records

    def keep(self, records: Sequence[bytes]) -> None:
        """Add records to those stored by now: a replay may write at the same time. Raises as ``load``."""
        kept = dict.fromkeys([*self._read(), *(record.decode() for record in records)])
        if self._lake is not None:  # first, so that the copy never has less
            self._copy.write(open_storage(self._lake.uri, self._lake.storage_options()), {"records": list(kept)})
        _DOCUMENT.write(open_storage(self._uri, self._options), {"records": list(kept)})

    def _read(self) -> list[str]:
        def parse(fields: dict[str, Any]) -> list[str]:
            return [str(record) for record in fields["records"]]

        stored = _DOCUMENT.read(open_storage(self._uri, self._options), parse)
        if stored is None and self._lake is not None:
            stored = self._copy.read(open_storage(self._lake.uri, self._lake.storage_options()), parse)
        return stored or []
