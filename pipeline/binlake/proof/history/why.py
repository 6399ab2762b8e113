"""Every version of one row, where it comes from, and why it won or lost.

What the lake stores is read first: the files of the row's file group and the commits. Superseded events are stored
nowhere in the lake, nor are a row's GTID and Kafka offset. They are looked up in Kafka, in the offset ranges of the
commits that wrote to the file group, as far as Kafka still has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from binlake.proof.history.commits import CommitKind, CommitLog
from binlake.proof.history.events import KafkaLook, look_into_kafka
from binlake.proof.history.history import Line, LineKind, RowHistory, operation, rank
from binlake.proof.history.keys import RowKey
from binlake.proof.history.opened import refuse_merged
from binlake.proof.history.verdicts import Version, VersionVerdict, verdicts, versions_of
from binlake.rows.merging.stored_versions import stored_versions
from binlake.schema.rules.entries import DdlEntry
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.read.versions import GroupFiles, group_files
from hudilake.table.table import HudiTable
from hudilake.wording import counted


def row_histories(
    table: HudiTable,
    key: RowKey,
    log: CommitLog,
    partitions: Sequence[str] | None = None,
    kafka: KafkaLook | None = None,
) -> list[RowHistory]:
    """The histories of a row: one for each partition that stores a version of it, or had files that are cleaned.

    Args:
        table: open; only the file groups of the key's bucket are read, all of them for a table without a key.
        key: the row.
        log: the table's commits.
        partitions: the partition paths to look into; None for all.
        kafka: how to look up events in Kafka; None to leave that out.

    Raises CorruptDataError, UnsupportedError, StorageError, and the errors of Kafka.
    """
    refuse_merged(table)
    histories: list[RowHistory] = []
    for files in group_files(table, key.buckets(table), partitions):
        rows = _rows(table, files, key)
        names = pc.unique(rows.column(RECORD_KEY_FIELD)).to_pylist()
        if not names and key.lookup is not None and not partitions and files.partition_path:
            continue  # another partition holds the row
        for name in names or ([key.lookup.keys[0].as_py()] if key.lookup is not None else []):
            mine = rows.filter(pc.equal(rows.column(RECORD_KEY_FIELD), name)).to_pylist()
            histories.append(_history(name, mine, files, log))
    if kafka is not None and histories:
        look_into_kafka(histories, log, kafka)
    return histories


def _rows(table: HudiTable, files: GroupFiles, key: RowKey) -> pa.Table:
    columns = [name for name in table.schema.names if name != table.config.ordering_field]
    if key.lookup is not None:
        return stored_versions(table, files, key.lookup.keys, columns)
    rows = stored_versions(table, files, None, columns)
    mask = pa.array([True] * len(rows))
    for name, value in key.values.items():
        same = pc.equal(rows.column(name), pa.scalar(value, rows.schema.field(name).type))
        mask = pc.and_(mask, pc.fill_null(same, False))
    keys = pc.unique(rows.filter(mask).column(RECORD_KEY_FIELD))
    return rows.filter(pc.is_in(rows.column(RECORD_KEY_FIELD), keys))


def _history(name: str, rows: Iterable[Mapping[str, Any]], files: GroupFiles, log: CommitLog) -> RowHistory:
    completed = {instant: commit.completed for instant, commit in log.commits.items()}
    versions = versions_of(rows, files.partition_path, files.newest_paths, completed)
    history = RowHistory(name, files.partition_path, files.file_id)
    judged = zip(versions, verdicts(versions), strict=True)
    history.lines = _with_changes([_version_line(version, verdict, log) for version, verdict in judged])
    history.lines += _ddl_lines(versions, log)
    history.lines += _cleaned_lines(files, log, history)
    history.lines.sort(key=rank)
    return history


def _version_line(version: Version, verdict: VersionVerdict, log: CommitLog) -> Line:
    commit = log.commits.get(version.instant)
    why = verdict.why
    if commit is not None and commit.kind is CommitKind.REVERT:
        revert = log.revert_of(version.instant)
        why = f"{why}; written by binlake revert ({revert.what if revert is not None else 'unknown'})"
    elif commit is not None and commit.kind is CommitKind.DDL:
        did = "removed with its table or partition" if version.values is None else "restated by DDL"
        why = f"{why}; {did} at its own ordering value"
    elif version.values is None and version.order in log.truncated:
        why = f"{why}; a TRUNCATE removed the row"
    return Line(
        LineKind.VERSION,
        "lake",
        why,
        operation(version.values),
        version.order,
        commit,
        verdict.fate,
        version.values,
        files=version.files,
    )


def _with_changes(lines: Sequence[Line]) -> list[Line]:
    """The lines with the columns that differ from the version before, in the source's order."""
    compared_lines, before = [], None
    for line in sorted(lines, key=rank):
        values = line.values
        if values is not None and before is not None:
            compared_lines.append(replace(line, changed=tuple(n for n, v in values.items() if before.get(n) != v)))
        else:
            compared_lines.append(line)
        before = values
    return compared_lines


def _ddl_lines(versions: Sequence[Version], log: CommitLog) -> list[Line]:
    written = {version.instant for version in versions}
    return [_ddl_line(entry, instant, log, touched=instant in written) for entry, instant in log.ddl]


def _ddl_line(entry: DdlEntry, instant: str, log: CommitLog, *, touched: bool) -> Line:
    rulings = "; ".join(map(str, entry.rulings))
    effect = "it restated this row" if touched else "it wrote no version of this row"
    why = f"{rulings}; {effect}"
    return Line(LineKind.DDL, "commits", why, "ddl", entry.order, log.commits.get(instant), statement=entry.statement)


def _cleaned_lines(files: GroupFiles, log: CommitLog, history: RowHistory) -> list[Line]:
    """Commits whose files of this group are gone: versions in them are known only as far as other files hold them."""
    held = set(files.paths)
    lines = []
    for commit in log.commits.values():
        gone = tuple(path for path in commit.files.get(files.file_id, ()) if path not in held and _of(path, files))
        known = any(line.commit is commit for line in history.lines if line.kind is LineKind.VERSION)
        if gone and not known and commit.kind is not CommitKind.COMPACTION:
            lines.append(Line(LineKind.CLEANED, "commits", "its file was cleaned", commit=commit, files=gone))
    if lines:
        history.notes.append(
            f"{counted(len(lines), 'commit')} wrote to this file group in files that were cleaned since: "
            "whether they changed this row is not stored any more"
        )
    return lines


def _of(path: str, files: GroupFiles) -> bool:
    return path.rpartition("/")[0] == files.partition_path
