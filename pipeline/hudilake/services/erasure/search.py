"""Which files of a table hold some record keys, what becomes of each, and which texts tell of their rows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudilake.commit.savepoint_record import Savepoint, savepoints
from hudilake.errors import CorruptDataError
from hudilake.format.definition.keys import record_keys
from hudilake.format.definition.kind_support import TableOperation
from hudilake.format.definition.schema import META_FIELDS, RECORD_KEY_FIELD
from hudilake.format.files.base_file import read_base_file
from hudilake.format.files.change_log import decode_change_log
from hudilake.format.files.data_block import decode_data_block
from hudilake.format.files.delete_block import decode_deletes
from hudilake.format.files.log_file import BlockType, whole_blocks
from hudilake.format.files.names import (
    REPAIRS_PATH,
    TOMBSTONES_PATH,
    BaseFileName,
    ChangeLogName,
    in_partition,
    parse_data_name,
    parse_written_name,
)
from hudilake.metadata.records.layout import METADATA_PATH
from hudilake.services.cleaning import listing
from hudilake.services.erasure.traces import LEAST_TEXT_BYTES, Quarry, traces
from hudilake.storage.base import FileInfo, Storage, StorageNotFoundError, every_file
from hudilake.table.table import HudiTable

#: The records of erasures, and what is asked for while one is not done.
ERASURES_PATH = ".hoodie/.binlake/erasures"


class Fate(StrEnum):
    """What an erasure does to a file that holds a row."""

    REWRITTEN = "its file group gets a new base file, and this one is cleaned"
    CLEANED = "cleaned: no newest file slice has it"
    METADATA = "the metadata table is compacted, and this file is cleaned"
    FILTERED = "written again without the row"
    REPAIR = "what a repair kept is deleted"
    LEFT = "not of a completed commit: binlake fsck --repair takes it away"


@dataclass(frozen=True, slots=True)
class Holder:
    """A file that holds one of the keys, or a text of their rows. ``path``: relative to the table's root; ``size`` in
    bytes. ``group``: partition path and file id of a data file."""

    path: str
    size: int
    fate: Fate
    group: tuple[str, str] | None = None


@dataclass
class ErasurePlan:
    """What an erasure will do.

    Args:
        keys: the record keys.
        holders: the files that hold one of them, by path.
        texts: values of their rows that no other row of the same files has, to be looked for everywhere.
        held_by: the savepoints that hold one of the files.
        unread: path -> why a file could not be taken apart.
    """

    keys: frozenset[str]
    holders: dict[str, Holder] = field(default_factory=dict)
    texts: frozenset[bytes] = frozenset()
    held_by: list[Savepoint] = field(default_factory=list)
    unread: dict[str, str] = field(default_factory=dict)

    @property
    def groups(self) -> set[tuple[str, str]]:
        """The file groups whose files hold a key."""
        return {holder.group for holder in self.holders.values() if holder.group is not None}

    def of(self, fate: Fate) -> list[Holder]:
        """The holders of a fate, by path."""
        return [holder for _, holder in sorted(self.holders.items()) if holder.fate is fate]


def refuse_kind(table: HudiTable) -> None:
    """Raise UnsupportedError for a table of a kind without erasure. Nothing is read or rolled back before it."""
    table.config.kind.refuse(TableOperation.ERASURE, table.config.name)


def plan_erasure(table: HudiTable, keys: Collection[str], no_texts: Collection[str] = ()) -> ErasurePlan:
    """Look for record keys in all files of a table, as of its last refresh. Of base files the keys are read first, and
    the rows of those that hold one; all other files are read whole.

    Args:
        table: open.
        keys: record keys, as ``_hoodie_record_key`` has them.
        no_texts: columns whose texts tell nothing of a row: they may be anywhere.

    Raises UnsupportedError for a table of a kind without erasure, CorruptDataError for a timeline or a metadata table
    that cannot be read, StorageError.
    """
    refuse_kind(table)
    plan = ErasurePlan(frozenset(keys))
    newest = _newest_files(table)
    listed = {info.path for infos in listing(table).values() for info in infos}
    own: list[pa.Table] = []
    others: list[FileInfo] = []
    for info in every_file(table.storage):
        name = parse_written_name(info.path.rpartition("/")[2])
        if name is None or info.path.startswith(".hoodie/"):
            others.append(info)
            continue
        try:
            if isinstance(name, ChangeLogName):
                rows = changes_with(table, info, plan.keys)
            else:
                rows = _rows_with(table.storage, info, plan.keys)
        except CorruptDataError as error:
            plan.unread[info.path] = error.what
            continue
        if rows is None:
            continue
        own += rows
        group = info.path.rpartition("/")[0], name.file_id
        completed = table.timeline.is_completed(name.instant) and (info.path in listed or not listed)
        fate = Fate.LEFT if not completed else Fate.REWRITTEN if info.path in newest else Fate.CLEANED
        plan.holders[info.path] = Holder(info.path, info.size, fate, group)
    plan.texts = _texts_of(own, table, plan.keys, no_texts)
    _look_beside(table.storage, others, plan)
    held = {_written(h.group[0], h.path.rpartition("/")[2]) for h in plan.holders.values() if h.group is not None}
    for known in savepoints(table.storage, table.timeline):
        if held & {_written(path, name) for path, names in known.files.items() for name in names}:
            plan.held_by.append(known)
    return plan


def _written(partition_path: str, name: str) -> tuple[str, str, str]:
    """What a data file and the change log beside it have in common: partition path, file id, instant."""
    parsed = parse_written_name(name)
    return (partition_path, parsed.file_id, parsed.instant) if parsed is not None else (partition_path, name, "")


def _newest_files(table: HudiTable) -> set[str]:
    slices = table.file_slices()
    bases = [piece.base_file for piece in slices if piece.base_file is not None]
    logs = {log.path for piece in slices for log in piece.log_files}
    changes = {
        in_partition(base.partition_path, str(ChangeLogName(base.name.file_id, base.name.instant))) for base in bases
    }
    return {base.path for base in bases} | logs | changes


def _rows_with(storage: Storage, info: FileInfo, keys: Collection[str]) -> list[pa.Table] | None:
    """The rows of a data file with one of the keys, in parts of unlike columns; None for a file without."""
    wanted = pa.array(sorted(keys), pa.string())
    name = parse_data_name(info.path.rpartition("/")[2])
    try:
        if isinstance(name, BaseFileName):
            known = read_base_file(storage, info.path, [RECORD_KEY_FIELD], info.size).column(0)
            if not pc.any(pc.is_in(known, value_set=wanted)).as_py():
                return None
            rows = read_base_file(storage, info.path, None, info.size)
            return [_marked(rows, wanted)]
        return _log_rows(storage.read(info.path), info.path, wanted) if info.size else None
    except StorageNotFoundError:
        return None  # cleaned or rolled back meanwhile


def changes_with(table: HudiTable, info: FileInfo, keys: Collection[str]) -> list[pa.Table] | None:
    """The images in a change log whose rows have one of the keys, and the others; None for a log without. In the mode
    that has no record key it is that of the images, by the columns of the key."""
    fields, schema = table.config.record_key_fields, table.schema
    try:
        changes = list(decode_change_log(table.storage.read(info.path), info.path))
    except StorageNotFoundError:
        return None
    images, known = list[dict[str, Any]](), list[str | None]()
    for change in changes:
        for image in (change.get("before"), change.get("after")):
            if image is not None or change.get("record_key") is not None:
                images.append({name: cell for name, cell in (image or {}).items() if name in schema.names})
                known.append(change.get("record_key"))
    if not images:
        return None
    columns = [schema.field(name) for name in schema.names if name in fields or _is_text(schema.field(name).type)]
    rows = pa.Table.from_pylist(images, pa.schema(columns))
    names = pc.coalesce(pa.array(known, pa.string()), record_keys(rows, fields))
    marked = _marked(rows.append_column(RECORD_KEY_FIELD, names), pa.array(sorted(keys), pa.string()))
    return [marked] if pc.any(marked.column(_MARK)).as_py() else None


def _log_rows(data: bytes, path: str, wanted: pa.Array) -> list[pa.Table] | None:
    parts, there = [], False
    for block in whole_blocks(data, path):
        if block.block_type is BlockType.DELETE:
            rows = decode_deletes(block.content, path)
        else:
            rows = decode_data_block(block, None, path)
        if RECORD_KEY_FIELD in rows.column_names:
            parts.append(_marked(rows, wanted))
            there = there or bool(pc.any(parts[-1].column(_MARK)).as_py())
    return parts if there else None


_MARK = "__erased"


def _marked(rows: pa.Table, wanted: pa.Array) -> pa.Table:
    """The rows with a column that says which have one of the keys."""
    return rows.append_column(_MARK, pc.is_in(rows.column(RECORD_KEY_FIELD), value_set=wanted))


def _texts_of(
    parts: Collection[pa.Table], table: HudiTable, keys: Collection[str], no_texts: Collection[str]
) -> frozenset[bytes]:
    """Texts and bytes of the marked rows, long enough to be looked for, without what other rows of the same files have
    too, and what names the table, its columns or a partition."""
    passed_over = {*META_FIELDS, _MARK, *table.config.partition_fields, *no_texts}
    mine, others = {key.encode() for key in keys}, set[bytes]()
    for rows in parts:
        for name in rows.column_names:
            if name in passed_over or not _is_text(rows.schema.field(name).type):
                continue
            column = rows.column(name).cast(pa.binary())
            mine |= set(pc.unique(column.filter(rows.column(_MARK))).to_pylist()) - {None}
            others |= set(pc.unique(column.filter(pc.invert(rows.column(_MARK)))).to_pylist()) - {None}
    names = table.config.to_properties() + table.state.newest_avro_schema().encode()
    left = {text for text in mine if len(text) >= LEAST_TEXT_BYTES and text not in names}
    for other in others:
        left -= {text for text in left if text in other}
    return frozenset(left)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _look_beside(storage: Storage, files: Collection[FileInfo], plan: ErasurePlan) -> None:
    """Look into the files that are no data files: the metadata table, deletes that are kept, repairs, the timeline."""
    quarry = Quarry(plan.keys, plan.texts)
    for info in files:
        if info.path.startswith(f"{ERASURES_PATH}/"):
            continue
        try:
            if traces(storage.read(info.path), quarry):
                plan.holders[info.path] = Holder(info.path, info.size, _fate_beside(info.path))
        except StorageNotFoundError:
            continue
        except CorruptDataError as error:
            plan.unread[info.path] = error.what


def _fate_beside(path: str) -> Fate:
    for prefix, fate in (
        (METADATA_PATH, Fate.METADATA),
        (TOMBSTONES_PATH, Fate.FILTERED),
        (REPAIRS_PATH, Fate.REPAIR),
    ):
        if path.startswith(f"{prefix}/"):
            return fate
    return Fate.LEFT
