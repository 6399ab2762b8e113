"""``binlake inspect``: a table's configuration, timeline and files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from binlake.cli.table_options import Conf, TableName, table_storage
from binlake.cli.text import number, say_json, size, terminal
from binlake.position.record_reader import RecordReader
from binlake.rows.upsert.route import Counts
from binlake.settings import Settings
from hudilake.format.definition.bucketing import Bucketing, bucket_or_none
from hudilake.format.definition.config import TableConfig
from hudilake.format.files.view import FileSlice, file_slices
from hudilake.format.timeline.instant import Instant
from hudilake.table.table import HudiTable
from hudilake.wording import counted


def inspect(
    table: TableName,
    conf: Conf = None,
    instants: Annotated[int, typer.Option(help="How many of the newest instants to print.", min=0)] = 20,
    slices: Annotated[int, typer.Option(help="How many file slices to print, the largest first.", min=0)] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
) -> None:
    """Print a table's configuration, timeline and file slices."""
    settings = Settings.load(conf) if conf else None
    inspection = Inspection.of(table, settings)
    if as_json:
        say_json(_fields(inspection, instants, slices))
        return
    print_inspection(inspection, terminal(), instants=instants, slices=slices)


@dataclass(frozen=True)
class Inspection:
    """An opened table and its latest file slices."""

    table: HudiTable
    slices: list[FileSlice]

    @staticmethod
    def of(name: str, settings: Settings | None) -> Inspection:
        """Open a table by its path or URI, or, with settings, by ``database.table`` or by its path in the lake.

        Raises ConfigError if there is none, and what the storage raises.
        """
        table = HudiTable.open(table_storage(name, settings))
        return Inspection(table, file_slices(table.storage, table.timeline))


def _fields(inspection: Inspection, instants: int, slices: int) -> dict[str, Any]:
    """``instants``, ``slices``: how many of them."""
    table, config = inspection.table, inspection.table.config
    timeline = table.timeline
    shown = sorted([*timeline.completed(), *timeline.pending()])
    pieces = inspection.slices
    return {
        "table": f"{config.database}.{config.name}" if config.database else config.name,
        "uri": table.storage.uri,
        "kind": _kind(config),
        "key": list(config.record_key_fields),
        "partition": list(config.partition_fields),
        "ordering": config.ordering_field,
        "columns": {field.name: str(field.type) for field in table.schema},
        "metadata_partitions": list(config.metadata_partitions),
        "completed": len(timeline.completed()),
        "pending": len(timeline.pending()),
        "instants": [_instant_fields(table, one) for one in shown[len(shown) - min(instants, len(shown)) :]],
        "slices": len(pieces),
        "base_bytes": sum(s.base_size for s in pieces),
        "log_bytes": sum(s.log_size for s in pieces),
        "largest": [_slice_fields(config, piece) for piece in _largest(pieces, slices)],
    }


def _instant_fields(table: HudiTable, instant: Instant) -> dict[str, Any]:
    own = {"requested": instant.requested_time, "action": instant.action, "state": instant.state.value}
    own["completed"] = instant.completion_time or ""
    if not instant.completed:
        return {**own, "written": None}
    body = table.timeline.commit_metadata(instant)
    counts = RecordReader.of_commit(body.extra).counts
    written = {
        "files": len(body.stats),
        "bytes": sum(s.file_size for s in body.stats),
        "upserts": sum(s.num_writes for s in body.stats),
        "deletes": sum(s.num_deletes for s in body.stats),
        "counts": {**vars(counts)} if counts is not None else None,
    }
    return {**own, "written": written}


def _slice_fields(config: TableConfig, piece: FileSlice) -> dict[str, Any]:
    bucketing = config.bucketing if config.has_buckets else None
    return {
        "partition": piece.partition_path,
        "bucket": bucket_or_none(bucketing, piece.partition_path, piece.file_id) if bucketing is not None else None,
        "file_id": piece.file_id,
        "base_bytes": piece.base_size,
        "log_files": len(piece.log_files),
        "log_bytes": piece.log_size,
    }


