"""What the bytes of a file tell of some rows: their record keys, and texts of theirs.

Whatever a table's directory holds is taken apart as far as its bytes are packed: Parquet pages, blocks of log files,
HFiles, Avro and Arrow files, gzip and zstd. A record key counts where it stands as a key, so that ``42`` is no trace of
every number 42; a text counts wherever its bytes are. Statistics, bloom filters and dictionaries are bytes like any
others.

The proof of an erasure is a scan: all bytes of a directory are read, decompressed, and tell nothing of the rows. A text
that rows which stay have, too, proves nothing: it is among the values of rows that have other keys. Such texts are
counted and left out.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudilake.errors import CorruptDataError
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.base_file import MAX_KEY, MIN_KEY
from hudilake.format.files.data_block import decode_data_block
from hudilake.format.files.delete_block import decode_deletes
from hudilake.format.files.hfile.reader import HFileReader
from hudilake.format.files.log_file import MAGIC, BlockType, LogBlock, whole_blocks
from hudilake.format.files.pages.compact import Struct, read_struct
from hudilake.metadata.records.record_reader import decode_record
from hudilake.metadata.records.records import StatsRecord
from hudilake.storage.base import Storage, StorageNotFoundError, every_file

#: Texts shorter than this are not looked for: they would be everywhere.
LEAST_TEXT_BYTES = 6
_PARQUET, _AVRO, _ARROW, _GZIP, _ZSTD = b"PAR1", b"Obj\x01", b"ARROW1", b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_HFILE_END = b'TRABLK"$'
#: Between a partition path and a record key where both name a row (``KeyScope.names``).
_BETWEEN = r"\x00"
#: What reading a damaged file raises.
_DAMAGE = (pa.ArrowException, CorruptDataError, ValueError, IndexError, KeyError, EOFError, OSError)


@dataclass(frozen=True, slots=True)
class Quarry:
    """What is looked for.

    Args:
        keys: record keys.
        texts: bytes of LEAST_TEXT_BYTES and more, looked for wherever they may stand.
    """

    keys: frozenset[str]
    texts: frozenset[bytes] = frozenset()

    def named(self, names: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
        """Which of n record keys are looked for, bool of n; also of names with a partition path before the key."""
        texts = names.cast(pa.string())
        bare = pc.replace_substring_regex(texts, f"^[^{_BETWEEN}]*{_BETWEEN}", "")
        wanted = pa.array(sorted(self.keys), pa.string())
        return pc.or_(pc.is_in(texts, value_set=wanted), pc.is_in(bare, value_set=wanted))

    def has_key(self, text: str) -> bool:
        """Whether a text is one of the keys."""
        return text in self.keys


@dataclass(frozen=True, slots=True)
class Trace:
    """A find. ``where``: the part of the file. ``text``: the bytes that were found; None for a record key as such.
    ``in_rows``: whether it stands among the values of rows, where rows that stay may have the same."""

    where: str
    text: bytes | None = None
    in_rows: bool = False


def traces(data: bytes, quarry: Quarry) -> list[Trace]:
    """What a file tells of the rows, each kind of find once for each part of the file.

    Args:
        data: all of its bytes.
        quarry: what is looked for.

    Raises CorruptDataError for a file that cannot be taken apart: what it holds is not known.
    """
    try:
        return list(dict.fromkeys(_traces(data, quarry, "")))
    except _DAMAGE as error:
        raise CorruptDataError(
            f"a file cannot be taken apart, so what it holds is not known: {type(error).__name__}: {error}",
            do_next="run binlake fsck",
        ) from error


def _traces(data: bytes, quarry: Quarry, where: str) -> Iterator[Trace]:
    yield from _texts(data, quarry, where or "bytes")
    if data[:4] == _PARQUET:
        yield from _in_parquet(data, quarry, where)
    elif data[: len(MAGIC)] == MAGIC:
        for block in whole_blocks(data):
            yield from _in_block(block, quarry)
    elif data[-4096:].find(_HFILE_END) >= 0:
        yield from _in_hfile(HFileReader.from_bytes(data), quarry, where)
    elif data[:4] == _AVRO:
        yield from _in_avro(data, quarry)
    elif data[:6] == _ARROW:
        yield from _in_arrow(data, quarry)
    elif data[:2] == _GZIP:
        yield from _traces(gzip.decompress(data), quarry, "gzip")
    elif data[:4] == _ZSTD:
        with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
            yield from _traces(stream.read(), quarry, "zstd")


def _texts(data: bytes | memoryview, quarry: Quarry, where: str, *, in_rows: bool = False) -> Iterator[Trace]:
    if quarry.texts:
        content = bytes(data)
        for text in quarry.texts:
            if text in content:
                yield Trace(where, text, in_rows)


def _keys(names: pa.Array | pa.ChunkedArray, quarry: Quarry, where: str) -> Iterator[Trace]:
    if len(names) and pc.any(quarry.named(names)).as_py():
        yield Trace(where)


def _in_block(block: LogBlock, quarry: Quarry) -> Iterator[Trace]:
    match block.block_type:
        case BlockType.DELETE:
            yield from _keys(decode_deletes(block.content).column(0), quarry, "delete block")
        case BlockType.AVRO_DATA:
            rows = decode_data_block(block, None, "")
            if RECORD_KEY_FIELD in rows.column_names:
                yield from _keys(rows.column(RECORD_KEY_FIELD), quarry, "log rows")
        case _:
            yield from _traces(bytes(block.content), quarry, "log block")


def _in_parquet(data: bytes, quarry: Quarry, where: str) -> Iterator[Trace]:
    file = pq.ParquetFile(pa.BufferReader(data))
    footer = {name.decode(): value for name, value in (file.metadata.metadata or {}).items()}
    if any(quarry.has_key(footer.get(name, b"").decode()) for name in (MIN_KEY, MAX_KEY)):
        yield Trace("footer")
    names = file.schema_arrow.names
    if RECORD_KEY_FIELD in names:
        yield from _keys(file.read([RECORD_KEY_FIELD]).column(0), quarry, "rows")
    if quarry.texts:
        for page in plain_pages(data, file.metadata):
            yield from _texts(page, quarry, where or "page", in_rows=True)
        for field in file.schema_arrow:
            yield from _in_cells(file, field, quarry)


def _in_cells(file: pq.ParquetFile, field: pa.Field, quarry: Quarry) -> Iterator[Trace]:
    """Values that pages hold in pieces, as delta encodings do, and files inside of cells: archived instants."""
    if pa.types.is_binary(field.type):
        for cell in file.read([field.name]).column(0).to_pylist():
            if cell is not None and cell[:4] == _AVRO:
                yield from _in_avro(cell, quarry)
    elif pa.types.is_string(field.type):
        column = file.read([field.name]).column(0)
        for text in quarry.texts:
            if pc.any(pc.match_substring(column.cast(pa.binary()), text)).as_py():
                yield Trace("page", text, in_rows=True)


def plain_pages(data: bytes, metadata: pq.FileMetaData) -> Iterator[bytes]:
    """The decompressed pages of a Parquet file, dictionaries among them. Raises ValueError, IndexError for bytes that
    are no pages."""
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(number)
            offsets = [offset for offset in (chunk.data_page_offset, chunk.dictionary_page_offset) if offset]
            if offsets:  # a chunk without values has none
                begin = min(offsets)
                yield from _pages(data, begin, begin + chunk.total_compressed_size, chunk.compression)


def _pages(data: bytes, position: int, end: int, compression: str) -> Iterator[bytes]:
    codec = None if compression == "UNCOMPRESSED" else pa.Codec(compression.lower())
    while position < end:
        header, body = read_struct(data, position)
        plain_size, size = header[2][1], header[3][1]
        page, position = data[body : body + size], body + size
        levels = _level_bytes(header)
        packed = page[levels:]
        if codec is None or not packed or not _is_packed(header):
            yield page
        else:
            yield page[:levels] + codec.decompress(packed, plain_size - levels).to_pybytes()


def _level_bytes(header: Struct) -> int:
    """The bytes of a page's levels, which pages of version 2 never compress."""
    second: Any = header.get(8)
    return int(second[1][5][1] + second[1][6][1]) if second is not None else 0


