"""What a Hudi writer asks its remote file system view for, answered from the open tables.

Hudi's readers send nothing here; its writers do, and ask their own view whatever is not answered (measured with the
Spark bundle 1.2.0). So an answer is given only where it is the one that Hudi's own view would give: the client's
timeline has the same hash as storage's now, no action is pending that changes which files count (compaction, log
compaction, clustering), and the moment that is asked for is not before a completed commit. Everything else is refused
with 404, which the client takes as an order to look by itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query
from fastapi.responses import Response
from pydantic import Field

from hudilake.format.files.view import BaseFile, FileSlice, LogFile, first_instant
from hudilake.format.timeline.instant import CLUSTERING, COMPACTION, LOG_COMPACTION, REPLACE_COMMIT, Instant
from lakemetastore.api.base import Message
from lakemetastore.errors import NoSuchObjectError
from lakemetastore.http.asked import Served
from lakemetastore.http.lake_answers import listing, slices_at
from lakemetastore.http.open_tables import OpenTable, View

#: What Hadoop reports for files of a store without blocks.
_BLOCK_BYTES: Final = 32 << 20


# Names and types of messages are those of the classes of ``org.apache.hudi.common.table.timeline.dto`` in Hudi 1.2.0's
# bundle.
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


BASE: Final = "/v1/hoodie/view"
_ANY_AGE_MS: Final = 3_600_000
_PENDING: Final = (COMPACTION, LOG_COMPACTION, CLUSTERING, REPLACE_COMMIT)


@dataclass(frozen=True)
class HudiAsked:
    """A request of Hudi's client: the table as it spells its root, and the timeline that it knows.

    A state that has that timeline needs no comparison with storage.
    """

    table: OpenTable
    base_path: str
    timeline_hash: str | None
    max_instant: str | None

    def answer(self, work: Callable[[View], Iterable[Message] | Message]) -> Response:
        """What ``work`` makes of the table, as JSON. Raises NoSuchObjectError where Hudi's own view must look."""
        for max_age_ms in (_ANY_AGE_MS, 0):
            with self.table.hold(max_age_ms) as view:
                if self.timeline_hash == timeline_hash(view_instants(view.known.instants)):
                    return self._made(view, work)
        with self.table.hold(anew=True) as view:
            return self._made(view, work)

    def _made(self, view: View, work: Callable[[View], Iterable[Message] | Message]) -> Response:
        self._check(view)
        made = work(view)
        if isinstance(made, Message):
            return _json(made.model_dump_json(by_alias=True))
        return _json("[" + ",".join(item.model_dump_json(by_alias=True) for item in made) + "]")

    def _check(self, view: View) -> None:
        instants = view_instants(view.known.instants)
        if self.timeline_hash is not None and self.timeline_hash != timeline_hash(instants):
            raise _refused("the timeline that the client knows is not that of storage")
        if any(instant.action in _PENDING for instant in view.reader.table.timeline.pending()):
            raise _refused("a compaction, clustering or replacecommit is pending")
        newest = view.reader.table.timeline.last_completed()
        if self.max_instant is not None and newest is not None and self.max_instant < newest.requested_time:
            raise _refused("the moment is before a completed commit")


def _refused(why: str) -> NoSuchObjectError:
    return NoSuchObjectError(f"not answered: {why}", do_next="Hudi's client lists the table by itself")


def _json(text: str) -> Response:
    return Response(text, media_type="application/json")


router: Final = APIRouter(prefix=BASE, tags=["Hudi's remote file system view"])


def hudi_asked(
    served: Served,
    basepath: Annotated[str, Query(max_length=4096)],
    timelinehash: Annotated[str | None, Query(max_length=100)] = None,
    maxinstant: Annotated[str | None, Query(max_length=100)] = None,
) -> HudiAsked:
    """The table that Hudi's client names. Raises NoSuchObjectError."""
    return HudiAsked(served.tables.at(basepath), basepath.rstrip("/"), timelinehash, maxinstant)


Named = Annotated[HudiAsked, Depends(hudi_asked)]


@router.get("/slices/partition/latest/")
@router.get("/slices/partition/latest/stateless/")
@router.get("/slices/uncompacted/partition/latest/")
@router.get("/slices/beforeoron/latest/")
@router.get("/slices/merged/beforeoron/latest/")
def slices(of: Named, partition: str = "") -> Response:
    """The newest file slices of a partition."""
    return of.answer(lambda view: [slice_dto(of.base_path, piece) for piece in slices_at(view, partition, None)])


@router.get("/slices/file/latest/")
@router.get("/slice/merged/beforeoron/latest/")
def one_slice(of: Named, fileid: str, partition: str = "") -> Response:
    """The newest file slice of a file group."""

    def work(view: View) -> Iterable[Message]:
        return [slice_dto(of.base_path, piece) for piece in _of_group(slices_at(view, partition, None), fileid)]

    return of.answer(work)


@router.get("/datafiles/latest/partition")
@router.get("/datafiles/beforeoron/latest/")
def base_files(of: Named, partition: str = "") -> Response:
    """The newest base files of a partition."""
    return of.answer(lambda view: _base_files(of, slices_at(view, partition, None)))


@router.get("/datafile/latest/partition")
def one_base_file(of: Named, fileid: str, partition: str = "") -> Response:
    """The newest base file of a file group."""
    return of.answer(lambda view: _base_files(of, _of_group(slices_at(view, partition, None), fileid)))


@router.get("/datafiles/all/latest/")
def all_base_files(of: Named) -> Response:
    """The newest base files of all partitions."""

    def work(view: View) -> Iterable[Message]:
        paths = listing(view).partitions()
        return _base_files(of, (piece for path in paths for piece in slices_at(view, path, None)))

    return of.answer(work)


@router.get("/compactions/pending/")
@router.get("/logcompactions/pending/")
@router.get("/clustering/pending/")
def pending(of: Named) -> Response:
    """Pending plans: none, where this answers at all."""
    return of.answer(lambda view: [])


@router.get("/timeline/instants/all")
def timeline(of: Named) -> Response:
    """The instants that the view is made of."""
    return of.answer(lambda view: TimelineDto(instants=tuple(map(instant_dto, view_instants(view.known.instants)))))


@router.get("/timeline/instant/last")
def last(of: Named) -> Response:
    """The last of them."""
    return of.answer(lambda view: [instant_dto(instant) for instant in view_instants(view.known.instants)[-1:]])


@router.post("/refresh/")
def refresh(of: Named) -> Response:
    """Compare the table with storage."""
    with of.table.hold():
        return _json("true")


def _of_group(pieces: Sequence[FileSlice], file_id: str) -> list[FileSlice]:
    return [piece for piece in pieces if piece.file_id == file_id]


def _base_files(of: HudiAsked, pieces: Iterable[FileSlice]) -> list[Message]:
    return [base_file_dto(of.base_path, piece.base_file) for piece in pieces if piece.base_file is not None]