def _largest(slices: list[FileSlice], limit: int) -> list[FileSlice]:
    largest = sorted(slices, key=lambda s: s.base_size + s.log_size, reverse=True)[:limit]
    return sorted(largest, key=lambda s: (s.partition_path, s.file_id))


def print_inspection(inspection: Inspection, console: Console, *, instants: int, slices: int) -> None:
    """Print configuration, the newest instants, the largest slices and sums."""
    _print_config(inspection, console)
    _print_timeline(inspection.table, console, instants)
    config = inspection.table.config
    _print_slices(inspection.slices, config.bucketing if config.has_buckets else None, console, slices)


def _print_config(inspection: Inspection, console: Console) -> None:
    config = inspection.table.config
    partition = ", ".join(config.partition_fields) or "none"
    name = f"{config.database}.{config.name}" if config.database else config.name
    console.print(f"{name} at {inspection.table.storage.uri}", markup=False, highlight=False, soft_wrap=True)
    key = ", ".join(config.record_key_fields) or "none"
    facts = (
        f"  {_kind(config)}; key {key}; partitioned by {partition}; "
        f"ordered by {config.ordering_field or 'commit'}; {counted(len(inspection.table.schema), 'column')}"
    )
    console.print(facts, markup=False, highlight=False, soft_wrap=True)
    kept = ", ".join(config.metadata_partitions) or "none"
    console.print(f"  metadata table: {kept}", markup=False, highlight=False, soft_wrap=True)


def _kind(config: TableConfig) -> str:
    """The table's type and index, as the settings name them."""
    kind = config.kind
    buckets = f" of {counted(config.bucket_count, 'bucket')}" if config.bucket_count else ""
    more = f", {len(config.partition_buckets)} rules for partitions" if config.partition_buckets else ""
    return f"{kind.type}; {kind.placement.words.format(kind.index)}{buckets}{more}"


def _print_timeline(table: HudiTable, console: Console, limit: int) -> None:
    timeline = table.timeline
    shown = sorted([*timeline.completed(), *timeline.pending()])
    title = f"timeline: {len(timeline.completed())} completed, {len(timeline.pending())} pending"
    grid = Table("requested", "action", "state", "completed", title=title, title_justify="left")
    for heading in ("files", "written", "upserts", "deletes", "counts"):
        grid.add_column(heading, justify="right")
    for instant in shown[len(shown) - min(limit, len(shown)) :]:
        grid.add_row(*_instant_cells(table, instant))
    console.print(grid)


def _instant_cells(table: HudiTable, instant: Instant) -> tuple[str, ...]:
    cells = (instant.requested_time, instant.action, instant.state.value, instant.completion_time or "")
    if not instant.completed:
        return cells
    body = table.timeline.commit_metadata(instant)
    deletes = sum(s.num_deletes for s in body.stats)
    upserts = sum(s.num_writes for s in body.stats)
    written = size(sum(s.file_size for s in body.stats))
    return (
        *cells,
        number(len(body.stats)),
        written,
        number(upserts),
        number(deletes),
        _counts(RecordReader.of_commit(body.extra).counts),
    )


def _counts(counts: Counts | None) -> str:
    """A commit's own account of its events, where binlake wrote it."""
    return ", ".join(f"{k} {v}" for k, v in vars(counts).items() if v) if counts is not None else ""


def _print_slices(slices: list[FileSlice], bucketing: Bucketing | None, console: Console, limit: int) -> None:
    base, log = sum(s.base_size for s in slices), sum(s.log_size for s in slices)
    files = sum(len(s.log_files) for s in slices)
    title = (
        f"{counted(len(slices), 'file slice')}: {size(base)} in base files, {size(log)} in {number(files)} log files"
    )
    grid = Table("partition", "bucket", "file id", title=title, title_justify="left")
    for heading in ("base", "log files", "log"):
        grid.add_column(heading, justify="right")
    for s in _largest(slices, limit):
        held = bucket_or_none(bucketing, s.partition_path, s.file_id) if bucketing is not None else None
        bucket = "" if held is None else str(held)
        base_size = size(s.base_size) if s.base_file else "-"
        grid.add_row(s.partition_path or ".", bucket, s.file_id, base_size, str(len(s.log_files)), size(s.log_size))
    console.print(grid)
