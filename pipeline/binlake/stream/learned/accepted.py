"""Which tables have taken records under the rules that the settings have for them now.

A record that such a table refuses is a fault of the record. Where no record was ever taken, the rules may be wrong for
all of them. The answer outlives the process, so that the fate of a record does not depend on where a batch was cut or
the stream started.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from functools import cached_property

from binlake.decode.changes import SourceTable
from binlake.settings import Settings
from hudilake.storage import Storage, StorageNotFoundError

_VERSION = 1


class AcceptedRules:
    """The tables of a stream that have taken records, each with a digest of its rules at that time.

    Args:
        settings: of the stream.
        root: of the lake.
    """

    def __init__(self, settings: Settings, root: Storage) -> None:
        self._settings, self._root = settings, root
        self._path = f".binlake/{settings.name}/accepted.json"
        self._taken: set[SourceTable] = set()

    def has(self, source: SourceTable) -> bool:
        """Whether a lake table has taken records under its present rules. Raises StorageError."""
        return source in self._taken or self._stored.get(source) == self._digest(source)

    def keep(self, sources: Iterable[SourceTable]) -> None:
        """Note the tables that have taken records of a batch. Raises StorageError."""
        new = {source: self._digest(source) for source in sources if source not in self._taken}
        if any(self._stored.get(source) != digest for source, digest in new.items()):
            self._stored.update(new)
            tables = sorted([one.database, one.table, digest] for one, digest in self._stored.items())
            document = {"version": _VERSION, "tables": tables}
            self._root.write(self._path, json.dumps(document, ensure_ascii=False).encode())
        self._taken.update(new)

    def _digest(self, source: SourceTable) -> str:
        """Of the rules that decide which records can be taken."""
        rules = self._settings.table_rules(source)
        groups = [(one.name, one.key, one.columns, sorted(one.others)) for one in rules.groups]
        shaping = (rules.key, rules.partition, rules.columns, rules.merge, groups, rules.kind, rules.index)
        return hashlib.sha256(repr((shaping, self._settings.tables.routes)).encode()).hexdigest()

    @cached_property
    def _stored(self) -> dict[SourceTable, str]:
        """None if there is no such file, or it cannot be read: the tables show again that they take records."""
        try:
            document = json.loads(self._root.read(self._path))
            if document["version"] != _VERSION:
                return {}
            return {SourceTable(database, table): digest for database, table, digest in document["tables"]}
        except (StorageNotFoundError, ValueError, KeyError, TypeError):
            return {}
