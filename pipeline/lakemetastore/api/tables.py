"""A lake table on the wire: its state, its file slices, what a plan selects, its instants and their changes."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

from lakemetastore.api.base import ApiMessage
from lakemetastore.api.conditions import ConditionWire, LiteralValue

#: A file: its bare name and its size in bytes.
FileWire: TypeAlias = tuple[str, int]


class InstantWire(ApiMessage):
    """An instant of the timeline. Times are 17 digits; ``completed`` is None while the instant is pending."""

    requested: str
    action: str
    state: Literal["requested", "inflight", "completed"]
    completed: str | None = None


class TableWire(ApiMessage):
    """A table without its files. ``properties``: the text of ``hoodie.properties``; ``avro_schema``: of the newest
    columns; ``instants``: the active timeline."""

    location: str
    state: str
    properties: str
    avro_schema: str
    instants: tuple[InstantWire, ...]


class InstantsWire(ApiMessage):
    """Instants, oldest first. ``more``: whether later ones were left out."""

    state: str
    instants: tuple[InstantWire, ...]
    more: bool = False


class SliceWire(ApiMessage):
    """A file slice: at most one base file, and log files in merge order."""

    partition: str
    file_id: str
    base: FileWire | None = None
    logs: tuple[FileWire, ...] = ()


class SlicesWire(ApiMessage):
    """File slices of a partition, by file id. ``after``: where the next page begins; None on the last page."""

    state: str
    slices: tuple[SliceWire, ...]
    after: str | None = None


class PartitionsWire(ApiMessage):
    """Partition paths, sorted. ``after``: where the next page begins; None on the last page."""

    state: str
    partitions: tuple[str, ...]
    after: str | None = None


class RangeWire(ApiMessage):
    """The range of a column in a file. Without ``low`` and ``high`` the file has no value. Decimals are unscaled.

    ``type``: the value type by Hudi's name; ``info``: precision and scale of a decimal.
    """

    partition: str
    file: str
    column: str
    type: str
    low: LiteralValue | None
    high: LiteralValue | None
    nulls: int
    rows: int
    info: str | None = None


class RangesWire(ApiMessage):
    """Column ranges of the files of a partition. Files that are not indexed are not among them."""

    state: str
    ranges: tuple[RangeWire, ...]
    after: str | None = None


class SchemaWire(ApiMessage):
    """The Avro schema of the columns at a time, and the columns in Arrow's words. ``as_of``: None for now."""

    state: str
    as_of: str | None
    avro_schema: str
    columns: dict[str, str]


class QueryWire(ApiMessage):
    """Which rows: the latest, those as of an instant, those of base files, or those changed after ``begin``."""

    kind: Literal["snapshot", "read_optimized", "incremental"] = "snapshot"
    as_of: str | None = None
    begin: str = ""
    end: str | None = None


class CountingWire(ApiMessage):
    """What the reader needs of rows that are only counted."""

    columns: tuple[str, ...]
    condition: ConditionWire | None = None


class PlanRequest(ApiMessage):
    """A question for file slices.

    ``condition``: a tree, or SQL. ``state``: the state that the asker knows; if the table has another one, the answer
    has the table in place of slices. ``page``: the number of the page, from 0; all but the first need ``state``.
    """

    query: QueryWire = QueryWire()
    condition: ConditionWire | str | None = None
    count_all: bool = False
    counting: CountingWire | None = None
    state: str | None = None
    page: int = Field(default=0, ge=0)


class StepWire(ApiMessage):
    """What one step of a plan left."""

    name: str
    why: str
    partitions: int | None = None
    slices: int | None = None
    files: int | None = None


class WarningWire(ApiMessage):
    """A step that failed, so that more is read than needed."""

    step: str
    what: str


class CountedWire(ApiMessage):
    """Rows of a file slice that pass and need not be read."""

    partition: str
    file_id: str
    rows: int
    values: dict[str, LiteralValue | None] = Field(default_factory=dict)


class OrderWire(ApiMessage):
    """The order of rows in base files."""

    columns: tuple[str, ...]
    curve: str
    values: str
    seed: int


class LaidOutWire(ApiMessage):
    """Base files that one commit laid out."""

    instant: str
    clustering: bool
    order: OrderWire | None
    columns: tuple[str, ...]
    files: int
    skipped: int


class PlanAnswer(ApiMessage):
    """The file slices of a question, and the steps that selected them; or the table, if its state is not the one that
    was asked for. ``pages``: how many pages the slices have; all else is on the first one."""

    state: str
    table: TableWire | None = None
    slices: tuple[SliceWire, ...] = ()
    pages: int = 1
    steps: tuple[StepWire, ...] = ()
    warnings: tuple[WarningWire, ...] = ()
    counted: tuple[CountedWire, ...] = ()
    laid_out: tuple[LaidOutWire, ...] = ()


class ChangeWire(ApiMessage):
    """A completed instant and what it wrote: files by partition, and the file groups that it replaced."""

    instant: InstantWire
    operation: str
    files: dict[str, tuple[FileWire, ...]] = Field(default_factory=dict)
    replaced: dict[str, tuple[str, ...]] = Field(default_factory=dict)


class ChangesWire(ApiMessage):
    """What completed after a time, by completion time. ``more``: ask again from the last one's completion time on."""

    state: str
    changes: tuple[ChangeWire, ...]
    more: bool = False


class RegistrationRequest(ApiMessage):
    """An instant that a writer completed."""

    location: str
    instant: str


class RegistrationReply(ApiMessage):
    """The state of the table that has the instant; ``seen``: whether the timeline shows it as completed."""

    state: str
    seen: bool
