"""All tables of the lake that a stream has met, opened on first use."""

from __future__ import annotations

import dataclasses

import pyarrow as pa

from binlake.rows.upsert.target import Target, is_keyless
from binlake.settings import LockingSettings, TableRules
from binlake.tables.definition import table_schema
from binlake.tables.lake_table import LakeTable
from binlake.tables.merging_check import check_tracked
from binlake.tables.presence import KnownTable, check_free, judged
from hudilake.errors import ConfigError, LakeError
from hudilake.locking.choose import LockConfig
from hudilake.locking.ownership import Locking
from hudilake.storage import AlreadyExistsError, Storage, StorageNotFoundError
from hudilake.table.table import HudiTable
from lakemetastore.client.registration import NO_REGISTRAR, Registrar


def locking(settings: LockingSettings, owner: str, *, one_run: bool = False) -> Locking:
    """The locking of a writer called ``owner``; arguments as for ``Locking``. Raises ConfigError."""
    config = LockConfig(
        provider=settings.lock,
        wait_s=settings.wait_seconds,
        validity_s=settings.validity_seconds,
        renew_s=settings.renew_seconds,
        heartbeat_timeout_s=settings.heartbeat_timeout_seconds,
        foreign_expiry_s=settings.foreign_expiry_seconds,
    )
    return Locking(config, owner, one_run)


class Lake:
    """All tables of the lake that this stream has met, opened on first use.

    Args:
        root: of the lake.
        locking: how tables are shared with other writers.
        registrar: is given the completed instants.
        ends: whether the stream ends: its tables are compacted inline then, for nothing waits for a later compaction.
        base_from_rows: as in ``WriteContext``.
        loads: whether the tables that are being loaded may be opened; no other writer may write to them.
    """

    def __init__(
        self,
        root: Storage,
        locking: Locking | None = None,
        registrar: Registrar = NO_REGISTRAR,
        *,
        ends: bool = False,
        base_from_rows: int | None = None,
        loads: bool = False,
    ) -> None:
        self.root = root
        self.registrar = registrar
        self._ends, self._base_from_rows, self._loads = ends, base_from_rows, loads
        self._locking = locking
        self._open: dict[str, LakeTable] = {}
        self._known: dict[str, KnownTable] = {}
        #: How often a table was opened or created: facts derived from the open tables are valid until it grows.
        self.openings = 0

    def expect(self, known: KnownTable) -> None:
        """Note a table that must be there: ``get`` raises LostTableError if it is not, and nothing creates it."""
        self._known[known.path] = known

    def give_up(self, path: str) -> None:
        """Take back ``expect``: the table may be created anew."""
        self._known.pop(path, None)
        self.forget(path)

    def get(self, rules: TableRules) -> LakeTable | None:
        """The table at the rules' path, opened if necessary; None if it does not exist.

        Raises LostTableError for a table that must be there, and LakeError for one that cannot be opened.
        """
        opened, known = self._open.get(rules.path), self._known.get(rules.path)
        if opened is None:
            storage, rules = self.root.sub(rules.path), self._rules(rules)
            if known is None and not HudiTable.exists(storage):
                return None
            try:
                opened = self._kept(rules, LakeTable.open(storage, rules, self._locking, known))
            except ConfigError:
                if known is not None:
                    known.check_there(storage)
                raise
            except StorageNotFoundError as error:
                raise judged(storage, error) from error
            self._refuse_half(opened)
        return opened

    def _refuse_half(self, table: LakeTable) -> None:
        """Raise ConfigError for a table whose load was interrupted: it has some of the source's rows."""
        if table.load is None or table.load.done or self._loads:
            return
        self.forget(table.rules.path)
        raise table.load.interrupted(table.storage.uri)

    def judged(self, rules: TableRules, error: LakeError) -> LakeError:
        """An error of the table at the rules' path, as ``presence.judged``."""
        return judged(self.root.sub(rules.path), error)

    def look(self, rules: TableRules) -> LakeTable | None:
        """The table at the rules' path, opened read-only: nothing is rolled back or repaired."""
        storage = self.root.sub(rules.path)
        if not HudiTable.exists(storage):
            return None
        self._open[rules.path] = LakeTable.look(storage, rules)
        return self._open[rules.path]

    def get_or_create(self, rules: TableRules, target: Target, columns: pa.Schema) -> LakeTable:
        """The table at the rules' path, created for ``target`` if it does not exist. One that was created and got no
        commit has the key of before a death; it gets the target's.

        Raises ConfigError if it does not belong to ``target``, or there are other files where it would be created.
        """
        known = self.get(rules)
        if known is None:
            known = self._kept(rules, self._created(rules, target, columns))
        try:
            known.check(target)
        except ConfigError:
            if not _may_get_key(known, target) or not known.hudi.key_anew(target.config, table_schema(target, columns)):
                raise
            known = self._kept(rules, LakeTable.open(known.storage, self._rules(rules), self._locking))
            known.check(target)
        return known

    def _created(self, rules: TableRules, target: Target, columns: pa.Schema) -> LakeTable:
        storage, rules = self.root.sub(rules.path), self._rules(rules)
        check_free(storage)
        check_tracked(target.merging, columns.names, rules.path)
        try:
            return LakeTable.create(storage, rules, target, columns, self._locking)
        except AlreadyExistsError:  # another writer created the table first
            return LakeTable.open(storage, rules, self._locking)

    def _rules(self, rules: TableRules) -> TableRules:
        rule = rules.compaction
        if not self._ends or rule is None or rule.mode != "async":
            return rules
        return dataclasses.replace(rules, compaction=rule.model_copy(update={"mode": "inline"}))

    def _kept(self, rules: TableRules, table: LakeTable) -> LakeTable:
        table.registrar, table.base_from_rows = self.registrar, self._base_from_rows
        self._open[rules.path] = table
        self.openings += 1
        return table

    def opened(self, path: str) -> LakeTable | None:
        """The table at a path if it has been opened; does not access the storage."""
        return self._open.get(path)

    def forget(self, path: str) -> None:
        """Drop the cached table, after a failure that may have made it invalid."""
        self._open.pop(path, None)


def _may_get_key(known: LakeTable, target: Target) -> bool:
    """Whether a table that has no commit record may get the target's key. The empty commit of a rollback names columns,
    and a table without a key needs two more."""
    return known.source is None and not (is_keyless(target.config) and known.hudi.timeline.completed())
