"""The metastore as a reader's source of plans (``hudilake.read.source.PlanSource``)."""

from __future__ import annotations

from dataclasses import dataclass

from hudilake.errors import TransientError
from hudilake.read.source import KnownTable, Selection, SliceQuestion, WrongAnswerError
from lakemetastore.api.conversions import question_to, selection_from, table_from
from lakemetastore.api.paths import PLAN, TABLE
from lakemetastore.api.tables import PlanAnswer, TableWire
from lakemetastore.client.requests import MetastoreClient


@dataclass(frozen=True)
class ServicePlans:
    """Tables and file slices as the metastore knows them. Can be pickled.

    Args:
        connection: to its HTTP API.
        max_age_ms: how old the state may be that an answer shows. 0: it has every commit that had completed when the
            question was asked. Otherwise commits of the last so many milliseconds may be missing.
        at_least: an instant that every answer must have; None for none.
    """

    connection: MetastoreClient
    max_age_ms: int = 0
    at_least: str | None = None

    def table(self, location: str) -> KnownTable:
        """The newest state. Raises MetastoreUnreachableError, RefusedRequestError, TransientError."""
        return _read_table(self.connection.ask("GET", TABLE, TableWire, self._fields(location)))

    def select(self, location: str, state: str, question: SliceQuestion) -> Selection | KnownTable:
        """The file slices, or the newest state. Raises as ``table``, and ConfigError for a condition that is nested
        too deep."""
        request, fields = question_to(question, state), self._fields(location)
        first = self.connection.ask("POST", PLAN, PlanAnswer, fields, request)
        if first.table is not None:
            return _read_table(first.table)
        slices = list(first.slices)
        for page in range(1, first.pages):
            asked = request.model_copy(update={"page": page})
            answer = self.connection.ask("POST", PLAN, PlanAnswer, {**fields, "max_age_ms": "3600000"}, asked)
            if answer.table is not None:
                return _read_table(answer.table)
            slices += answer.slices
        try:
            return selection_from(first, tuple(slices))
        except (ValueError, AssertionError) as error:
            raise _wrong(error) from error

    def _fields(self, location: str) -> dict[str, str]:
        fields = {"location": location, "max_age_ms": str(self.max_age_ms)}
        return fields if self.at_least is None else {**fields, "at_least": self.at_least}


def _read_table(message: TableWire) -> KnownTable:
    try:
        return table_from(message)
    except ValueError as error:
        raise _wrong(error) from error


def _wrong(error: Exception) -> TransientError:
    return WrongAnswerError(f"the metastore's answer is not understood: {error}", do_next="see its version")
