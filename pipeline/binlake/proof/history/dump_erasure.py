"""A row leaves the files of a dump: its records are emptied in their places, and replays know the files again.

A record that names the row and another one that the row became, or was, stays: without it a replay would lack the other
row. It is named, as is each file with records that cannot be matched to a row, and counts as left.
"""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from binlake.load.replay.replay_dumps import dump_schemas
from binlake.load.replay.runner import replay_stream, replaying
from binlake.position.lease import StreamLease
from binlake.proof.history.dump_search import DumpFinds, DumpSearch
from binlake.proof.history.erased_cells import RowKeys
from binlake.proof.history.keys import RowKey
from binlake.proof.history.opened import change_reader
from binlake.rows.upsert.target import key_columns
from binlake.settings import Settings
from binlake.source.dump_edit import Replacements, replaced
from binlake.source.dump_layout import DumpFile, DumpLayout, Window
from binlake.source.dump_read import READ_ERRORS, read_dump, unreadable
from binlake.source.dump_versions import rewrite
from binlake.stream.definitions.learned import Definitions
from binlake.tables.catalog import CatalogTable
from binlake.tables.lake import Lake
from hudilake.clock import format_instant, now_ms
from hudilake.errors import CorruptDataError, UnsupportedError
from hudilake.services.erasure.erase import ErasureReport
from hudilake.services.erasure.record import ErasureRecord, HeldFile
from hudilake.services.erasure.search import ErasurePlan, Fate, Holder
from hudilake.services.erasure.traces import ByteScan, Quarry, Trace, traces
from hudilake.storage import Storage, open_storage
from hudilake.storage.base import StorageNotFoundError, every_file
from hudilake.wording import counted

_CHUNK_RECORDS = 10_000
_NOT_NAMED = "its records do not name such a row: only files with one of its texts are known, and none is written"


