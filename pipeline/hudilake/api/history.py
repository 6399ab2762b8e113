"""A table's commits as plain values, and moments in the forms in which callers have them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from hudilake.errors import ConfigError
from hudilake.format.timeline.timeline import Timeline
from hudilake.read.query import instant_of


@dataclass(frozen=True, slots=True)
class Commit:
    """A completed write of a table.

    Args:
        requested: when it began, 17 digits ``yyyyMMddHHmmssSSS`` in UTC; it names the commit.
        completed: when it became visible, 17 digits.
        action: ``deltacommit``, ``commit`` (also a compaction) or ``replacecommit`` (also a clustering).
        rows_written: how many rows its files have: those that a rewritten file keeps are counted too.
        rows_deleted: how many deletes it has.
        files: how many data files it wrote.
        bytes_written: their bytes.
        partitions: the partition paths that it wrote to.
        extra: the keys that its writer recorded.

    Example:
        >>> commit = orders.history()[0]
        >>> commit.action, commit.rows_written, commit.partitions
        ('deltacommit', 3, ('day=d1',))
        >>> commit.requested < commit.completed
        True
    """

    requested: str
    completed: str
    action: str
    rows_written: int = 0
    rows_deleted: int = 0
    files: int = 0
    bytes_written: int = 0
    partitions: tuple[str, ...] = ()
    extra: dict[str, str] = field(default_factory=dict)


def commits_of(timeline: Timeline) -> Iterator[Commit]:
    """The completed writes of the active timeline, newest first. Raises CorruptDataError, StorageError."""
    for instant in reversed(timeline.completed()):
        metadata = timeline.commit_metadata(instant)
        yield Commit(
            requested=instant.requested_time,
            completed=instant.completion_time or "",
            action=instant.action,
            rows_written=sum(stat.num_writes for stat in metadata.stats),
            rows_deleted=sum(stat.num_deletes for stat in metadata.stats),
            files=len(metadata.stats),
            bytes_written=sum(stat.file_size for stat in metadata.stats),
            partitions=tuple(sorted(metadata.partitions())),
            extra=dict(metadata.extra),
        )


#: A commit, an instant of 17 digits, the text of a date or time in UTC, or a datetime with a time zone.
Moment = Commit | str | datetime


def requested_at(moment: Moment) -> str:
    """The requested time that is meant, 17 digits. Raises ConfigError for no moment."""
    return moment.requested if isinstance(moment, Commit) else _digits(moment)


def completed_at(moment: Moment) -> str:
    """The completion time that is meant, 17 digits; "" stays. Raises ConfigError for no moment."""
    if isinstance(moment, Commit):
        return moment.completed
    return "" if moment == "" else _digits(moment)


def _digits(moment: str | datetime) -> str:
    if isinstance(moment, str):
        return instant_of(moment)
    if moment.tzinfo is None:
        raise ConfigError(f"{moment} has no time zone", do_next="give a datetime with a time zone, as datetime.UTC")
    utc = moment.astimezone(UTC)
    return f"{utc:%Y%m%d%H%M%S}{utc.microsecond // 1000:03d}"
