"""The steps of an erasure, in an order in which each can be repeated.

State after a crash: the record of the erasure has what was asked for. Whoever erases the same keys again plans anew, so
he finds what is left; pending commits are rolled back, pending compactions and cleans are finished first, as after any
crash.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hudilake.errors import ConfigError, CorruptDataError
from hudilake.format.definition.change_logs import change_log_of
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.names import REPAIRS_PATH, parse_change_log_name
from hudilake.metadata.records.layout import METADATA_PATH
from hudilake.metadata.services.purge import purge
from hudilake.read.versions import group_files, read_versions, still_there
from hudilake.services.cleaning import clean_slices
from hudilake.services.erasure.record import ErasureRecord, Ledger, erasure_records
from hudilake.services.erasure.rewrite import Rewrite
from hudilake.services.erasure.search import ErasurePlan, Fate, changes_with, plan_erasure, refuse_kind
from hudilake.services.erasure.traces import ByteScan, Quarry, Trace, scan
from hudilake.services.savepoint import delete_savepoint
from hudilake.storage.base import Storage, every_file
from hudilake.table.table import HudiTable


@dataclass(frozen=True)
class ErasureReport:
    """What an erasure has done.

    Args:
        record: which files held a row, and when each went.
        scan: what is left, of a table whose bytes were all read again.

    Example:
        >>> done = orders.erase([{"id": 2, "day": "d1"}])
        >>> done.scan.is_clean, all(held.gone_ms is not None for held in done.record.files)
        (True, True)
        >>> orders.count("id = 2")
        0
    """

    record: ErasureRecord
    scan: ByteScan

    @property
    def is_done(self) -> bool:
        """Whether nothing is left."""
        return self.scan.is_clean


def erase(
    rewrite: Rewrite, keys: Collection[str], texts: Collection[bytes] = (), *, release_savepoints: bool = False
) -> ErasureReport:
    """Take rows and all their versions out of every file of a table, and read all bytes again.

    Args:
        rewrite: of the table, which is refreshed here. Readers and writers may go on meanwhile; a reader that has
            planned to read a file that goes fails, and begins again.
        keys: record keys, as ``_hoodie_record_key`` has them; keys without a row are no error.
        texts: to be looked for in the end beside those of the rows.
        release_savepoints: delete the savepoints that hold one of the files.

    Raises ConfigError for savepoints that hold a row, UnsupportedError for a table of another kind, TransientError
    while others compact, cluster or restore, CorruptDataError, StorageError. After an error the same call goes on.
    """
    table = rewrite.table
    table.config.check_writable()
    refuse_kind(table)
    table.rollback_pending()
    table.refresh()
    ledger = _ledger(table, frozenset(keys))
    plan = plan_erasure(table, keys, rewrite.no_texts)
    check_savepoints(table.config.name, plan, release_savepoints=release_savepoints)
    ledger.hold(plan, texts)
    for savepoint in plan.held_by:
        delete_savepoint(table, savepoint.instant)
        ledger.record.savepoints.append(savepoint.instant)
        ledger.save()
    rewrite.take_out({h.group for h in plan.of(Fate.REWRITTEN) if h.group is not None}, plan.keys)
    clean_slices(table, plan.groups)
    _filter_deletes(table, plan, ledger)
    for path in dict.fromkeys(_repair_of(holder.path) for holder in plan.of(Fate.REPAIR)):
        table.storage.delete_tree(path)
    if plan.groups or plan.of(Fate.METADATA):
        _purge_metadata(table, ledger)
    _note_gone(table, ledger)
    quarry = Quarry(plan.keys, frozenset(ledger.record.texts))
    left = scan(table.storage, quarry, besides=ledger.record.path)
    _look_into_change_logs(table, plan.keys, left)
    if left.is_clean:
        ledger.end()
    return ErasureReport(ledger.record, left)


def _look_into_change_logs(table: HudiTable, keys: Collection[str], left: ByteScan) -> None:
    """Take in which change logs still have a row of the keys: their rows may have no record key, so a scan of bytes
    finds texts alone."""
    for info in every_file(table.storage) if change_log_of(table.config.extra) is not None else ():
        if parse_change_log_name(info.path.rpartition("/")[2]) is not None:
            try:
                if changes_with(table, info, keys):
                    left.finds[info.path] = [*left.finds.get(info.path, ()), Trace("change log")]
            except CorruptDataError as error:
                left.unread[info.path] = error.what


def unfinished_keys(storage: Storage) -> frozenset[str]:
    """The record keys of a table's erasures that are not done. Raises CorruptDataError, StorageError."""
    return frozenset(key for known in erasure_records(storage) if known.ended_ms is None for key in known.keys)