@dataclass
class DumpErasure:
    """The erasure of a row from a stream's dumps.

    Args:
        settings: of the stream.
        storage: the dump's root.
        search: for the row; None for a table whose rows records do not name: its files are read, and none is written.
        row_keys: the row's record keys.
        finds: what each file of the dump has of it.
        unread: path, or the dump's root -> what could not be read or is not known.
    """

    settings: Settings
    storage: Storage
    search: DumpSearch | None
    row_keys: frozenset[str]
    finds: dict[tuple[str, int, int], DumpFinds] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)

    def look(self) -> ErasurePlan:
        """Look for the row in every file. Changes nothing.

        Returns the files that hold it, and those of which that is not known. Raises StorageError, TransientError.
        """
        plan = ErasurePlan(self.row_keys)
        files = self._files()
        for file in files:
            self._look(file)
        self._note_doubts(files)
        tombstones = self._tombstones()
        for file in files:
            finds = self.finds.get(file.identity, DumpFinds())
            if finds.values or (finds.keys | finds.deleted) & tombstones:
                plan.holders[file.path] = Holder(file.path, file.size, Fate.FILTERED)
            if finds.left:
                plan.unread[file.path] = "; ".join(finds.left)
        plan.unread |= self.unread
        return plan

    def carry_out(self, texts: frozenset[bytes]) -> ErasureReport:
        """Empty the row's records, and read all files again. No replay may run meanwhile.

        Args:
            texts: of the row, to be looked for beside those of its records.

        Raises LostOwnershipError while a replay of the stream runs, StorageError. After an error the same call goes on.
        """
        state = open_storage(replaying(self.settings).state_uri, self.settings.state_options())
        with StreamLease(state, replay_stream(self.settings.name)):
            return self._carry_out(texts)

    def _carry_out(self, texts: frozenset[bytes]) -> ErasureReport:
        files = dict[str, DumpFile]()
        while late := self._later_than(files):
            files |= {file.path: file for file in late}
            for known in late:
                self._look(known)
        self._note_doubts(list(files.values()))
        texts = texts.union(*(finds.texts for finds in self.finds.values()))
        spelled = {one: text for text in texts for one in _spellings(text)}
        record, done = ErasureRecord(format_instant(now_ms())), ByteScan(unread=dict(self.unread))
        check = _Check(self.search, self.storage, Quarry(self.row_keys, frozenset(spelled)), done)
        tombstones = self._tombstones()
        for info in every_file(self.storage):
            try:
                data, file = self.storage.read(info.path), files.get(info.path)
            except StorageNotFoundError:
                continue
            if file is not None and not self._is_same(file, data):
                done.unread[file.path] = "the file has changed since it was looked through: give the command again"
            elif file is not None:
                data = self._write(file, data, tombstones, record, done)
            check.read(info.path, data, file)
        check.leave_out_shared(spelled)
        self._note_late(self._later_than(files), tombstones, done)
        return ErasureReport(record, done)

    def _later_than(self, files: Collection[str]) -> list[DumpFile]:
        """The files of the dump that are not among some: a dump may run meanwhile."""
        return [file for file in self._files() if file.path not in files]

    def _note_late(self, late: Sequence[DumpFile], tombstones: frozenset[tuple[str, bytes]], done: ByteScan) -> None:
        """Name those of the files that came after all had been looked through which have the row, or may have it."""
        for file in late:
            self._look(file)
            finds = self.finds.get(file.identity, DumpFinds())
            if finds.values or finds.keys | finds.deleted & tombstones or finds.doubtful or finds.left:
                done.unread[file.path] = "it came meanwhile, and has records of the row: give the command again"
            elif file.path in self.unread:
                done.unread[file.path] = self.unread[file.path]

    def _is_same(self, file: DumpFile, data: bytes) -> bool:
        """Whether bytes that were just read are those of the file that was looked through."""
        now = self.storage.stat(file.path)
        return now is not None and file.identity == (file.path, now.size, now.modified_ms) and len(data) == file.size

    def _files(self) -> list[DumpFile]:
        layout = DumpLayout.of(self.settings.dump)
        return layout.find(self.storage, Window(), (self.settings.dump.ddl_path,))

    def _look(self, file: DumpFile) -> None:
        if self.search is None or file.identity in self.finds or file.path in self.unread:
            return
        try:
            self.finds[file.identity] = self.search.look(self.storage, file)
        except CorruptDataError as error:
            self.unread[file.path] = error.what

    def _note_doubts(self, files: Sequence[DumpFile]) -> None:
        """Note what may be of the row: tombstones whose key may be its key in other words, and is the key of no
        other record; of rows that records do not name, all files."""
        self.unread.pop(self.storage.uri, None)
        if self.search is None:
            if files:
                self.unread[self.storage.uri] = _NOT_NAMED
            return
        topics = self._topics()
        doubtful = {one for finds in self.finds.values() for one in finds.doubtful if one[0] in topics}
        doubtful -= self._tombstones()
        for file in files if doubtful else ():
            if file.path not in self.unread:
                for chunk in read_dump(self.storage, file, _CHUNK_RECORDS):
                    keys = zip(chunk.keys, chunk.values, strict=True)
                    doubtful -= {(chunk.topic, key) for key, value in keys if key is not None and value is not None}
        if doubtful:
            self.unread[self.storage.uri] = (
                f"{counted(len(doubtful), 'tombstone')} may have the row's key in other words"
            )

    def _topics(self) -> set[str]:
        """The topics with rows of the row's table."""
        return {topic for finds in self.finds.values() for topic in finds.topics}

    def _tombstones(self) -> frozenset[tuple[str, bytes]]:
        """Topic and Kafka key of the tombstones of the row."""
        topics = self._topics()
        named = {one for finds in self.finds.values() for one in finds.deleted if one[0] in topics}
        return frozenset(named.union(*(finds.keys for finds in self.finds.values())))

    def _write(
        self,
        file: DumpFile,
        data: bytes,
        tombstones: frozenset[tuple[str, bytes]],
        record: ErasureRecord,
        done: ByteScan,
    ) -> bytes:
        """Empty the row's records of a file. Returns its bytes as they are then."""
        finds = self.finds.get(file.identity, DumpFinds())
        if finds.left:
            done.finds[file.path] = [Trace(one) for one in finds.left]
        try:
            written = replaced(data, file.path, Replacements(finds.values, tombstones))
        except (UnsupportedError, CorruptDataError) as error:
            done.unread[file.path], written = error.what, None
        except READ_ERRORS as error:
            done.unread[file.path], written = unreadable(self.storage, file, error).what, None
        if written is None:
            return data
        rewrite(self.storage, file, data, written)
        record.files.append(HeldFile(file.path, len(data), Fate.FILTERED.value, now_ms()))
        return written


