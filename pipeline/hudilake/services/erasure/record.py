"""The record of an erasure in the table: what is asked for while it is not done, which files held it, when each went.

``.hoodie/.binlake/erasures/<time>.json``, below a folder that no reader looks into. It has the keys as long as the
erasure is not done, so that whoever comes next goes on; what stays names files and times alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from hudilake.clock import now_ms, parse_instant
from hudilake.commit.clean import read_plan
from hudilake.errors import CorruptDataError
from hudilake.format.files.names import in_partition
from hudilake.format.timeline.instant import CLEAN
from hudilake.format.timeline.timeline import Timeline
from hudilake.services.erasure.search import ERASURES_PATH, ErasurePlan, Holder
from hudilake.storage.base import Storage, StorageNotFoundError


class HeldFile(msgspec.Struct):
    """A file that held a row. ``size`` in bytes; ``gone_ms``: when its bytes had gone, milliseconds since 1970; None
    while they are there."""

    path: str
    size: int
    fate: str
    gone_ms: int | None = None


class ErasureRecord(msgspec.Struct):
    """What is kept of an erasure.

    Args:
        time: when it began, 17 digits; names its file.
        keys: the record keys, and ``texts`` of their rows: of an erasure that is not done, else empty.
        files: which held one of them.
        savepoints: the requested times of those that were released.
        ended_ms: when the scan of all bytes had found nothing; None of an erasure that is not done.
    """

    time: str
    keys: list[str] = []
    texts: list[bytes] = []
    files: list[HeldFile] = []
    savepoints: list[str] = []
    ended_ms: int | None = None

    @property
    def path(self) -> str:
        """Its file, relative to the table's root."""
        return f"{ERASURES_PATH}/{self.time}.json"


def erasure_records(storage: Storage) -> list[ErasureRecord]:
    """The records of a table, oldest first. Raises CorruptDataError, StorageError."""
    return [_read(storage, info.path) for info in storage.list(ERASURES_PATH)]


def _read(storage: Storage, path: str) -> ErasureRecord:
    try:
        return msgspec.json.decode(storage.read(path), type=ErasureRecord)
    except msgspec.MsgspecError as error:
        raise CorruptDataError(
            f"the record of an erasure cannot be read: {error}",
            do_next="restore it from a copy, or delete it",
            path=path,
        ) from error


@dataclass
class Ledger:
    """An erasure's record in its table, written after each change.

    Args:
        storage: the table's root.
        record: which it keeps.
    """

    storage: Storage
    record: ErasureRecord
    _known: dict[str, HeldFile] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._known = {held.path: held for held in self.record.files}

    def hold(self, plan: ErasurePlan, texts: Iterable[bytes]) -> None:
        """Take in what a plan has found, and further texts to look for. Raises StorageError."""
        for path, holder in sorted(plan.holders.items()):
            if path not in self._known:
                self._known[path] = held = _held(holder)
                self.record.files.append(held)
        self.record.texts = sorted({*self.record.texts, *plan.texts, *texts})
        self.save()

    def note_gone(self, timelines: Iterable[tuple[str, Timeline]]) -> None:
        """Note which files have gone, and when. ``timelines``: of the table and its metadata table, each with its path
        below the table's root: their cleans say when they had deleted a file. Raises CorruptDataError, StorageError."""
        left = {held.path: held for held in self.record.files if held.gone_ms is None}
        gone = {path for path in left if self.storage.stat(path) is None}
        if not gone:
            return
        times = _cleaned(self.storage, timelines)
        for path in gone:
            left[path].gone_ms = times.get(path, now_ms())
        self.save()

    def rewritten(self, path: str) -> None:
        """Note that a file was written again without the rows. Raises StorageError."""
        if path in self._known:
            self._known[path].gone_ms = now_ms()
            self.save()

    def end(self) -> None:
        """The erasure is done: the keys leave the record. Raises StorageError."""
        self.record.keys, self.record.texts, self.record.ended_ms = [], [], now_ms()
        self.save()

    def save(self) -> None:
        """Write the record."""
        self.storage.write(self.record.path, msgspec.json.format(msgspec.json.encode(self.record), indent=1))


def _held(holder: Holder) -> HeldFile:
    return HeldFile(holder.path, holder.size, holder.fate.value)


def _cleaned(storage: Storage, timelines: Iterable[tuple[str, Timeline]]) -> dict[str, int]:
    """Path of a file -> when the clean that deleted it completed, in ms, as far as the active timelines say."""
    times: dict[str, int] = {}
    for root, timeline in timelines:
        home = storage.sub(root) if root else storage
        for clean in timeline.completed_actions({CLEAN}):
            try:
                plan = read_plan(home, clean)
            except StorageNotFoundError:
                continue
            for partition, names in plan.files.items():
                for name in names:
                    path = in_partition(partition, name)
                    times[f"{root}/{path}" if root else path] = parse_instant(clean.completion_time or "")
    return times
