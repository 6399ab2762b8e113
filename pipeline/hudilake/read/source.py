"""A service that knows tables: a reader may ask it for a table's state and for file slices, and spare storage calls.

What the service says is not the truth; storage is. A reader that gets no answer, or one that contradicts the timeline
it came with, plans from storage, with the same result.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from hudilake.errors import TransientError
from hudilake.format.definition.config import TableConfig
from hudilake.format.files.view import FileSlice
from hudilake.format.timeline.instant import Instant
from hudilake.format.timeline.timeline import Timeline
from hudilake.locking.ownership import Ownership
from hudilake.metadata.config import MetadataConfig
from hudilake.read.counting import CountedRows, CountRequest
from hudilake.read.filters.expressions import Filter
from hudilake.read.laid_out import CommitLayout
from hudilake.read.plan import PlanStep, ScanWarning
from hudilake.read.query import Query
from hudilake.storage.base import Storage
from hudilake.table.table import HudiTable
from hudilake.table.table_state import TableState

#: The step name of warnings that a service was not used.
SERVICE = "metastore"


class WrongAnswerError(TransientError):
    """A service's answer contradicts itself or the timeline that came with it."""


@dataclass(frozen=True)
class KnownTable:
    """All that a reader needs of a table before it reads files.

    Args:
        state: names this state: two services that see the same properties, instants and schema give it the same name.
        properties: the content of ``hoodie.properties``.
        instants: of the active timeline, each in its furthest state, oldest first.
        schema: the Avro schema of the newest columns, as JSON.
    """

    state: str
    properties: bytes
    instants: tuple[Instant, ...]
    schema: str

    @classmethod
    def of(cls, properties: bytes, instants: Iterable[Instant], schema: str) -> KnownTable:
        """The table with the name of its state."""
        ordered = tuple(sorted(instants))
        names = [f"{i.requested_time} {i.action} {i.state} {i.completion_time}" for i in ordered]
        digest = zlib.crc32("\n".join([schema, *names]).encode(), zlib.crc32(properties))
        newest = max((i.completion_time or i.requested_time for i in ordered), default="0")
        return cls(f"{newest}-{len(ordered)}-{digest:08x}", properties, ordered, schema)

    def open(self, storage: Storage) -> HudiTable:
        """The table in this state. Storage is asked for what only some kinds of tables need (hash rings)."""
        config, timeline = TableConfig.from_properties(self.properties), Timeline(storage)
        for instant in self.instants:
            timeline.record(instant)
        ownership = Ownership(storage, None)
        settings = MetadataConfig()
        return HudiTable(TableState(storage, config, timeline, None, settings, ownership, avro_schema=self.schema))


@dataclass(frozen=True)
class SliceQuestion:
    """Which file slices a reader asks for. ``condition``: normalised. The rest as in ``TableReader.plan``."""

    query: Query
    condition: Filter
    count_all: bool = False
    counting: CountRequest | None = None


@dataclass(frozen=True)
class Selection:
    """The file slices that must be read for a question, as in ``ScanPlan``."""

    slices: tuple[FileSlice, ...]
    steps: tuple[PlanStep, ...]
    warnings: tuple[ScanWarning, ...] = ()
    counted: tuple[CountedRows, ...] = ()
    laid_out: tuple[CommitLayout, ...] = ()

    def check(self, timeline: Timeline) -> None:
        """Raise WrongAnswerError if a file is of an instant that the timeline does not show as completed."""
        for piece in self.slices:
            bases = () if piece.base_file is None else (piece.base_file,)
            for file in (*bases, *piece.log_files):
                if not timeline.is_completed(file.name.instant):
                    raise WrongAnswerError(
                        "a file of the answer is of an instant that did not complete",
                        do_next="see whether the service reads the same table",
                        path=file.path,
                    )


class PlanSource(Protocol):
    """Knows tables by the URI of their root. Every method raises LakeError if it cannot tell."""

    def table(self, location: str) -> KnownTable:
        """The newest state of a table."""
        ...

    def select(self, location: str, state: str, question: SliceQuestion) -> Selection | KnownTable:
        """The file slices for a question about a table in that state; the newest state if the table has another."""
        ...
