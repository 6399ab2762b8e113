"""The schedule of clusterings: when one is due, and its requested file.

A plan may stay pending while commits go on (``actions.planned``). It is made under the table's lock, so it names the
file slices as they are after all commits that completed before it.
"""

from __future__ import annotations

from dataclasses import replace

from hudilake.commit.announced import intent_extra, pending_intent
from hudilake.commit.commit import request
from hudilake.commit.compaction_plan import pending_compactions, read_plan
from hudilake.commit.planned import groups_of, planned_intent
from hudilake.format.definition.kind_support import TableOperation
from hudilake.format.files.append import open_groups
from hudilake.format.timeline.instant import CLUSTERING, REPLACE_COMMIT, Instant, State
from hudilake.format.timeline.timeline import FileGroupId
from hudilake.policies import ClusteringPolicy, FileSizePolicy
from hudilake.services.clustering.config import ClusteringConfig
from hudilake.services.clustering.plan import plan, plan_of
from hudilake.services.planned import due_by_commits
from hudilake.storage.base import AlreadyExistsError
from hudilake.table.table import HudiTable

_ATTEMPTS = 5


def due(table: HudiTable, policy: ClusteringPolicy, since: str = "") -> str | None:
    """The reason why a clustering is due, as of the table's last refresh; None if it is not due. No storage call.

    ``since``: commits that completed up to this time do not count.
    """
    commits = _since_last(table, since)
    return due_by_commits(commits, policy.after_commits, policy.after_minutes, "commit", "clustering")


def schedule(table: HudiTable, config: ClusteringConfig) -> Instant | None:
    """Plan a clustering; returns its requested instant, which has this writer's heartbeat.

    None if no file would become better. Raises UnsupportedError for a table whose rows may not leave their file group
    and one that binlake cannot write to, ForeignActionError while an action is pending that excludes all others,
    LockHeldError, CorruptDataError, StorageError.
    """
    table.state.check_writable()
    table.config.kind.refuse(TableOperation.CLUSTERING, table.config.name)
    with table.exclusively():
        for attempt in range(_ATTEMPTS):
            try:
                return _schedule(table, config)
            except AlreadyExistsError:  # another writer took this millisecond: it may have committed
                if attempt == _ATTEMPTS - 1:
                    raise
    return None


def _schedule(table: HudiTable, config: ClusteringConfig) -> Instant | None:
    time = table.clock.next()
    table.refresh()
    table.state.refuse_foreign()
    units = plan(table, config, busy(table) | _announced(table, config.sizes), time)
    if not units:
        return None
    said = intent_extra(planned_intent(group for unit in units for group in unit.groups), ())
    requested = Instant(time, CLUSTERING, State.REQUESTED)
    planned = plan_of(units, config)
    body = replace(planned, extra={**planned.extra, **said}).to_bytes(table.storage.uri)
    request(table.storage, requested, body, table.ownership)
    table.timeline.record(requested)
    return requested


def busy(table: HudiTable, besides: str = "") -> frozenset[FileGroupId]:
    """The file groups of pending compactions and clusterings, as of the table's last refresh.

    ``besides``: the requested time of a clustering that does not count. Raises CorruptDataError, StorageError.
    """
    compacted = (
        operation.group
        for pending in pending_compactions(table.timeline)
        for operation in read_plan(table.storage, pending).operations
    )
    others = [one for one in table.state.planned() if one.instant.requested_time != besides]
    return groups_of(others) | frozenset(compacted)


def _announced(table: HudiTable, sizes: FileSizePolicy) -> frozenset[FileGroupId]:
    """The file groups that commits under way will write, as far as they say it. One that says nothing writes, in an
    append table, to open file groups."""
    groups: set[FileGroupId] = set()
    for pending in table.timeline.pending():
        if pending.action != table.state.action:
            continue
        if (said := pending_intent(table.storage, pending)) is not None:
            groups |= {(group.partition_path, group.file_id) for group in said.groups}
        elif table.config.kind.appends:
            opened = open_groups(table.file_slices(), sizes)
            groups |= {(path, group.file_id) for path, some in opened.items() for group in some}
    return frozenset(groups)


def _since_last(table: HudiTable, since: str) -> list[Instant]:
    """The commits of rows that completed since a clustering was last planned."""
    timeline = table.timeline
    planned = [i.requested_time for i in timeline.pending() if i.action == CLUSTERING]
    last = max([since, *planned, *(i.requested_time for i in timeline.completed() if i.action == REPLACE_COMMIT)])
    return [i for i in timeline.completed() if i.action == table.state.action and (i.completion_time or "") > last]