@dataclass
class _Check:
    """Reads the files of a dump again. A text that the image of another row has, too, proves nothing."""

    search: DumpSearch | None
    storage: Storage
    quarry: Quarry
    done: ByteScan
    said: set[bytes] = field(default_factory=set)

    def read(self, path: str, data: bytes, file: DumpFile | None) -> None:
        """Take in a file: its bytes, and for a file of records also what these say. Raises LakeError."""
        self.done.files, self.done.size = self.done.files + 1, self.done.size + len(data)
        try:
            seen = traces(data, self.quarry)
            if file is not None:
                seen += self._in_records(replace(file, size=len(data)))
        except CorruptDataError as error:
            self.done.unread[path] = error.what
            return
        if seen:
            self.done.finds[path] = [*self.done.finds.get(path, ()), *seen]

    def _in_records(self, file: DumpFile) -> list[Trace]:
        """The texts in the records of a file, which lines have in base64 if they are no UTF-8. Notes which of them
        other rows have."""
        seen = set[bytes]()
        for chunk in read_dump(self.storage, file, _CHUNK_RECORDS):
            said = b"\0".join(text for text in (*chunk.keys, *chunk.values) if text is not None)
            here = {text for text in self.quarry.texts if text in said}
            if here and self.search is not None:
                held = [
                    i for i, value in enumerate(chunk.values) if value is not None and any(t in value for t in here)
                ]
                self.said |= self.search.others_say(chunk.select(held), file, self.quarry.texts)
            seen |= here
        return [Trace("records", text) for text in sorted(seen)]

    def leave_out_shared(self, spelled: Mapping[bytes, bytes]) -> None:
        """Leave out what other rows have. ``spelled``: a text as a file may have it -> the text itself."""
        shared = {spelled[one] for one in self.said}
        for path, seen in list(self.done.finds.items()):
            left = [one for one in seen if one.text is None or spelled[one.text] not in shared]
            self.done.finds.pop(path)
            if left:
                self.done.finds[path] = left
        self.done.shared = len(shared)


def _spellings(text: bytes) -> set[bytes]:
    """A text as it is, as JSON writes it, as JSON does in a text of JSON, and as messages write bytes: in base64."""
    said = {text, base64.b64encode(text)}
    with contextlib.suppress(UnicodeDecodeError):
        plain = text.decode()
        once = {plain, *(json.dumps(plain, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False))}
        twice = {json.dumps(one, ensure_ascii=ascii_only)[1:-1] for one in once for ascii_only in (True, False)}
        said |= {one.encode() for one in once | twice}
    return said


def dump_erasure(
    settings: Settings, root: Storage, place: CatalogTable, row: RowKey, keys: RowKeys
) -> DumpErasure | None:
    """The erasure of a row of a table from the dumps of the settings; None without dumps.

    Args:
        settings: of the stream.
        root: the lake's root.
        place: the table of the row.
        row: which.
        keys: its record keys.

    Raises ConfigError, CorruptDataError, StorageError, TransientError.
    """
    dump = settings.dump
    if dump.uri is None:
        return None
    storage = open_storage(dump.uri, dump.storage_options(dump.uri, settings.lake))
    lake = Lake(root)
    table = lake.look(place.rules)
    named = table is not None and bool(key_columns(table.hudi.config))
    if table is None or not named or settings.tables.is_history(place.source):
        return DumpErasure(settings, storage, None, keys.keys)
    registry = dump_schemas(replaying(settings), Definitions(settings), storage)
    reader = change_reader(settings, lake, {place.source: table}, registry)
    return DumpErasure(settings, storage, DumpSearch(reader, place.source, row, keys), keys.keys)
