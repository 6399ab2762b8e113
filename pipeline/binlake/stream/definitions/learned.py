"""Stores table definitions that arrive among the rows (Maxwell's DDL) in the stream's state.

A topic of rows is not read again from its beginning, so the definitions in it must be stored. If the state is lost, no
row is lost: rows of tables without a definition go to quarantine, and can be replayed once ``source.schemas`` declares
the tables.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from binlake.settings import Settings
from hudilake.errors import CorruptDataError
from hudilake.storage import StorageNotFoundError, open_storage

FILE = "definitions.json"
_VERSION = 1


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
        document = {"version": _VERSION, "records": list(kept)}
        open_storage(self._uri, self._options).write(FILE, json.dumps(document, ensure_ascii=False).encode())

    def _read(self) -> list[str]:
        try:
            document = json.loads(open_storage(self._uri, self._options).read(FILE))
            if document["version"] != _VERSION:
                raise ValueError(f"version {document['version']}")
            return [str(record) for record in document["records"]]
        except StorageNotFoundError:
            return []
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptDataError(
                f"the definitions of tables cannot be read: {error}",
                do_next="restore the file, or delete it and declare the tables in source.schemas",
                path=f"{self._uri}/{FILE}",
            ) from error