def _is_packed(header: Struct) -> bool:
    second: Any = header.get(8)
    return second is None or bool(second[1].get(7, (0, True))[1])


def _in_hfile(reader: HFileReader, quarry: Quarry, where: str) -> Iterator[Trace]:
    part = where or "HFile"
    for name, value in reader.file_info.items():
        if any(key.encode() in value for key in quarry.keys if len(key) >= LEAST_TEXT_BYTES):
            yield Trace(f"{part} info {name}")
    for key in reader.first_keys:
        if quarry.has_key(key.decode(errors="replace")):
            yield Trace(f"{part} index")
    for number in range(reader.num_blocks):
        yield from _texts(reader.block_bytes(number), quarry, f"{part} block")
    for key, value in reader.scan():
        if quarry.has_key(key.decode(errors="replace")):
            yield Trace(f"{part} keys")
        if any(name.encode() in value for name in quarry.keys) and _bounds_keys(value, reader.schema, quarry):
            yield Trace(f"{part} statistics")


def _bounds_keys(value: bytes, schema: str | None, quarry: Quarry) -> bool:
    """Whether a record of the metadata table has one of the record keys as a bound."""
    try:
        record = decode_record(value, schema)
    except CorruptDataError:
        return False  # a record of the record index, whose values have no text
    if not isinstance(record, StatsRecord) or record.range.column != RECORD_KEY_FIELD:
        return False
    return any(isinstance(bound, str) and quarry.has_key(bound) for bound in (record.range.min, record.range.max))


