"""What the service says of one lake table in one state. Errors as the readers': UnsupportedError for a time whose files
may have been cleaned, CorruptDataError, StorageError."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from hudilake.errors import ConfigError
from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.definition.schema import arrow_schema, value_schema
from hudilake.format.files.column_stats import ColumnRange, ValueType
from hudilake.format.files.view import FileSlice
from hudilake.format.timeline.commit_metadata import SCHEMA_KEY
from hudilake.format.timeline.instant import Instant
from hudilake.read.filters.expressions import TRUE, normalised, unknown_parts
from hudilake.read.filters.sql_filter import parse_filter
from hudilake.read.index import INDEX_FAILURES
from hudilake.read.listing import Listing, slices_for
from hudilake.read.plan import CONDITION, ScanWarning
from hudilake.read.query import Snapshot
from hudilake.read.slice import readable_schema
from hudilake.read.slice_files import SliceFiles
from hudilake.read.source import Selection, SliceQuestion
from hudilake.read.window import timeline_until
from lakemetastore.api.conditions import from_wire, literal
from lakemetastore.api.conversions import (
    counting_from,
    instant_to,
    query_from,
    selection_to,
    slice_to,
    table_to,
)
from lakemetastore.api.tables import (
    ChangesWire,
    ChangeWire,
    PartitionsWire,
    PlanAnswer,
    PlanRequest,
    RangesWire,
    RangeWire,
    SchemaWire,
    SlicesWire,
)
from lakemetastore.http.failures import GoneError
from lakemetastore.http.open_tables import TableView


def listing(view: TableView) -> Listing:
    """Where the table's files are listed."""
    table = view.reader.table
    return Listing.of(table.storage, view.index, table.timeline)


def partitions(view: TableView, after: str | None, limit: int) -> PartitionsWire:
    """A page of the partition paths."""
    rest = [path for path in listing(view).partitions() if after is None or path > after]
    page, last = rest[:limit], len(rest) <= limit
    return PartitionsWire(state=view.known.state, partitions=tuple(page), after=None if last else page[-1])


def slices_at(view: TableView, partition: str, as_of: str | None) -> tuple[FileSlice, ...]:
    """The file slices of a partition, by file id; none for a partition that the table does not have."""
    table, listed = view.reader.table, listing(view)
    if partition not in listed.partitions():
        return ()
    try:
        files = listed.files([partition])
    except INDEX_FAILURES as error:
        files = Listing(table.storage, None, str(error)).files([partition])
    until = timeline_until(table.storage, table.timeline, None)
    return slices_for(Snapshot(as_of), files, table.timeline, until, table.storage)


def slices(view: TableView, partition: str, as_of: str | None, after: str | None, limit: int) -> SlicesWire:
    """A page of the file slices of a partition."""
    rest = [piece for piece in slices_at(view, partition, as_of) if after is None or piece.file_id > after]
    page, last = rest[:limit], len(rest) <= limit
    slice_wires = tuple(map(slice_to, page))
    return SlicesWire(state=view.known.state, slices=slice_wires, after=None if last else page[-1].file_id)


