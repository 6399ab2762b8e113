"""Which records of dump files are of one row: read as a replay reads them, by the tables' rules of today."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from binlake.decode.changes import META_NAMES, RawRecords, SourceTable
from binlake.proof.history.changes import ChangeReader, DecodedChunk
from binlake.proof.history.erased_cells import RowKeys
from binlake.proof.history.keys import RowKey
from binlake.proof.history.quarantined import is_of_row, names_another
from binlake.proof.history.row_change import NoRow, Row, RowChange
from binlake.source.dump_edit import Place
from binlake.source.dump_layout import DumpFile, split_topic
from binlake.source.dump_read import read_dump
from hudilake.services.erasure.traces import LEAST_TEXT_BYTES
from hudilake.storage import Storage
from hudilake.wording import counted

_CHUNK_RECORDS = 10_000
_MESSAGE = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ROWS = msgspec.json.Decoder(list[msgspec.Raw])
#: What reading a message of another form raises.
_NO_ROWS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, KeyError)


@dataclass
class DumpFinds:
    """What a dump file has of a row.

    Args:
        values: place and value of a record of the row -> what stays of the value (the other rows of its message) or
            None.
        keys: topic and Kafka key of the records of the row.
        deleted: topic and Kafka key of tombstones of rows with its key, in topics of any table; ``doubtful``: of those
            whose key may be its key.
        topics: those of the row's table.
        shared: topics with rows of other tables.
        texts: of the row's images, long enough to be looked for.
        entangled: how many records name the row and another row that this row became, or was.
        unknown: how many records may be of the row: they cannot be read, or name no row.
    """

    values: dict[tuple[Place, bytes | None], bytes | None] = field(default_factory=dict)
    keys: set[tuple[str, bytes]] = field(default_factory=set)
    deleted: set[tuple[str, bytes]] = field(default_factory=set)
    doubtful: set[tuple[str, bytes]] = field(default_factory=set)
    topics: set[str] = field(default_factory=set)
    shared: set[str] = field(default_factory=set)
    texts: set[bytes] = field(default_factory=set)
    entangled: int = 0
    unknown: int = 0

    @property
    def left(self) -> list[str]:
        """Which records stay, in words."""
        counts = ((self.entangled, "of the row and of another one"), (self.unknown, "of no known row"))
        return [f"{counted(count, 'record')} {what}" for count, what in counts if count]


@dataclass(frozen=True)
class DumpSearch:
    """The search for a row.

    Args:
        reader: of the changes of the row's table.
        source: the table.
        row: the row.
        keys: its record keys in every spelling.
    """

    reader: ChangeReader
    source: SourceTable
    row: RowKey
    keys: RowKeys

    def look(self, storage: Storage, file: DumpFile) -> DumpFinds:
        """What a file has of the row. Raises CorruptDataError for a file that cannot be read, LakeError."""
        finds, bare, tableless = DumpFinds(), _bare(file), list[RawRecords]()
        for chunk in read_dump(storage, file, _CHUNK_RECORDS):
            there = [i for i, one in enumerate(zip(chunk.keys, chunk.values, strict=True)) if one != (None, None)]
            if there:  # records that were emptied say nothing
                tableless += self._look(chunk.select(there), bare, finds)
        for one in tableless:
            if self._is_own(one.topic, bare, finds):
                self._note(one, [0], None, finds)
            else:
                finds.unknown += 1
        return finds

    def _is_own(self, topic: str, bare: SourceTable | None, finds: DumpFinds) -> bool:
        """Whether all records of a topic, or of a file without topics, are of the row's table."""
        named = SourceTable(*split_topic(topic)) if bare is None else bare
        return topic not in finds.shared and (topic in finds.topics or named == self.source)

    def others_say(self, records: RawRecords, file: DumpFile, texts: Collection[bytes]) -> frozenset[bytes]:
        """Which texts the images of other rows in some records of a file have, of any table. Raises LakeError."""
        chunk = self.reader.decoded(records, _bare(file))
        changes = [one for one in self.reader.changes(chunk, left_out=True) if isinstance(one, RowChange)]
        own = {(one.offset, one.row) for one in changes if one.key in self.keys}
        own -= {(one.offset, one.row) for one in changes if one.key not in self.keys}
        said = {text for place, image in source_images(chunk) if place not in own for text in texts_of(image)}
        return frozenset(text for text in texts if any(text in one for one in said))

    def _look(self, records: RawRecords, bare: SourceTable | None, finds: DumpFinds) -> list[RawRecords]:
        """Note what some records have of the row. Returns those that have its key and name no table."""
        chunk = self.reader.decoded(records, bare)
        known = self.keys.all_of_them
        wanted = {self.source: known} if known is not None else None
        nowhere = {bad.offset for bad in chunk.decoded.quarantined if bad.source is None}
        mine, odd, tableless = set[int](), set(nowhere), list[RawRecords]()
        for batch in chunk.refused:
            if batch.schema.source == self.source:
                odd |= set(batch.rows.column("__offset").to_pylist())
        for change in self.reader.changes(chunk, keys=wanted, left_out=True):
            if isinstance(change, RowChange):
                if change.key in self.keys:
                    mine.add(change.offset)
            elif not change.is_truncate:
                odd.add(change.offset)
        for index in np.flatnonzero(np.isin(records.offsets, sorted(odd - mine))).tolist():
            key, value = records.keys[index], records.values[index]
            of_row = is_of_row(key, value, self.row)
            finds.unknown += of_row is None
            if of_row and names_another(key, value, self.row):
                finds.entangled += 1
            elif of_row and int(records.offsets[index]) in nowhere:
                tableless.append(records.select([index]))
            elif of_row:
                self._note(records, [index], None, finds)
        for offset in sorted(mine):
            places = np.flatnonzero(records.offsets == offset).tolist()
            self._of_row(records.select(places), bare, records, places, finds)
        origins = [(one.topic, one.schema.source, one.origin or one.schema.source) for one in chunk.decoded.changes]
        own = {origin for _, source, origin in origins if source == self.source}
        finds.topics |= {topic for topic, _, origin in origins if origin in own}
        finds.shared |= {topic for topic, _, origin in origins if origin not in own}
        for key, value in zip(records.keys, records.values, strict=True):
            if value is None and key is not None and (of_row := is_of_row(key, None, self.row)) is not False:
                (finds.deleted if of_row else finds.doubtful).add((records.topic, key))
        return tableless

    def _of_row(
        self, some: RawRecords, bare: SourceTable | None, records: RawRecords, places: list[int], finds: DumpFinds
    ) -> None:
        """Note the records at one offset, which is one record unless a writer has made two of it."""
        rows: dict[int, set[bool]] = {}
        chunk = self.reader.decoded(some, bare)
        unread = bool(chunk.decoded.quarantined or chunk.refused)
        for change in self.reader.changes(chunk, left_out=True):
            if isinstance(change, NoRow):
                unread = True
                continue
            own = change.key in self.keys
            rows.setdefault(change.row, set()).add(own)
            if own:
                finds.texts |= {text for image in (change.before, change.after) for text in texts_of(image)}
        left: bytes | None = None
        own_rows = {row for row, owners in rows.items() if owners == {True}}
        if unread or any(len(owners) > 1 for owners in rows.values()):
            finds.entangled += 1
            return
        if len(own_rows) < len(rows):
            left = without_rows(some.values[0], own_rows) if len(some) == 1 else None
            if left is None:
                finds.entangled += 1
                return
        elif own_rows:
            finds.texts |= {text for _, image in source_images(chunk) for text in texts_of(image)}
        self._note(records, places, left, finds)

    def _note(self, records: RawRecords, places: list[int], left: bytes | None, finds: DumpFinds) -> None:
        for index in places:
            place = records.topic, records.partition, int(records.offsets[index])
            finds.values[place, records.values[index]] = left
            if (key := records.keys[index]) is not None and left is None:
                finds.keys.add((records.topic, key))


