"""Where an iteration over samples stands: a value that is kept as JSON beside a model's checkpoint."""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, dataclass
from typing import Any

from hudilake.errors import ConfigError, UnsupportedError


class PositionExpiredError(UnsupportedError):
    """The table does not keep the file slices or commits any more that an iteration needs to go on."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One of ``count`` parts of a table's file groups."""

    index: int = 0
    count: int = 1

    def __post_init__(self) -> None:
        """Raises ConfigError for a part that does not exist."""
        if not 0 <= self.index < self.count:
            raise ConfigError(
                f"there is no shard {self.index} of {self.count}", do_next="count shards from 0 to the number less one"
            )

    def holds(self, partition_path: str, file_id: str) -> bool:
        """Whether a file group belongs to it. Buckets of one partition go to shards in turns."""
        number = int(file_id[:8]) if file_id[:8].isdigit() else zlib.crc32(file_id.encode())
        return (zlib.crc32(partition_path.encode()) + number) % self.count == self.index

    def part(self, index: int, count: int) -> Shard:
        """The part ``index`` of ``count`` parts of this shard."""
        return Shard(self.index + self.count * index, self.count * count)


@dataclass(frozen=True, slots=True, order=True)
class LastRow:
    """The last given row of a step. Rows of a step are given by partition, file group and record key."""

    partition_path: str
    file_id: str
    record_key: str


@dataclass(frozen=True, slots=True)
class ShuffleState:
    """The shuffle buffer that is being given, and what is needed to fill it with the same rows again.

    Args:
        rows: it was filled with so many rows from the position on.
        given: so many of them, in their shuffled order, are given.
        end: completion time of the last commit of the last step in it; "" in positions of old versions.
        commits: the most commits of its steps. Only the last one may have had fewer to take.
        seed: of the order; None in positions of old versions.
        rule: which rows were samples, as a number; None in positions of old versions.
    """

    rows: int
    given: int
    end: str = ""
    commits: int = 1
    seed: int | None = None
    rule: int | None = None


@dataclass(frozen=True, slots=True)
class SamplePosition:
    """A place between two batches of one shard.

    Args:
        completed: completion time of the last commit whose rows are all given; "" before all commits.
        step: completion time of the last commit of the step that is partly given; None between two steps.
        after: the last given row of that step; None if none is given.
        shuffled: the shuffle buffer that is partly given.
        shard: the part of the table that this position belongs to.

    Example:
        >>> samples = hudilake.Samples(orders.uri, columns=["id"], since=hudilake.SamplePosition())
        >>> sum(batch.num_rows for batch in samples)
        3
        >>> kept = samples.position.to_json()
        >>> again = hudilake.Samples(orders.uri, columns=["id"], since=hudilake.SamplePosition.from_json(kept))
        >>> sum(batch.num_rows for batch in again)
        0
    """

    completed: str = ""
    step: str | None = None
    after: LastRow | None = None
    shuffled: ShuffleState | None = None
    shard: Shard = Shard()

    def to_json(self) -> str:
        """The position as text."""
        return json.dumps({name: value for name, value in asdict(self).items() if value is not None})

    @classmethod
    def from_json(cls, text: str) -> SamplePosition:
        """The position of a text from ``to_json``. Raises ConfigError for any other text."""
        try:
            fields: dict[str, Any] = json.loads(text)
            after, shuffled = fields.get("after"), fields.get("shuffled")
            return cls(
                fields["completed"],
                fields.get("step"),
                None if after is None else LastRow(**after),
                None if shuffled is None else ShuffleState(**shuffled),
                Shard(**fields["shard"]),
            )
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise ConfigError(
                f"this is no position of samples: {text[:200]!r}", do_next="give the text that Position.to_json made"
            ) from error
