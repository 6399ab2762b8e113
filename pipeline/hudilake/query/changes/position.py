"""Where a reader of changes stands: a value that is kept as JSON beside what was made of the changes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from hudilake.errors import ConfigError
from hudilake.format.timeline.instant import Instant
from hudilake.format.timeline.timeline import Timeline
from hudilake.query.samples.position import LastRow
from hudilake.query.samples.steps import expired
from hudilake.table.table import HudiTable


@dataclass(frozen=True, slots=True)
class ChangePosition:
    """A place between two changes.

    Args:
        completed: completion time of the last commit whose changes are all given; "" before all commits.
        commit: its requested time; "" if only the time is known.
        step: completion time of the commit whose changes are partly given; None between two commits.
        after: the last given change of that commit; None if none is given.

    Example:
        >>> feed = orders.changes(since="")
        >>> sum(batch.num_rows for batch in feed)
        3
        >>> kept = feed.position.to_json()
        >>> again = orders.changes(since=hudilake.ChangePosition.from_json(kept))
        >>> sum(batch.num_rows for batch in again)
        0
    """

    completed: str = ""
    commit: str = ""
    step: str | None = None
    after: LastRow | None = None

    def to_json(self) -> str:
        """The position as text."""
        return json.dumps({name: value for name, value in asdict(self).items() if value is not None})

    @classmethod
    def from_json(cls, text: str) -> ChangePosition:
        """The position of a text from ``to_json``. Raises ConfigError for any other text."""
        try:
            fields = json.loads(text)
            after = fields.pop("after", None)
            position = cls(**fields, after=None if after is None else LastRow(**after))
            texts = (position.completed, position.commit, position.step or "", *(after or {}).values())
            if not all(isinstance(one, str) for one in texts):
                raise TypeError("a field is no text")
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise ConfigError(
                f"this is no position of changes: {text[:200]!r}",
                do_next="give the text that ChangePosition.to_json made",
            ) from error
        return position

    @classmethod
    def behind(cls, write: Instant) -> ChangePosition:
        """The place behind all changes of a completed write."""
        return cls(write.completion_time or "", write.requested_time)

    def check_kept(self, timeline: Timeline) -> None:
        """Raise PositionExpiredError if the commit of the position was taken back: its changes were given, and no later
        commit says that they do not hold."""
        if self.commit and timeline.completion_time(self.commit) != self.completed:
            raise expired(self.completed, self.step, f"commit {self.commit} was taken back")


def position_at(table: HudiTable, completed: str) -> ChangePosition:
    """The place behind the last commit that had completed at a time of 17 digits; before all commits for "". Raises
    PositionExpiredError if that commit is archived, CorruptDataError, StorageError."""
    writes = [one for one in table.timeline.completed() if (one.completion_time or "") <= completed]
    if writes:
        return ChangePosition.behind(max(writes, key=lambda one: one.completion_time or ""))
    if completed and table.timeline.history().files:
        raise expired(completed, None, "the commits of that time are archived")
    return ChangePosition()
