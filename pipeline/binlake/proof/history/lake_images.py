"""The selected changes as the lake's own versions show them, for when Kafka has no events or events no before image.

A version in the selected range replaced the version before it, which is the before image. That holds only if the lake
stores every change: of several changes of a row in one batch it stores the newest alone. So commits with superseded
records are refused. A DDL statement restates the rows of its time and not their earlier versions, so a range before one
is refused too. A row without an earlier version was inserted, if the oldest base file shows that it was not there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from binlake.decode.changes import SourceTable
from binlake.decode.formats.trace import NO_TRACE
from binlake.proof.history.commits import CommitKind
from binlake.proof.history.row_change import RowChange
from binlake.proof.history.selection import ChangeSelection
from binlake.proof.history.transaction import Changes, OpenTable, RowChanges, refuse_without_images
from binlake.proof.history.verdicts import Version, versions_of
from binlake.rows.merging.stored_versions import stored_versions
from binlake.rows.upsert.route import KEY
from binlake.rows.upsert.target import ORDER_FIELD
from hudilake.errors import BadInputError, ConfigError, UnsupportedError
from hudilake.format.definition.kind_support import TableOperation
from hudilake.read.versions import GroupFiles, group_files


def changes_in_lake(tables: Mapping[SourceTable, OpenTable], selection: ChangeSelection) -> Changes:
    """The selected changes of some tables, from all versions that the lake stores.

    Args:
        tables: the tables; all of their files are read.
        selection: a range of positions with both ends; the lake stores no transaction ids and no times of rows.

    Raises ConfigError for another selection, BadInputError if nothing is selected, a version before the range is not
    stored any more, or a commit has superseded records; UnsupportedError for tables without a key.
    """
    first, last = selection.first, selection.last
    if first is None or last is None or selection != ChangeSelection(first=first, last=last):
        raise ConfigError(
            "the lake stores the positions of changes, but no transactions and no times",
            do_next="give --from-position and --to-position alone, or take the before images from Kafka",
        )
    lake_changes = Changes()
    for source, opened in tables.items():
        opened.table.hudi.config.kind.refuse(TableOperation.REVERT, str(source))
        if opened.table.keyless is not None:
            raise UnsupportedError(
                f"{source}: the rows have no key, so they cannot be told apart",
                do_next="leave the table out: name the others by --table",
            )
        rows = [row for files in group_files(opened.table.hudi) for row in _rows(source, opened, files, first, last)]
        if rows:
            _refuse_incomplete(source, opened, first)
        lake_changes.rows += rows
    if not lake_changes.rows:
        raise BadInputError(
            f"no stored version is selected: {selection}", do_next="check the positions with binlake why"
        )
    refuse_without_images([change for row in lake_changes.rows for change in row.changes])
    return lake_changes


def _rows(source: SourceTable, opened: OpenTable, files: GroupFiles, first: int, last: int) -> list[RowChanges]:
    table = opened.table.hudi
    columns = [name for name in table.schema.names if name != ORDER_FIELD]
    stored = stored_versions(table, files, None, columns)
    inside = [o is None or first <= o <= last for o in stored.column("ordering").to_pylist()]
    keys = {key for key, mine in zip(stored.column(KEY).to_pylist(), inside, strict=True) if mine}
    by_key: dict[str, list[Mapping[str, Any]]] = {}
    for row in stored.to_pylist() if keys else ():
        if row[KEY] in keys:
            by_key.setdefault(row[KEY], []).append(row)
    completed = {instant: commit.completed for instant, commit in opened.log.commits.items()}
    oldest = files.base_files[0].name.instant if files.base_files else None
    row_changes = []
    for key, mine in by_key.items():
        versions = versions_of(mine, files.partition_path, files.newest_paths, completed)
        changes = _changes(source, versions, oldest, first, last)
        if changes:
            row_changes.append(RowChanges(source, files.partition_path, key, tuple(changes)))
    return row_changes


def _changes(
    source: SourceTable, versions: Sequence[Version], oldest: str | None, first: int, last: int
) -> list[RowChange]:
    """The changes of one row. ``oldest``: the instant of the oldest base file that is kept."""
    ordered = sorted((v for v in versions if v.order is not None), key=lambda v: (v.order or 0, v.completed))
    changes = []
    for index, version in enumerate(ordered):
        order = version.order or 0
        if not first <= order <= last:
            continue
        before = ordered[index - 1] if index else None
        known = before is not None or (oldest is not None and oldest < version.instant)
        was = before.values if before is not None else None
        if was is None and version.values is None:
            continue  # a delete of a row that was not there
        place = ("", 0, -1, 0, NO_TRACE)
        changes.append(RowChange(source, version.path, version.key, was, version.values, known, order, index, *place))
    return changes


def _refuse_incomplete(source: SourceTable, opened: OpenTable, first: int) -> None:
    """Raise BadInputError if the versions from the range on are not all of the row's versions, in one form."""
    instants, log = _instants_from(opened, first), opened.log
    of_stream = [log.commits[i] for i in instants if i in log.commits and log.commits[i].kind is CommitKind.STREAM]
    if bad := [commit.instant for commit in of_stream if commit.superseded]:
        raise BadInputError(
            "in these commits several changes of a row came together, and the lake stores the last one alone",
            do_next="take the before images from Kafka, or restore the table to before the range",
            table=str(source),
            instants=", ".join(sorted(bad)[:5]),
        )
    if after := [entry for entry, instant in log.ddl if entry.steps and instant > min(instants)]:
        raise BadInputError(
            "a DDL statement has restated rows since, and the versions before it have the old form",
            do_next="take the before images from Kafka, or restore the table to before the range",
            table=str(source),
            statement=after[0].statement,
        )


def _instants_from(opened: OpenTable, first: int) -> set[str]:
    """The commits that stored a version from an ordering value on."""
    instants: set[str] = set()
    for files in group_files(opened.table.hudi):
        rows = stored_versions(opened.table.hudi, files)
        pairs = zip(rows.column("ordering").to_pylist(), rows.column("instant").to_pylist(), strict=True)
        instants |= {instant for order, instant in pairs if order is None or order >= first}
    return instants