def ranges(view: TableView, partition: str, columns: Sequence[str], after: str | None, limit: int) -> RangesWire:
    """A page of the column ranges of the files in the newest file slices of a partition. Pages end between files."""
    index, state = view.index, view.known.state
    schema = view.reader.schema
    if unknown := [name for name in columns if name not in schema.names]:
        raise ConfigError(f"the table has no columns {unknown}", do_next="correct the names")
    if index is None or not index.has(MetadataPartition.COLUMN_STATS) or not columns:
        return RangesWire(state=state, ranges=())
    files = sorted(SliceFiles(slices_at(view, partition, None)).files)
    rest = [file for file in files if after is None or file[1] > after]
    page = rest[: max(limit // len(columns), 1)]
    ranges_by_file = index.lookups(MetadataPartition.COLUMN_STATS).column_ranges(list(columns), page)
    items = (
        _range(partition, name, item)
        for (_, name) in page
        for item in ranges_by_file.get((partition, name), {}).values()
    )
    last = len(page) == len(rest)
    return RangesWire(state=state, ranges=tuple(items), after=None if last else page[-1][1])


def _range(partition: str, file: str, item: ColumnRange) -> RangeWire:
    low, high = (None if side is None else literal(side) for side in (item.min, item.max))
    return RangeWire(
        partition=partition,
        file=file,
        column=item.column,
        type=ValueType(item.value_type).name,
        low=low,
        high=high,
        nulls=item.null_count,
        rows=item.value_count,
        info=item.info,
    )


def schema(view: TableView, as_of: str | None) -> SchemaWire:
    """The columns now, or those of the newest commit that was requested at or before an instant."""
    text = view.known.schema if as_of is None else _schema_at(view, as_of)
    columns = {field.name: str(field.type) for field in value_schema(arrow_schema(text))}
    return SchemaWire(state=view.known.state, as_of=as_of, avro_schema=text, columns=columns)


def _schema_at(view: TableView, as_of: str) -> str:
    timeline = view.reader.table.timeline
    for commit in reversed(timeline.completed()):
        if commit.requested_time <= as_of and (text := timeline.commit_metadata(commit).extra.get(SCHEMA_KEY)):
            return text
    if timeline.history().files:
        raise GoneError("the schema of that time is in the archived timeline", do_next="give a later instant")
    return view.known.schema


def changes(view: TableView, since: str, limit: int) -> ChangesWire:
    """The instants that completed after a time, and what they wrote; the one that completed first is first.

    Raises GoneError if commits after that time may be in the archived timeline.
    """
    timeline = view.reader.table.timeline
    ordered = timeline.newest_first()[::-1]
    if timeline.history().files and (not ordered or since < (ordered[0].completion_time or "")):
        raise GoneError(
            "commits after that time are in the archived timeline",
            do_next="read the table whole, and ask for the changes since its newest instant",
            oldest=ordered[0].completion_time if ordered else None,
        )
    later = [write for write in ordered if (write.completion_time or "") > since]
    change_wires = tuple(_change(view, write) for write in islice(later, limit))
    return ChangesWire(state=view.known.state, changes=change_wires, more=len(later) > limit)


def _change(view: TableView, write: Instant) -> ChangeWire:
    metadata = view.reader.table.timeline.commit_metadata(write)
    files: dict[str, list[tuple[str, int]]] = {}
    for stat in metadata.stats:
        files.setdefault(stat.partition_path, []).append((stat.file_name, stat.file_size))
    return ChangeWire(
        instant=instant_to(write),
        operation=metadata.operation,
        files={path: tuple(names) for path, names in files.items()},
        replaced=dict(metadata.replaced or {}),
    )


def plan(view: TableView, location: str, request: PlanRequest, page_size: int) -> PlanAnswer | None:
    """The file slices of a question, or the table if the asker knows another state; None if the table was cleaned
    meanwhile. Raises ConfigError for a condition that is none, UnsupportedError."""
    known = view.known
    if request.state is None and request.page:
        raise ConfigError("a later page needs the state of the first one", do_next="send the state")
    if request.state is not None and request.state != known.state:
        return PlanAnswer(state=known.state, table=table_to(location, known))
    question = _question(view, request)
    selection = view.reader.select(question)
    if selection is None:
        return None
    if isinstance(request.condition, str):
        left = tuple(ScanWarning(CONDITION, f"not understood: {text}") for text in unknown_parts(question.condition))
        selection = replace(selection, warnings=selection.warnings + left)
    first = page_size * request.page
    pages = max(-(-len(selection.slices) // page_size), 1)
    mine = selection.slices[first : first + page_size]
    if request.page:
        selection = Selection(selection.slices, ())
    return selection_to(known.state, selection, pages, mine)


def _question(view: TableView, request: PlanRequest) -> SliceQuestion:
    query, asked = query_from(request.query), request.condition
    if isinstance(asked, str):
        as_of = query.as_of if isinstance(query, Snapshot) else None
        condition = parse_filter(asked, readable_schema(view.reader.table, as_of))
    else:
        condition = TRUE if asked is None else from_wire(asked)
    return SliceQuestion(query, normalised(condition), request.count_all, counting_from(request.counting))
