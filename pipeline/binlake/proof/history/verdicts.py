"""Why a version of a row won or lost: the merge rule of ``hudilake/format/files/log_merge.py``, explained
version by version.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from hudilake.format.definition.merging import WRITER_ORDER
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.names import TOMBSTONES_PATH
from hudilake.read.versions import VERSION_NAMES


class Fate(StrEnum):
    """What became of a version."""

    LIVE = "live"
    DELETED = "deleted"
    REPLACED = "replaced"
    LATE = "late"


@dataclass(frozen=True)
class Version:
    """One version of a row as the lake stores it.

    Args:
        key: the record key.
        path: the partition path.
        instant, completed: requested and completion time of the commit that wrote it.
        order: its ordering value; None for a delete that removes whatever came before it.
        values: the row; None for a delete.
        files: the files that hold it.
        standing: whether it is in the newest file slice.
    """

    key: str
    path: str
    instant: str
    completed: str
    order: int | None
    values: Mapping[str, Any] | None
    files: tuple[str, ...]
    standing: bool


@dataclass(frozen=True)
class VersionVerdict:
    """The fate of a version, the reason, and the commit of the version that decided it."""

    fate: Fate
    why: str
    by: str | None = None


def versions_of(
    rows: Iterable[Mapping[str, Any]], path: str, newest: frozenset[str], completed: Mapping[str, str]
) -> list[Version]:
    """The stored rows (``stored_versions``) of one record key as versions, in the order of their commits.

    Args:
        rows: as Python values.
        path: partition path.
        newest: the files of the newest file slice.
        completed: instant -> completion time.

    A version that a compaction has copied is one version in several files; so is a delete that it has kept.
    """
    versions: dict[tuple[Any, ...], Version] = {}
    for row in sorted(rows, key=lambda row: str(row["instant"])):
        values = None if row["deleted"] else {n: v for n, v in row.items() if n not in VERSION_NAMES}
        key, order, instant, file = row[RECORD_KEY_FIELD], row["ordering"], row["instant"], row["file"]
        stands = file in newest or file.startswith(TOMBSTONES_PATH)
        restated = values is None and order not in (None, WRITER_ORDER)
        same = (key, order) if restated else (key, order, instant, values is None)
        known = versions.get(same)
        if known is None:
            when = completed.get(instant, instant)
            versions[same] = Version(key, path, instant, when, order, values, (file,), stands)
        else:
            files = tuple(dict.fromkeys((*known.files, file)))
            versions[same] = replace(known, files=files, standing=known.standing or stands)
    return sorted(versions.values(), key=lambda version: (version.completed, version.instant))


def verdicts(versions: Sequence[Version]) -> list[VersionVerdict]:
    """The verdict on each version of one record key, in the order of the commits."""
    outcomes: list[VersionVerdict | None] = [None] * len(versions)
    current: int | None = None
    how = "it is the only version"
    for index, version in enumerate(versions):
        if current is None:
            current = index
            continue
        held = versions[current]
        reason = _beats(version, held)
        if reason is None:
            text = f"it came late: the version of commit {held.instant} has a higher ordering value"
            outcomes[index] = VersionVerdict(Fate.LATE, text, held.instant)
            continue
        verb = "deleted" if version.values is None else "replaced"
        outcomes[current] = VersionVerdict(
            Fate.REPLACED, f"{verb} by commit {version.instant}: {reason}", version.instant
        )
        current, how = index, f"it won over commit {held.instant}: {reason}"
    if current is not None:
        gone = versions[current].values is None
        outcomes[current] = VersionVerdict(Fate.DELETED if gone else Fate.LIVE, how)
    return [verdict for verdict in outcomes if verdict is not None]


def _beats(new: Version, held: Version) -> str | None:
    """Why a version wins over an earlier commit's version; None if it does not."""
    if new.order is None:
        return "a delete without an ordering value removes what came before it"
    if held.order is None:
        return "the version before it was a delete without an ordering value"
    if new.order > held.order:
        return "higher ordering value"
    if new.order == held.order:
        return "same ordering value, later commit"
    if held.values is None and not held.standing and new.standing:
        return "the newer delete before it is no longer stored: a compaction has dropped it (tombstone_retention_hours)"
    return None