def keys_with(table: HudiTable, values: Mapping[str, object]) -> frozenset[str]:
    """The record keys of the rows with these values, in all files that are kept, and those that an erasure which is not
    done still has: of a table without a key, whose rows are named by what they say.

    ``values``: column -> value in its type.

    Raises ConfigError for no values and for columns that the table does not have, CorruptDataError, StorageError.
    """
    if not values or (unknown := sorted(values.keys() - set(table.schema.names))):
        raise ConfigError(
            f"the table has no column {', '.join(unknown)}" if values else "no values name the rows",
            do_next="give values of the table's columns: all rows that have them are erased",
            table=table.config.name,
        )
    keys = unfinished_keys(table.storage)
    for files in group_files(table):
        rows = read_versions(table, still_there(table, files), columns=sorted(values))
        rows = rows.filter(pc.invert(rows.column("deleted")))
        for name, value in values.items():
            column = rows.column(name)
            rows = rows.filter(pc.is_null(column) if value is None else pc.equal(column, pa.scalar(value, column.type)))
        keys |= frozenset(rows.column(RECORD_KEY_FIELD).to_pylist())
    return keys


def _ledger(table: HudiTable, keys: frozenset[str]) -> Ledger:
    """That of the same keys which is not done, or a new one."""
    for known in erasure_records(table.storage):
        if known.ended_ms is None and known.keys and keys == set(known.keys):
            return Ledger(table.storage, known)
    return Ledger(table.storage, ErasureRecord(table.clock.next(), sorted(keys)))


def check_savepoints(table: str, plan: ErasurePlan, *, release_savepoints: bool) -> None:
    """Raise ConfigError for savepoints that hold a row and are not to be released."""
    if plan.held_by and not release_savepoints:
        names = ", ".join(f"{s.instant} ({s.comment})" if s.comment else s.instant for s in plan.held_by)
        raise ConfigError(
            f"savepoints hold the row: {names}",
            do_next="release them with --release-savepoints, or delete them yourself; nothing was changed",
            table=table,
        )


def _filter_deletes(table: HudiTable, plan: ErasurePlan, ledger: Ledger) -> None:
    """Write the files of deletes that are kept beside the format again without the keys."""
    quarry = Quarry(plan.keys)
    for holder in plan.of(Fate.FILTERED):
        with table.exclusively():
            rows = pa.ipc.open_file(table.storage.read(holder.path)).read_all()
            kept = rows.filter(pc.invert(quarry.named(rows.column(RECORD_KEY_FIELD))))
            if len(kept):
                sink = pa.BufferOutputStream()
                with pa.ipc.new_file(sink, kept.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as file:
                    file.write_table(kept)
                table.storage.write(holder.path, sink.getvalue().to_pybytes())
            else:
                table.storage.delete(holder.path)
        ledger.rewritten(holder.path)


def _repair_of(path: str) -> str:
    """The folder of the repair that kept a file."""
    return "/".join(path.split("/")[: REPAIRS_PATH.count("/") + 2])


def _purge_metadata(table: HudiTable, ledger: Ledger) -> None:
    """Also of the partitions whose files an erasure that has died had deleted already."""
    folders = {held.path.rpartition("/")[0] for held in ledger.record.files}
    with table.exclusively():
        table.refresh()
        table.state.forget_index()
        if (index := table.metadata_table) is not None:
            purge(index, sorted(path for path in folders if not f"{path}/".startswith(".hoodie/")))


def _note_gone(table: HudiTable, ledger: Ledger) -> None:
    timelines = [("", table.timeline)]
    if table.metadata_table is not None:
        timelines.append((METADATA_PATH, table.metadata_table.timeline))
    ledger.note_gone(timelines)