def _in_avro(data: bytes, quarry: Quarry) -> Iterator[Trace]:
    for record in fastavro.reader(io.BytesIO(data)):
        for text in _strings([record]):
            yield from _texts(text.encode(errors="surrogateescape"), quarry, "Avro")


def _strings(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, bytes):
            yield value.decode(errors="surrogateescape")
        elif isinstance(value, dict):
            yield from _strings([*value, *value.values()])
        elif isinstance(value, Collection):
            yield from _strings(value)


def _in_arrow(data: bytes, quarry: Quarry) -> Iterator[Trace]:
    rows = pa.ipc.open_file(data).read_all()
    for name in rows.column_names:
        if pa.types.is_dictionary(kind := rows.column(name).type):
            kind = kind.value_type
        if pa.types.is_string(kind) or pa.types.is_binary(kind):
            column = rows.column(name).cast(pa.binary())
            if name == RECORD_KEY_FIELD:
                yield from _keys(rows.column(name).cast(pa.string()), quarry, "tombstones")
            for text in quarry.texts:
                if pc.any(pc.match_substring(column, text)).as_py():
                    yield Trace("tombstones", text)


@dataclass
class ByteScan:
    """What the scan of a table's directory has found.

    Args:
        files, size: how many were read, and their bytes.
        finds: path -> what it tells of the rows; empty if nothing is left.
        shared: how many texts rows that stay have, too: of these nothing is said.
        unread: path -> why a file could not be taken apart.
    """

    files: int = 0
    size: int = 0
    finds: dict[str, list[Trace]] = field(default_factory=dict)
    shared: int = 0
    unread: dict[str, str] = field(default_factory=dict)

    @property
    def is_clean(self) -> bool:
        """Whether every file was read, and none tells anything."""
        return not self.finds and not self.unread


def scan(storage: Storage, quarry: Quarry, besides: str = "") -> ByteScan:
    """Read every file below a root, one at a time, half-written ones too. Raises StorageError.

    Args:
        storage: the root: of a table, or of any directory.
        quarry: what must not be there.
        besides: a file that is passed over: the record that names what is looked for.
    """
    done = ByteScan()
    for info in every_file(storage):
        if info.path == besides:
            continue
        try:
            data = storage.read(info.path)
            done.files, done.size = done.files + 1, done.size + len(data)
            if seen := traces(data, quarry):
                done.finds[info.path] = seen
        except StorageNotFoundError:
            continue  # cleaned meanwhile: a later file has what it had
        except CorruptDataError as error:
            done.unread[info.path] = error.what
    return _without_shared(done)


def _without_shared(done: ByteScan) -> ByteScan:
    """Leave out the texts that stand in rows of files without any of the keys: other rows have them."""
    keyed = {path for path, seen in done.finds.items() if any(trace.text is None for trace in seen)}
    shared = {
        trace.text
        for path, seen in done.finds.items()
        if path not in keyed
        for trace in seen
        if trace.in_rows and trace.text is not None
    }
    left = {path: [trace for trace in seen if trace.text not in shared] for path, seen in done.finds.items()}
    done.finds, done.shared = {path: seen for path, seen in left.items() if seen}, len(shared)
    return done
