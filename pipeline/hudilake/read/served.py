"""One table as a service knows it: opened, refreshed and planned without a call to storage."""

from __future__ import annotations

from dataclasses import dataclass, field

from hudilake.read.counting import CountRequest
from hudilake.read.question import ResolvedQuery
from hudilake.read.source import KnownTable, PlanSource, Selection, SliceQuestion
from hudilake.storage.base import Storage
from hudilake.table.table import HudiTable


@dataclass
class ServedTable:
    """The table at a storage's root. Every method raises LakeError if the service cannot tell.

    ``known``: its state as of the last answer; None before the first one, and after an answer that was not used.
    """

    source: PlanSource
    storage: Storage
    known: KnownTable | None = field(default=None)

    def newer(self) -> HudiTable | None:
        """The table in its newest state; None if that is the known one."""
        return self._take(self.source.table(self.storage.uri))

    def select(
        self, table: HudiTable, question: ResolvedQuery, count_all: bool, counting: CountRequest | None
    ) -> Selection | HudiTable:
        """The file slices for a question about the table in its known state; the table in its newest state if it has
        changed since."""
        if self.known is None:
            newer = self.newer()
            if newer is not None:
                return newer
        assert self.known is not None
        wanted = counting if question.expression is None else None
        asked = SliceQuestion(question.query, question.condition, count_all, wanted)
        answer = self.source.select(self.storage.uri, self.known.state, asked)
        if isinstance(answer, Selection):
            answer.check(table.timeline)
            return answer
        return self._take(answer) or table

    def _take(self, known: KnownTable) -> HudiTable | None:
        if self.known is not None and self.known.state == known.state:
            return None
        table = known.open(self.storage)
        self.known = known
        return table
