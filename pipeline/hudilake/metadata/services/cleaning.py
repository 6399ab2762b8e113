"""Cleaning of the metadata table: deletes file slices that no reader uses any more.

Of every file group the newest slices at the last few compactions are kept. The order on storage is that of
``actions.clean``.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import islice

from hudilake.commit import clean as clean_action
from hudilake.commit.clean import CleanPlan
from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.files.names import LogFileName, parse_base_name, parse_log_name
from hudilake.format.timeline.instant import COMMIT
from hudilake.metadata.records.layout import parse_file_group_id
from hudilake.metadata.table import MetadataTable

_POLICY = "KEEP_LATEST_FILE_VERSIONS"

#: Bare file names by metadata partition.
Doomed = dict[str, tuple[str, ...]]


def oldest_kept_compaction(table: MetadataTable) -> str | None:
    """The compaction whose slices are the oldest kept ones; None while there are too few compactions."""
    compactions = (i for i in reversed(table.timeline.completed()) if i.action == COMMIT)
    oldest = next(islice(compactions, table.config.versions_kept - 1, None), None)
    return None if oldest is None else oldest.requested_time


def clean(table: MetadataTable) -> str | None:
    """Delete older slices; returns the clean's instant, or None if there is nothing to delete."""
    since = oldest_kept_compaction(table)
    doomed = {} if since is None else _doomed(table, since)
    if not doomed:
        return None
    last = table.timeline.last_completed()
    plan = CleanPlan(_POLICY, doomed, last_commit=last.requested_time if last is not None else "")
    requested = clean_action.request(table.storage, table.timeline, table.clock, plan)
    clean_action.execute(table.storage, table.timeline, table.clock, requested, plan)
    return requested.requested_time


def finish_pending(table: MetadataTable) -> None:
    """Finish the cleans that a dead writer, ours or Hudi's, planned."""
    for pending in clean_action.pending_cleans(table.timeline):
        plan = clean_action.read_plan(table.storage, pending)
        clean_action.execute(table.storage, table.timeline, table.clock, pending, plan)


def _doomed(table: MetadataTable, since: str) -> Doomed:
    """Files of slices older than each group's newest at the compaction ``since``."""
    doomed: Doomed = {}
    for partition in table.partitions:
        bases, logs = _files(table, partition)
        names = []
        for file_id, instants in bases.items():
            oldest_kept = max((instant for instant in instants if instant <= since), default="")
            names += [name for instant, name in instants.items() if instant < oldest_kept]
            names += [
                str(log)
                for log in logs[file_id]
                if table.timeline.is_completed(log.instant)
                and (table.timeline.completion_time(log.instant) or "") < oldest_kept
            ]
        if names:
            doomed[partition.value] = tuple(sorted(names))
    return doomed


def _files(
    table: MetadataTable, partition: MetadataPartition
) -> tuple[dict[str, dict[str, str]], dict[str, list[LogFileName]]]:
    """By file id: base file names by instant, and log file names."""
    bases: dict[str, dict[str, str]] = defaultdict(dict)
    logs: dict[str, list[LogFileName]] = defaultdict(list)
    for info in table.storage.list(partition.value):
        name = info.path.rpartition("/")[2]
        log, base = parse_log_name(name), parse_base_name(name)
        parsed = log or base
        if parsed is None or parse_file_group_id(partition, parsed.file_id) is None:
            continue
        if log is not None:
            logs[log.file_id].append(log)
        elif base is not None and table.timeline.is_completed(base.instant):
            bases[base.file_id][base.instant] = name
    return bases, logs
