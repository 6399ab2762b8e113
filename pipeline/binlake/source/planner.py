"""Plans the end offsets of a stream's batches by asking Kafka: what Spark's Kafka source does where there is one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from binlake.source.log_tail import partitions_of
from binlake.source.offsets import NO_OFFSETS, OffsetMap, Offsets, made_anew
from binlake.source.positions import Administration, end_offsets, topics_of
from hudilake.clock import monotonic_s

#: New partitions, and new topics of a pattern, are looked for at this interval.
_LOOK_EVERY_S = 5.0
#: The client repeats what fails in that time. A query that gets no answer ends, and the stream with it.
_ASK_S = 60.0


@dataclass(frozen=True, slots=True)
class PlannedTopics:
    """What is planned. As a value, it goes to the process that plans.

    Args:
        config: the client's properties, with the brokers.
        topics: their names; none if there is a pattern.
        pattern: of the topics' whole names.
        position: the next offset of every partition.
        max_records: of a batch.
        until: the offsets at which planning stops; None: the end of the topics, whenever it is asked for.
    """

    config: Mapping[str, str]
    topics: Sequence[str]
    pattern: str | None
    position: Offsets
    max_records: int
    until: Offsets | None = None

    def to_text(self) -> str:
        """JSON that ``from_text`` reads. It holds secrets."""
        until = None if self.until is None else self.until.to_json()
        values = [dict(self.config), [*self.topics], self.pattern, self.position.to_json(), self.max_records, until]
        return json.dumps(values)

    @staticmethod
    def from_text(text: str) -> PlannedTopics:
        """The value of ``to_text``."""
        config, topics, pattern, position, max_records, until = json.loads(text)
        end = None if until is None else Offsets.from_json(until)
        return PlannedTopics(config, tuple(topics), pattern, Offsets.from_json(position), max_records, end)


class OffsetPlanner:
    """The end of one batch after the other. A planned end counts as reached: the next one lies behind it."""

    def __init__(self, planned: PlannedTopics) -> None:
        self._planned = planned
        self._position = planned.position
        self._admin = Administration(planned.config)
        self._places = NO_OFFSETS
        self._looked_s: float | None = None

    def next_end(self) -> Offsets:
        """The end of the next batch; the last one again if there is nothing new.

        Raises:
            ConfigError: a topic is gone, or the rights on it.
            BadInputError: a topic is shorter than what was read of it: it was made again.
            TransientError: Kafka does not answer.
        """
        ends = self._log_ends()
        for topic, partition, offset in self._position.places():
            if ends.at(topic, partition) < offset:
                raise made_anew(topic, partition, offset, ends.at(topic, partition))
        batch = self._position.ranges_to(ends).at_most(self._planned.max_records)
        self._position = self._position.furthest(batch.ends())
        return self._position

    def passed(self, offsets: OffsetMap) -> None:
        """Note offsets that Spark knows: nothing below them is planned."""
        self._position = self._position.furthest(offsets)

    def _log_ends(self) -> Offsets:
        if self._planned.until is not None:
            return self._planned.until.furthest(self._position)
        if self._looked_s is None or monotonic_s() - self._looked_s >= _LOOK_EVERY_S:
            config, pattern = self._planned.config, self._planned.pattern
            names = dict.fromkeys((*self._position, *topics_of(config, self._planned.topics, pattern)))
            self._places = Offsets({topic: dict.fromkeys(partitions_of(config, topic), 0) for topic in names})
            self._looked_s = monotonic_s()
        return end_offsets(self._planned.config, self._places, _ASK_S, self._admin)
