"""Cleaning of the metadata table: file slices that no reader uses any more are deleted.

Kept is, of every file group, what was its newest slice at the last few compactions. Order on storage: plan, inflight,
deletions, completed instant; each can be done again.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

from pipeline.clock import monotonic_s
from pipeline.hudi.commit import publish
from pipeline.hudi.files.names import LogFileName, parse_base_name, parse_log_name
from pipeline.hudi.metadata.layout import Partition, file_group_index
from pipeline.hudi.metadata.table import MetadataTable
from pipeline.hudi.timeline.avro_container import decode_container, encode_container
from pipeline.hudi.timeline.instant import CLEAN, COMMIT, Instant, State
from pipeline.storage.base import AlreadyExistsError

_PARALLEL = 8
_POLICY = "KEEP_LATEST_FILE_VERSIONS"

#: Bare file names by metadata partition.
Doomed = dict[str, list[str]]


def oldest_kept_compaction(table: MetadataTable) -> str | None:
    """The compaction whose slices are the oldest that are kept; None while there are too few compactions."""
    compactions = (i for i in reversed(table.timeline.completed()) if i.action == COMMIT)
    oldest = next(islice(compactions, table.config.versions_kept - 1, None), None)
    return None if oldest is None else oldest.requested_time


def clean(table: MetadataTable) -> str | None:
    """Delete older slices; returns the clean's instant, or None if there is nothing to delete."""
    since = oldest_kept_compaction(table)
    doomed = {} if since is None else _doomed(table, since)
    if not doomed:
        return None
    requested = Instant(table.clock.next(), CLEAN, State.REQUESTED)
    table.storage.create(requested.path, _plan(table, doomed))
    _execute(table, requested, doomed)
    return requested.requested_time


def finish_pending(table: MetadataTable) -> None:
    """Go on with the cleans that a dead writer, ours or Hudi's, planned and did not finish."""
    for pending in [i for i in table.timeline.pending() if i.action == CLEAN]:
        requested = pending.at(State.REQUESTED)
        plan = decode_container(table.storage.read(requested.path), requested.path)
        doomed = {
            partition: [file["filePath"].rpartition("/")[2] for file in files]
            for partition, files in (plan.get("filePathsToBeDeletedPerPartition") or {}).items()
        }
        _execute(table, requested, doomed)


def _doomed(table: MetadataTable, since: str) -> Doomed:
    """Files of slices older than each group's newest at the compaction ``since``."""
    doomed: Doomed = {}
    for partition in table.partitions:
        bases, logs = _files(table, partition)
        names = []
        for index, instants in bases.items():
            oldest_kept = max((instant for instant in instants if instant <= since), default="")
            names += [name for instant, name in instants.items() if instant < oldest_kept]
            names += [
                str(log)
                for log in logs[index]
                if table.timeline.is_completed(log.instant)
                and (table.timeline.completion_time(log.instant) or "") < oldest_kept
            ]
        if names:
            doomed[partition.value] = sorted(names)
    return doomed


def _files(
    table: MetadataTable, partition: Partition
) -> tuple[dict[int, dict[str, str]], dict[int, list[LogFileName]]]:
    """By file group: base file names by instant, and log file names."""
    bases: dict[int, dict[str, str]] = defaultdict(dict)
    logs: dict[int, list[LogFileName]] = defaultdict(list)
    for info in table.storage.list(partition.value):
        name = info.path.rpartition("/")[2]
        log, base = parse_log_name(name), parse_base_name(name)
        known = log or base
        index = None if known is None else file_group_index(partition, known.file_id)
        if index is None:
            continue
        if log is not None:
            logs[index].append(log)
        elif base is not None and table.timeline.is_completed(base.instant):
            bases[index][base.instant] = name
    return bases, logs


def _execute(table: MetadataTable, requested: Instant, doomed: Doomed) -> None:
    started = monotonic_s()
    inflight = requested.at(State.INFLIGHT)
    with contextlib.suppress(AlreadyExistsError):
        table.storage.create(inflight.path, b"")
    table.timeline.record(inflight)
    paths = [f"{partition}/{name}" for partition, names in doomed.items() for name in names]
    with ThreadPoolExecutor(_PARALLEL) as pool:
        list(pool.map(table.storage.delete, paths))
    completed = requested.at(State.COMPLETED, table.clock.next())
    millis = int((monotonic_s() - started) * 1000)
    publish(table.storage, completed, _metadata(requested.requested_time, _last_commit(table), doomed, millis))
    table.timeline.record(completed)


def _last_commit(table: MetadataTable) -> str:
    last = table.timeline.last_completed()
    return "" if last is None else last.requested_time


def _plan(table: MetadataTable, doomed: Doomed) -> bytes:
    """The body of the requested file; Hudi keeps full paths there."""
    uri = table.storage.uri
    files = {
        partition: [{"filePath": f"{uri}/{partition}/{name}", "isBootstrapBaseFile": False} for name in names]
        for partition, names in doomed.items()
    }
    record: dict[str, Any] = {
        "earliestInstantToRetain": None,
        "lastCompletedCommitTimestamp": _last_commit(table),
        "policy": _POLICY,
        "filesToBeDeletedPerPartition": {},
        "version": 2,
        "filePathsToBeDeletedPerPartition": files,
        "partitionsToBeDeleted": [],
    }
    return encode_container("HoodieCleanerPlan", record)


def _metadata(start: str, last_commit: str, doomed: Doomed, millis: int) -> bytes:
    """The body of the completed file."""
    partitions = {
        partition: {
            "partitionPath": partition,
            "policy": _POLICY,
            "deletePathPatterns": names,
            "successDeleteFiles": names,
            "failedDeleteFiles": [],
            "isPartitionDeleted": False,
        }
        for partition, names in doomed.items()
    }
    record = {
        "startCleanTime": start,
        "timeTakenInMillis": millis,
        "totalFilesDeleted": sum(map(len, doomed.values())),
        "earliestCommitToRetain": "",
        "lastCompletedCommitTimestamp": last_commit,
        "partitionMetadata": partitions,
        "version": 2,
        "bootstrapPartitionMetadata": {},
    }
    return encode_container("HoodieCleanMetadata", record)
