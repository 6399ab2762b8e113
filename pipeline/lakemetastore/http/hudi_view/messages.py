"""File slices, base files and instants in the JSON of Hudi's timeline service.

Names and types are those of the classes of ``org.apache.hudi.common.table.timeline.dto`` in Hudi 1.2.0's bundle.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

from pydantic import Field

from hudilake.format.files.view import BaseFile, FileSlice, LogFile, first_instant
from hudilake.format.timeline.instant import COMPACTION, LOG_COMPACTION, Instant
from lakemetastore.api.base import Message

#: What Hadoop reports for files of a store without blocks.
_BLOCK_BYTES: Final = 32 << 20


class FilePathDto(Message):
    """A path as a URI with escapes."""

    uri: str


class FileStatusDto(Message):
    """A file. Hudi reads the path and the length; the time of its last change is not known here."""

    path: FilePathDto
    length: int
    isdir: bool = False
    block_replication: int = Field(default=1, serialization_alias="blockReplication")
    blocksize: int = _BLOCK_BYTES
    modification_time: int = Field(default=0, serialization_alias="modificationTime")


class BaseFileDto(Message):
    """A base file."""

    file_status: FileStatusDto = Field(serialization_alias="fileStatus")
    full_path: str = Field(serialization_alias="fullPath")
    file_len: int = Field(serialization_alias="fileLen")
    commit_time: str = Field(serialization_alias="commitTime")
    file_id: str = Field(serialization_alias="fileId")


class LogFileDto(Message):
    """A log file."""

    file_status: FileStatusDto = Field(serialization_alias="fileStatus")
    path: str
    len: int


class FileSliceDto(Message):
    """A file slice."""

    base_file: BaseFileDto | None = Field(serialization_alias="baseFile")
    log_files: tuple[LogFileDto, ...] = Field(serialization_alias="logFiles")
    partition: str
    file_id: str = Field(serialization_alias="fileId")
    base_instant: str = Field(serialization_alias="baseInstant")


class InstantDto(Message):
    """An instant."""

    action: str
    ts: str
    state: str
    requested_time: str = Field(serialization_alias="requestedTime")
    completion_time: str | None = Field(serialization_alias="completionTime")


class TimelineDto(Message):
    """Instants by requested time."""

    instants: tuple[InstantDto, ...]


def base_file_dto(base_path: str, file: BaseFile) -> BaseFileDto:
    """A base file. ``base_path``: the table's root as the client spells it."""
    full = f"{base_path}/{file.path}"
    return BaseFileDto(
        file_status=_status(full, file.size),
        full_path=full,
        file_len=file.size,
        commit_time=file.name.instant,
        file_id=file.name.file_id,
    )


def slice_dto(base_path: str, piece: FileSlice) -> FileSliceDto:
    """A file slice. ``base_path``: the table's root as the client spells it."""
    return FileSliceDto(
        base_file=None if piece.base_file is None else base_file_dto(base_path, piece.base_file),
        log_files=tuple(_log_dto(base_path, file) for file in piece.log_files),
        partition=piece.partition_path,
        file_id=piece.file_id,
        base_instant=first_instant(piece),
    )


def instant_dto(instant: Instant) -> InstantDto:
    """An instant."""
    return InstantDto(
        action=instant.action,
        ts=instant.requested_time,
        state=instant.state.value.upper(),
        requested_time=instant.requested_time,
        completion_time=instant.completion_time,
    )


def view_instants(instants: Iterable[Instant]) -> list[Instant]:
    """The instants that Hudi's view is made of: completed ones and compactions, by requested time."""
    kept = (i for i in instants if i.completed or i.action in (COMPACTION, LOG_COMPACTION))
    return sorted(kept)


def timeline_hash(instants: Iterable[Instant]) -> str:
    """Hudi's name of a timeline (``BaseHoodieTimeline.computeTimelineHash``; checked against what its client sends)."""
    digest = hashlib.sha256()
    for instant in instants:
        digest.update(f"{instant.requested_time}_{instant.action}_{instant.state.value.upper()}".encode())
    return digest.hexdigest()


def _log_dto(base_path: str, file: LogFile) -> LogFileDto:
    full = f"{base_path}/{file.path}"
    return LogFileDto(file_status=_status(full, file.size), path=full, len=file.size)


def _status(full: str, size: int) -> FileStatusDto:
    return FileStatusDto(path=FilePathDto(uri=quote(full, safe="/:")), length=size)
