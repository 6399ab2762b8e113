"""What a commit writes, as a value, and whether two commits may be made side by side.

``conflicts`` is asked at both changes of an instant's state: before it becomes inflight, against what has completed
since the writer looked and what living writers have under way, and under the table's lock before it completes, against
what has completed since. What passes gives the same table in either order of completion.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from hudilake.format.files.file_group_write import WriteResult
from hudilake.format.timeline.instant import DELTA_COMMIT
from hudilake.policies import Conflicts

#: Partition path, and the bucket at the beginning of the file id (the whole id for a file group of another index). Two
#: writers may name the file group of one bucket differently.
Place: TypeAlias = tuple[str, str]
_BUCKET_DIGITS = 8


@dataclass(frozen=True, slots=True)
class GroupIntent:
    """What a commit writes to one file group.

    Args:
        partition_path: of the file group.
        file_id: of the file group.
        columns: the columns that it changes in rows that live; none if it changes no such row; None for all columns.
        inserts: whether it may add rows.
        deletes: whether it may delete rows.
    """

    partition_path: str
    file_id: str
    columns: frozenset[str] | None = None
    inserts: bool = True
    deletes: bool = True

    @property
    def place(self) -> Place:
        """The file group, whatever a writer calls it. A UUID may begin with eight digits too: two such file groups of
        one partition then count as one, and a commit waits or is written again without need."""
        bucket = self.file_id[:_BUCKET_DIGITS]
        return self.partition_path, bucket if bucket.isdigit() else self.file_id

    def meets(self, other: GroupIntent) -> bool:
        """Whether two intents on one file group may touch the same cells. Rows that are added were not there before,
        so that an added row and a change of a living row are never the same."""
        if self.deletes or other.deletes or (self.inserts and other.inserts):
            return True
        if self.columns is None or other.columns is None:
            return self.columns != frozenset() and other.columns != frozenset()
        return not self.columns.isdisjoint(other.columns)

    def joined(self, other: GroupIntent) -> GroupIntent:
        """What both write, of one file group."""
        both = None if self.columns is None or other.columns is None else self.columns | other.columns
        return replace(self, columns=both, inserts=self.inserts or other.inserts, deletes=self.deletes or other.deletes)


@dataclass(frozen=True, slots=True)
class Intent:
    """What an instant writes.

    Args:
        instant: its requested time; "" while it has none.
        action: its action.
        groups: the file groups, each once.
        whole: whether its content depends on the whole table, or changes it; ``groups`` do not matter then.
        clusters: whether it only lays out rows anew, so that nothing but ``groups`` matters.
    """

    instant: str = ""
    action: str = DELTA_COMMIT
    groups: tuple[GroupIntent, ...] = ()
    whole: bool = False
    clusters: bool = False

    @classmethod
    def of_groups(cls, groups: Iterable[GroupIntent], *, whole: bool = False) -> Intent:
        """The intent to write some file groups; several intents on one of them are joined."""
        by_group: dict[tuple[str, str], GroupIntent] = {}
        for group in groups:
            key = group.partition_path, group.file_id
            known = by_group.get(key)
            by_group[key] = group if known is None else known.joined(group)
        return cls(groups=tuple(by_group[key] for key in sorted(by_group)), whole=whole)

    @classmethod
    def of_results(
        cls, results: Iterable[WriteResult], touched: Iterable[GroupIntent] = (), *, whole: bool = False
    ) -> Intent:
        """What a commit has written. ``touched``: what it decided on beside its files."""
        return cls.of_groups((*map(_written, results), *touched), whole=whole)

    def at(self, instant: str, action: str = DELTA_COMMIT) -> Intent:
        """The same intent as that of an instant."""
        return replace(self, instant=instant, action=action)


#: The intent of a commit that depends on the whole table.
WHOLE_TABLE = Intent(whole=True)


@dataclass(frozen=True, slots=True)
class Conflict:
    """Why a commit may not be made beside another one. ``group``: where they meet; None for the whole table."""

    other: Intent
    policy: Conflicts
    group: GroupIntent | None = None

    def __str__(self) -> str:
        where = "the whole table" if self.group is None else f"file group {self.group.file_id}"
        if self.group is not None and self.group.partition_path:
            where += f" in {self.group.partition_path}"
        return f"{where}, which the {self.other.action} {self.other.instant} writes (conflicts: {self.policy})"


def conflicts(mine: Intent, others: Sequence[Intent], policy: Conflicts) -> Conflict | None:
    """The first conflict of an intent with others; None if the commit may be made beside all of them.

    Args:
        mine: what the commit writes.
        others: what other instants write or have written.
        policy: the table's. ``queue``: any two commits conflict; ``row``: two that write one file group; ``column``:
            two that may write the same cells of one.
    """
    places: dict[Place, list[GroupIntent]] = {}
    for group in mine.groups:
        places.setdefault(group.place, []).append(group)
    for other in others:
        if not other.clusters and (policy == "queue" or mine.whole or other.whole):
            return Conflict(other, policy)
        for theirs in other.groups:
            for group in places.get(theirs.place, ()):
                if policy != "column" or group.file_id != theirs.file_id or group.meets(theirs):
                    return Conflict(other, policy, group)
    return None


def _written(result: WriteResult) -> GroupIntent:
    """A base file begins a new file slice, so nothing that another commit writes to the group may lie beside it."""
    if result.is_base:
        return GroupIntent(result.partition_path, result.file_id)
    return GroupIntent(
        result.partition_path, result.file_id, result.columns, result.inserts, deletes=result.num_deletes > 0
    )
