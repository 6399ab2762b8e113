"""Messages about tables and the values of readers that they carry, both ways.

Every ``..._from`` raises ConfigError, WrongAnswerError or ValueError for a message that is no such value.
"""

from __future__ import annotations

from hudilake.errors import ConfigError
from hudilake.format.files.names import parse_base_name, parse_log_name
from hudilake.format.files.view import BaseFile, FileSlice, LogFile
from hudilake.format.layout.order import Order
from hudilake.format.timeline.instant import Instant, State
from hudilake.policies import OrderPolicy
from hudilake.read.counting import CountedRows, CountRequest
from hudilake.read.filters.expressions import Value
from hudilake.read.laid_out import LaidOut
from hudilake.read.plan import PlanStep, ScanWarning
from hudilake.read.query import Incremental, Query, ReadOptimized, Snapshot
from hudilake.read.source import KnownTable, Selection, SliceQuestion, WrongAnswerError
from lakemetastore.api.conditions import from_wire, literal, to_wire, value_of
from lakemetastore.api.tables import (
    CountedWire,
    CountingWire,
    InstantWire,
    LaidOutWire,
    OrderWire,
    PlanAnswer,
    PlanRequest,
    QueryWire,
    SliceWire,
    StepWire,
    TableWire,
    WarningWire,
)


def instant_to(instant: Instant) -> InstantWire:
    """An instant as a message."""
    return InstantWire(
        requested=instant.requested_time,
        action=instant.action,
        state=instant.state.value,
        completed=instant.completion_time,
    )


def instant_from(message: InstantWire) -> Instant:
    """The instant of a message."""
    state = State(message.state)
    if (state is State.COMPLETED) != (message.completed is not None):
        raise WrongAnswerError("an instant's state contradicts its completion time", instant=message.requested)
    return Instant(message.requested, message.action, state, message.completed)


def table_to(location: str, known: KnownTable) -> TableWire:
    """A table's state as a message."""
    return TableWire(
        location=location,
        state=known.state,
        properties=known.properties.decode("utf-8"),
        avro_schema=known.schema,
        instants=tuple(map(instant_to, known.instants)),
    )


def table_from(message: TableWire) -> KnownTable:
    """The table's state of a message, whose name must be that of its content."""
    instants = map(instant_from, message.instants)
    known = KnownTable.of(message.properties.encode(), instants, message.avro_schema)
    if known.state != message.state:
        raise WrongAnswerError("a table's state has another name than its content gives", state=message.state)
    return known


def slice_to(piece: FileSlice) -> SliceWire:
    """A file slice as a message."""
    base = piece.base_file
    return SliceWire(
        partition=piece.partition_path,
        file_id=piece.file_id,
        base=None if base is None else (str(base.name), base.size),
        logs=tuple((str(file.name), file.size) for file in piece.log_files),
    )


def slice_from(message: SliceWire) -> FileSlice:
    """The file slice of a message."""
    base = None if message.base is None else parse_base_name(message.base[0])
    logs = [(parse_log_name(name), size) for name, size in message.logs]
    names = [name for name, _ in logs] + ([] if message.base is None else [base])
    if not names or any(name is None or name.file_id != message.file_id for name in names):
        raise WrongAnswerError("a file slice has no file, or a file of another group", file_group=message.file_id)
    path = message.partition
    return FileSlice(
        path,
        message.file_id,
        None if base is None or message.base is None else BaseFile(path, base, message.base[1]),
        tuple(LogFile(path, name, size) for name, size in logs if name is not None),
    )


def query_to(query: Query) -> QueryWire:
    """A query as a message."""
    if isinstance(query, Incremental):
        return QueryWire(kind="incremental", begin=query.begin, end=query.end)
    if isinstance(query, ReadOptimized):
        return QueryWire(kind="read_optimized")
    return QueryWire(as_of=query.as_of)


def query_from(message: QueryWire) -> Query:
    """The query of a message."""
    moments = [text for text in (message.as_of, message.begin, message.end) if text]
    if wrong := [text for text in moments if not (text.isascii() and text.isdigit() and len(text) == 17)]:
        raise ConfigError(f"{wrong[0][:50]!r} is not an instant", do_next="write 17 digits")
    if message.kind == "incremental":
        return Incremental(message.begin, message.end)
    return ReadOptimized() if message.kind == "read_optimized" else Snapshot(message.as_of)


def question_to(question: SliceQuestion, state: str) -> PlanRequest:
    """A question as a message. ``state``: the one that the asker knows."""
    counting = question.counting
    inner = None if counting is None or counting.condition is None else to_wire(counting.condition)
    return PlanRequest(
        query=query_to(question.query),
        condition=to_wire(question.condition),
        count_all=question.count_all,
        counting=None if counting is None else CountingWire(columns=counting.columns, condition=inner),
        state=state,
    )


def counting_from(message: CountingWire | None) -> CountRequest | None:
    """What a reader needs of counted rows."""
    if message is None:
        return None
    return CountRequest(message.columns, None if message.condition is None else from_wire(message.condition))


def selection_to(state: str, found: Selection, pages: int, first: tuple[FileSlice, ...]) -> PlanAnswer:
    """A selection as a message, with the file slices of its first page."""
    return PlanAnswer(
        state=state,
        slices=tuple(map(slice_to, first)),
        pages=pages,
        steps=tuple(
            StepWire(name=s.name, why=s.why, partitions=s.partitions, slices=s.slices, files=s.files)
            for s in found.steps
        ),
        warnings=tuple(WarningWire(step=warning.step, what=warning.what) for warning in found.warnings),
        counted=tuple(map(_counted_to, found.counted)),
        laid_out=tuple(map(_laid_out_to, found.laid_out)),
    )


def selection_from(message: PlanAnswer, slices: tuple[SliceWire, ...]) -> Selection:
    """The selection of a message with the file slices of all pages."""
    return Selection(
        slices=tuple(map(slice_from, slices)),
        steps=tuple(PlanStep(s.name, s.why, s.partitions, s.slices, s.files) for s in message.steps),
        warnings=tuple(ScanWarning(warning.step, warning.what) for warning in message.warnings),
        counted=tuple(map(_counted_from, message.counted)),
        laid_out=tuple(map(_laid_out_from, message.laid_out)),
    )


def _counted_to(rows: CountedRows) -> CountedWire:
    values = {name: None if value is None else literal(_value(value)) for name, value in rows.values.items()}
    return CountedWire(partition=rows.partition_path, file_id=rows.file_id, rows=rows.rows, values=values)


def _value(value: object) -> Value:
    """A partition value: Arrow gives no others for the types that paths can hold."""
    assert isinstance(value, Value), type(value)
    return value


def _counted_from(message: CountedWire) -> CountedRows:
    values = {name: None if value is None else value_of(value) for name, value in message.values.items()}
    return CountedRows(message.partition, message.file_id, message.rows, values)


def _laid_out_to(one: LaidOut) -> LaidOutWire:
    order = None
    if one.order is not None:
        policy = one.order.policy
        order = OrderWire(columns=policy.columns, curve=policy.curve, values=policy.values, seed=one.order.seed)
    return LaidOutWire(
        instant=one.instant,
        clustering=one.clustering,
        order=order,
        columns=one.columns,
        files=one.files,
        skipped=one.skipped,
    )


def _laid_out_from(message: LaidOutWire) -> LaidOut:
    order = None
    if message.order is not None:
        fields = message.order.model_dump(exclude={"seed"})
        order = Order(OrderPolicy.model_validate(fields), message.order.seed)
    return LaidOut(message.instant, message.clustering, order, message.columns, message.files, message.skipped)
