"""Strict reading of a data file: it reports the damaged blocks that readers skip silently."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
from fastavro.schema import SchemaParseException

from hudilake.errors import CorruptDataError, LakeError, UnsupportedError
from hudilake.format.definition.bucketing import bucket_or_none
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.key_change import keyed_since
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.digest.content_sum import ContentSum, total
from hudilake.format.files.column_stats import LogRanges, log_ranges
from hudilake.format.files.data_block import decode_data_block
from hudilake.format.files.delete_block import decode_deletes
from hudilake.format.files.log_file import MAGIC, BlockType, Header, LogBlock, iter_blocks
from hudilake.format.files.names import BaseFileName, LogFileName
from hudilake.format.files.parquet_file import decode_parquet
from hudilake.services.fsck.evidence import DataFile, Evidence
from hudilake.services.fsck.findings import Check, Finding, Severity
from hudilake.storage.base import Storage, StorageNotFoundError
from hudilake.table.others_writes import strays

#: Errors of decoders on damaged bytes; if binlake knows the table's schema, an unsupported type is damage too.
UNREADABLE: Final = (
    LakeError,
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    TypeError,
    ValueError,
    pa.ArrowException,
    struct.error,
    SchemaParseException,
)
_UNKNOWN = "binlake verify compares its rows with the source; the next compaction or rewrite records what it holds"
_LENGTH = struct.Struct(">q")
_RESTORE = "restore it from a copy, or load the rows of that commit's offsets again"


@dataclass
class FileContent:
    """The rows of a data file, block by block, and its findings.

    ``tables``: whole rows. ``partials``: partial rows, each table with a part of the columns. ``deletes``: keys and
    orders of deletes. ``sound``: nothing is damaged. ``complete``: all its blocks are of kinds that were read.
    ``described``: none of them is Avro, whose statistics Hudi does not keep.
    """

    tables: list[pa.Table] = field(default_factory=list)
    partials: list[pa.Table] = field(default_factory=list)
    deletes: list[pa.Table] = field(default_factory=list)
    size: int = 0
    sound: bool = True
    complete: bool = True
    described: bool = True
    findings: list[Finding] = field(default_factory=list)

    def record_keys(self) -> list[pa.ChunkedArray]:
        """The record keys of its rows, table by table."""
        tables = (*self.tables, *self.partials)
        return [t.column(RECORD_KEY_FIELD) for t in tables if RECORD_KEY_FIELD in t.column_names]

    @property
    def deleted(self) -> int:
        """The number of its deletes."""
        return sum(t.num_rows for t in self.deletes)

    @property
    def contents(self) -> ContentSum | None:
        """What it holds; None if that is not known whole."""
        if not (self.sound and self.complete):
            return None
        whole, partial = map(ContentSum.of_rows, self.tables), map(ContentSum.of_partials, self.partials)
        deletes = (ContentSum.of_deletes(t.column(RECORD_KEY_FIELD), t.column("ordering")) for t in self.deletes)
        return total([*whole, *partial, *deletes])

    @property
    def rows(self) -> int:
        """The number of its rows."""
        return sum(t.num_rows for t in (*self.tables, *self.partials))

    def ranges(self, columns: Sequence[str]) -> LogRanges:
        """The correct statistics of those columns; without ranges if the rows are not known."""
        if not (self.sound and self.complete and self.described):
            return LogRanges(None)
        try:
            return log_ranges(self.tables, self.partials, columns)
        except (pa.ArrowException, TypeError):
            return LogRanges(None)


@dataclass
class ContentsReport:
    """What became of the files that readers use.

    Args:
        proved: the number that hold what their commits recorded.
        rows: their rows and deletes.
        undetermined: the number of which that is not known: no readable commit says it, or they cannot be read whole.
        findings: errors, and an INFO for each file that is not determined.
    """

    proved: int = 0
    rows: int = 0
    undetermined: int = 0
    findings: list[Finding] = field(default_factory=list)


def read_content(storage: Storage, file: DataFile) -> FileContent:
    """Read a data file. Damage becomes findings. Raises StorageError."""
    content = FileContent()
    try:
        data = storage.read(file.path)
    except StorageNotFoundError:
        content.sound = False  # cleaned or rolled back meanwhile
        return content
    content.size = len(data)
    if not data:
        _damage(content, file, "the file is empty", None)
    elif isinstance(file.name, LogFileName):
        _take_log(content, file, data)
    elif isinstance(file.name, BaseFileName) and file.name.extension == "parquet":
        _take_base(content, file, data)
    else:
        content.described = False
    return content


def damaged_spans(data: bytes, path: str) -> Iterator[tuple[int, int, str] | LogBlock]:
    """The blocks of a log file, and the unreadable ranges between them as (start, end, reason), in bytes."""
    position = 0
    try:
        for block in iter_blocks(data, path):
            if block.offset != position:
                yield position, block.offset, "a block is damaged: readers skip it"
            yield block
            (length,) = _LENGTH.unpack_from(data, block.offset + len(MAGIC))
            position = block.offset + len(MAGIC) + _LENGTH.size + length
    except CorruptDataError as error:
        yield int(error.where.get("offset", position)), len(data), error.what
        return
    if position != len(data):
        yield position, len(data), "the file's end is cut short or damaged: readers skip it"


def too_few_rows(evidence: Evidence, file: DataFile, content: FileContent) -> Iterator[Finding]:
    """A readable file with fewer rows than its commit wrote: a Parquet footer has no checksum."""
    body = evidence.bodies.get(file.name.instant) or evidence.archived.get(file.name.instant)
    stats = [stat for stat in body.stats if stat.path == file.path] if body is not None else []
    if not stats or not content.sound or not content.complete:
        return
    held, said, is_log = content.rows, stats[0].num_writes, isinstance(file.name, LogFileName)
    # hudi-rs 0.6 counts deletes as writes, too (measured).
    counted = held + (content.deleted if is_log and stats[0].contents is None else 0)
    if counted < said or (is_log and content.deleted < stats[0].num_deletes):
        what = f"{held} rows and {content.deleted} deletes where its commit wrote {said} and {stats[0].num_deletes}"
        yield Finding(Severity.ERROR, Check.CONTENT, what, file.path, instant=file.name.instant, advice=_RESTORE)


def other_contents(evidence: Evidence, file: DataFile, content: FileContent) -> Iterator[Finding]:
    """A readable file that does not hold what its commit recorded, row by row."""
    recorded, held = evidence.recorded_contents(file), content.contents
    if recorded is None or held is None or held == recorded:
        return
    what = "its rows are not those that its commit wrote"
    if held.rows != recorded.rows:
        what = f"it holds {held.rows} rows and deletes where its commit wrote {recorded.rows}"
    yield Finding(Severity.ERROR, Check.CONTENT, what, file.path, instant=file.name.instant, advice=_RESTORE)


def check_contents(evidence: Evidence) -> ContentsReport:
    """Read every file that readers use, those of earlier moments too. One file's rows are in memory at a time.

    Raises StorageError.
    """
    report = ContentsReport()
    for file in evidence.visible:
        findings = list(_of_file(evidence, file, report))
        report.findings += findings
    return report


def _of_file(evidence: Evidence, file: DataFile, report: ContentsReport) -> Iterator[Finding]:
    recorded = evidence.recorded_contents(file)
    if recorded is None:
        report.undetermined += 1
        what = "its contents are not determined: no readable commit records what it holds"
        yield Finding(Severity.INFO, Check.CONTENT, what, file.path, instant=file.name.instant, advice=_UNKNOWN)
        return
    content = read_content(evidence.storage, file)
    held = content.contents
    if held is None:
        if evidence.storage.stat(file.path) is None:
            return  # cleaned meanwhile
        report.undetermined += 1
        yield from content.findings
        return
    if held == recorded:
        report.proved += 1
        report.rows += held.rows
    yield from other_contents(evidence, file, content)


def wrong_bucket(config: TableConfig, file: DataFile, content: FileContent) -> Iterator[Finding]:
    """Rows whose key belongs to another bucket than their file: an update of the key does not find them."""
    if not config.bucket_count or file.name.instant < keyed_since(config):  # of an earlier key
        return
    bucket = bucket_or_none(config.bucketing, file.partition_path, file.name.file_id)
    for keys in content.record_keys():
        if count := strays(config, file.partition_path, bucket, keys):
            yield Finding(
                Severity.ERROR,
                Check.FILES,
                f"{count} of {len(keys)} rows belong to another bucket",
                file.path,
                instant=file.name.instant,
                advice="the bucket count or the key fields were changed: restore them, or rebuild the table",
            )
            return


def _take_base(content: FileContent, file: DataFile, data: bytes) -> None:
    try:
        content.tables.append(decode_parquet(data, None, file.path))
    except UNREADABLE as error:
        _damage(content, file, _why(error), None)


def _take_log(content: FileContent, file: DataFile, data: bytes) -> None:
    for part in damaged_spans(data, file.path):
        if isinstance(part, LogBlock):
            _take_block(content, file, part)
        else:
            start, end, why = part
            _damage(content, file, f"{why} ({end - start} bytes)", start)


def _take_block(content: FileContent, file: DataFile, block: LogBlock) -> None:
    # A compaction restates deletes under the instants of the commits that deleted.
    restated = block.block_type is BlockType.DELETE and (block.instant or "~") < file.name.instant
    if block.instant != file.name.instant and not restated:
        what = f"a block has the instant {block.instant}, not its file's"
        content.findings.append(
            Finding(Severity.WARNING, Check.CONTENT, what, file.path, block.offset, file.name.instant)
        )
    try:
        if block.block_type is BlockType.DELETE:
            content.deletes.append(decode_deletes(block.content, file.path))
        elif block.block_type in (BlockType.PARQUET_DATA, BlockType.AVRO_DATA):
            rows = content.partials if block.is_partial else content.tables
            rows.append(decode_data_block(block, None, file.path))
            content.described &= block.block_type is BlockType.PARQUET_DATA
        else:
            content.complete = False
    except UNREADABLE as error:
        marked = block.header.get(Header.COMPACTED_BLOCK_TIMES, "false") != "false"
        if isinstance(error, UnsupportedError) and marked:
            content.complete = False
            what = f"not checked: {error.what}"
            content.findings.append(Finding(Severity.INFO, Check.CONTENT, what, file.path, block.offset))
        else:
            _damage(content, file, _why(error), block.offset)


def _why(error: Exception) -> str:
    return error.what if isinstance(error, LakeError) else f"the rows cannot be read: {error}"


def _damage(content: FileContent, file: DataFile, what: str, offset: int | None) -> None:
    content.sound = False
    finding = Finding(Severity.ERROR, Check.CONTENT, what, file.path, offset, file.name.instant, advice=_RESTORE)
    content.findings.append(finding)