def _bare(file: DumpFile) -> SourceTable | None:
    """The table of a file's records that name none, as its path says."""
    return SourceTable(file.database, file.table) if file.database is not None and file.table is not None else None


def source_images(chunk: DecodedChunk) -> Iterator[tuple[tuple[int, int], Row]]:
    """The images of decoded records as the source has them, with the columns that the lake leaves out or masks. Each
    with its record's offset and the row's number there."""
    for batch in chunk.decoded.changes:
        places = list(zip(*(batch.rows.column(name).to_pylist() for name in ("__offset", "__row")), strict=True))
        yield from zip(places, batch.rows.drop_columns(META_NAMES).to_pylist(), strict=True)
        if batch.before is not None:
            befores = batch.before.select([n for n in batch.before.column_names if n not in META_NAMES]).to_pylist()
            yield from zip((places[number] for number in batch.before_at.tolist()), befores, strict=True)


def texts_of(image: Row | None) -> Iterator[bytes]:
    """The texts and bytes of an image that are long enough to be looked for."""
    for value in image.values() if image is not None else ():
        for text in _texts(value):
            if len(text) >= LEAST_TEXT_BYTES:
                yield text


def _texts(value: Any) -> Iterator[bytes]:  # noqa: ANN401 - a cell
    if isinstance(value, str):
        yield value.encode(errors="surrogateescape")
    elif isinstance(value, bytes):
        yield value
    elif isinstance(value, Mapping):
        for cell in value.values():
            yield from _texts(cell)
    elif isinstance(value, list | tuple):
        for cell in value:
            yield from _texts(cell)


def without_rows(value: bytes | None, rows: Collection[int]) -> bytes | None:
    """A message of several rows (Canal's ``data``, ``old``, the ``edit.cells`` of a WAL entry) without some of them,
    every other byte of its members as it was; None for a message of another form.

    Args:
        value: the message.
        rows: which to leave out, by their place in the message.
    """
    try:
        message = _MESSAGE.decode(value or b"")
        if "edit" in message:
            edit = _MESSAGE.decode(message["edit"])
            edit["cells"] = _without(edit["cells"], rows)
            return msgspec.json.encode(message | {"edit": edit})
        for name in ("data", "old"):
            if bytes(message.get(name, b"null")) != b"null":
                message[name] = _without(message[name], rows)
            elif name == "data":
                return None
    except _NO_ROWS:
        return None
    return msgspec.json.encode(message)


def _without(cells: msgspec.Raw, rows: Collection[int]) -> msgspec.Raw:
    kept = [cell for number, cell in enumerate(_ROWS.decode(cells)) if number not in rows]
    return msgspec.Raw(msgspec.json.encode(kept))
