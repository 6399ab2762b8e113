"""Refuses to replay events that are older than deletes which a table no longer stores.

A compaction drops deletes that are older than ``tombstone_retention_hours``. An older event of the same key that is
replayed afterwards would restore the deleted row. Hours up to the newest event of the commits whose deletes may be
dropped are therefore refused. Later hours cannot hold an event that loses to such a delete.
"""

from __future__ import annotations

from collections.abc import Iterable

from binlake.decode.changes import SourceTable
from binlake.load.replay.quarantine_table import all_commits, forgets_deletes_since
from binlake.position.record_reader import RecordReader
from binlake.rows.upsert.fanout import destination
from binlake.rows.upsert.target import key_columns
from binlake.settings import CompactionSettings, Settings, TableRules
from binlake.source.dump_layout import DumpFile, hour_text
from binlake.tables.catalog import table_paths
from hudilake.clock import now_ms, parse_instant
from hudilake.errors import BadInputError
from hudilake.storage import Storage
from hudilake.table.table import HudiTable

_MS_PER_HOUR = 3_600_000


def refuse_too_old(settings: Settings, root: Storage, files: Iterable[DumpFile], step: int) -> None:
    """Raise BadInputError if files may hold events that lose to a delete which their table has dropped.

    Args:
        settings: of the lake.
        root: the lake's root.
        files: the files to be replayed.
        step: the hours that one directory holds.

    Raises CorruptDataError, StorageError too.
    """
    oldest: dict[SourceTable | None, int] = {}
    for file in files:
        of = None if file.database is None or file.table is None else SourceTable(file.database, file.table)
        oldest[of] = min(file.hour, oldest.get(of, file.hour))
    for path, hour in _places(settings, root, oldest).items():
        table = HudiTable.open(root.sub(path))
        source = RecordReader.newest_of(table).source
        if source is None or not key_columns(table.config):
            continue
        rules = settings.table_rules(source)
        if rules.wide is not None:
            continue  # it is derived, and its table of cells decides
        if rules.cells is None and (hour + step) * _MS_PER_HOUR > now_ms() - _retention_ms(rules):
            continue  # deletes of these hours are not dropped yet
        known = _newest_when_forgotten(table, rules)
        if known is not None and hour * _MS_PER_HOUR <= known:
            if rules.cells is not None:
                raise _of_cells(path, hour, known, step)
            raise BadInputError(
                f"events of {hour_text(hour, step)} are older than deletes that the table may have forgotten since: a "
                "row that was deleted would come back",
                do_next="replay all hours up to now, with --even-too-old, so that the deletes come too",
                table=path,
                known_until=hour_text(known // _MS_PER_HOUR),
            )


def _of_cells(path: str, hour: int, known: int, step: int) -> BadInputError:
    return BadInputError(
        f"cells of {hour_text(hour, step)} are older than delete markers that compactions may have dropped since: a "
        "cell that was deleted would come back",
        do_next="load a scan that is made now; or replay all hours up to now, with --even-too-old, so that the markers "
        "come too",
        table=path,
        known_until=hour_text(known // _MS_PER_HOUR),
    )


def _places(settings: Settings, root: Storage, oldest: dict[SourceTable | None, int]) -> dict[str, int]:
    """The existing tables -> the oldest hour that may hold events of each."""
    if None in oldest:
        hour = min(oldest.values())
        return dict.fromkeys(table_paths(root, settings.tables.path.count("/") + 1), hour)
    named: dict[str, int] = {}
    for source, hour in oldest.items():
        if source is not None:
            path = settings.table_rules(destination(source, settings.tables)).path
            named[path] = min(hour, named.get(path, hour))
    return {path: hour for path, hour in named.items() if HudiTable.exists(root.sub(path))}


def _retention_ms(rules: TableRules) -> int:
    return int((rules.compaction or CompactionSettings()).tombstone_retention_hours * _MS_PER_HOUR)


def _newest_when_forgotten(table: HudiTable, rules: TableRules) -> int | None:
    """The time (ms) of the newest event in commits whose deletes may be dropped; None if there is none."""
    since = forgets_deletes_since(table, rules)
    if since is None or rules.cells is not None:
        return since
    forgotten = (body for time, body in all_commits(table) if parse_instant(time) <= since)
    times = (RecordReader.of_commit(body.extra).source_times for body in forgotten)
    return max((newest for _, newest in filter(None, times)), default=None)
