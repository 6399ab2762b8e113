"""Checks the timeline: every instant has one readable file for its state."""

from __future__ import annotations

from collections.abc import Iterator

from hudilake.errors import CorruptDataError
from hudilake.format.files.names import TEMP_PATH
from hudilake.format.timeline.avro_container import decode_container
from hudilake.format.timeline.instant import (
    CLEAN,
    CLUSTERING,
    COMMIT,
    COMPACTION,
    DELTA_COMMIT,
    REPLACE_COMMIT,
    ROLLBACK,
    SAVEPOINT,
    TIMELINE_PATH,
    WRITE_ACTIONS,
    Instant,
    State,
    parse_name,
)
from hudilake.services.fsck.evidence import Evidence
from hudilake.services.fsck.findings import Check, Finding, Repair, Severity
from hudilake.storage.base import StorageNotFoundError

_ROLLED_BACK = (COMMIT, DELTA_COMMIT, REPLACE_COMMIT, ROLLBACK)
_PLANNED = (COMPACTION, CLUSTERING, CLEAN, ROLLBACK)
_ALIVE = "a writer may be at work: stop it, wait for the grace time, check again"


def check_timeline(evidence: Evidence) -> Iterator[Finding]:
    """Files that are not instants, unreadable instants, instants completed twice, pending instants, old markers."""
    by_identity: dict[tuple[str, str], list[Instant]] = {}
    for info in evidence.below(TIMELINE_PATH):
        name = info.path[len(TIMELINE_PATH) + 1 :]
        if "/" in name or name.startswith("."):
            continue
        instant = parse_name(name)
        if instant is None:
            yield Finding(Severity.WARNING, Check.TIMELINE, "a file of the timeline is not an instant", info.path)
        elif instant.completed:
            by_identity.setdefault(instant.identity, []).append(instant)
    for _, instants in sorted(by_identity.items()):
        yield from _completed_twice(instants)
        for instant in instants:
            yield from _unreadable(evidence, instant)
    yield from _pending(evidence)
    yield from _markers(evidence)


def _completed_twice(instants: list[Instant]) -> Iterator[Finding]:
    if len(instants) > 1:
        names = ", ".join(i.file_name for i in instants)
        yield Finding(
            Severity.ERROR,
            Check.TIMELINE,
            f"an instant was completed {len(instants)} times: {names}",
            instants[0].path,
            instant=instants[0].requested_time,
            advice="two writers completed it: stop one of them, then keep the file that names the existing data files",
        )


def _unreadable(evidence: Evidence, instant: Instant) -> Iterator[Finding]:
    trouble = _trouble(evidence, instant)
    if trouble is None:
        return
    size = evidence.files[instant.path].size
    what = "a completed instant's file is empty" if not size else trouble
    if instant.action not in WRITE_ACTIONS:
        advice = "restore the file from a copy; no row depends on it"
        yield Finding(Severity.ERROR, Check.TIMELINE, what, instant.path, instant=instant.requested_time, advice=advice)
        return
    safe = not size and _can_be_discarded(evidence, instant)
    yield Finding(
        Severity.ERROR,
        Check.TIMELINE,
        what,
        instant.path,
        instant=instant.requested_time,
        repair=Repair.DISCARD_COMMIT if safe else None,
        advice="" if safe else "restore the file from a copy: taking the commit back would lose its rows",
    )


def _trouble(evidence: Evidence, instant: Instant) -> str | None:
    """Why a completed instant cannot be read; None if it can."""
    if instant.action in WRITE_ACTIONS and instant.requested_time in evidence.bodies:
        return None
    try:
        decode_container(evidence.storage.read(instant.path), instant.path)
    except CorruptDataError as error:
        return error.what
    except StorageNotFoundError:
        return None  # archived meanwhile
    return None


def _can_be_discarded(evidence: Evidence, instant: Instant) -> bool:
    """Whether an empty completed file can be discarded. It is a failed write. Only the newest commit of rows can be
    taken back: its stream then continues at the end of the commit before, which a later commit's positions hide."""
    inflight = instant.in_state(State.INFLIGHT)
    return (
        instant.action == evidence.config.kind.action
        and instant == evidence.timeline.last_completed()
        and inflight.path in evidence.files
        and all(evidence.is_dead(i) for i in (instant, *evidence.timeline.pending()))
    )


def _pending(evidence: Evidence) -> Iterator[Finding]:
    pending = evidence.timeline.pending()
    ours = [i for i in pending if i.action in _ROLLED_BACK]
    dead = all(evidence.is_dead(i) for i in ours)
    for instant in pending:
        if instant.action == SAVEPOINT:
            yield _unfinished_savepoint(evidence, instant)
            continue
        rolled_back = instant.action in _ROLLED_BACK
        advice = _ALIVE if rolled_back else "none needed: the next run of that service goes on with it"
        yield Finding(
            Severity.WARNING if rolled_back else Severity.INFO,
            Check.TIMELINE,
            f"a {instant.action} is {instant.state.value}",
            instant.path,
            instant=instant.requested_time,
            repair=Repair.ROLL_BACK if rolled_back and dead else None,
            advice="" if rolled_back and dead else advice,
        )
        yield from _unreadable_plan(evidence, instant)


def _unfinished_savepoint(evidence: Evidence, instant: Instant) -> Finding:
    """While it lies there, Hudi compacts no metadata table that has entries of its time or later."""
    dead = evidence.is_dead(instant)
    return Finding(
        Severity.WARNING,
        Check.TIMELINE,
        f"a savepoint is {instant.state.value}",
        instant.path,
        instant=instant.requested_time,
        repair=Repair.FORGET_SAVEPOINT if dead else None,
        advice="" if dead else _ALIVE,
    )


def _unreadable_plan(evidence: Evidence, instant: Instant) -> Iterator[Finding]:
    plan = instant.in_state(State.REQUESTED)
    if instant.action not in _PLANNED or instant.action == ROLLBACK or plan.path not in evidence.files:
        return
    try:
        decode_container(evidence.storage.read(plan.path), plan.path)
    except CorruptDataError as error:
        yield Finding(
            Severity.ERROR,
            Check.TIMELINE,
            f"the plan of a pending {instant.action} cannot be read: {error.what}",
            plan.path,
            instant=instant.requested_time,
            advice="restore it from a copy, or unschedule it with Hudi",
        )


def _markers(evidence: Evidence) -> Iterator[Finding]:
    """Markers of instants that are not pending: they are not used any more."""
    pending = evidence.timeline.pending_times()
    groups: dict[str, bool] = {}
    for info in evidence.below(TEMP_PATH):
        instant, slash, _ = info.path[len(TEMP_PATH) + 1 :].partition("/")
        if slash and instant.isdigit() and instant not in pending:
            groups[instant] = groups.get(instant, True) and evidence.is_old(info)
    for instant, old in sorted(groups.items()):
        yield Finding(
            Severity.INFO,
            Check.TIMELINE,
            "markers were left behind",
            f"{TEMP_PATH}/{instant}",
            instant=instant,
            repair=Repair.MOVE_MARKERS if old else None,
            advice="" if old else _ALIVE,
        )
