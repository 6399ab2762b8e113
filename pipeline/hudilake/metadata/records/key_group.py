"""A file group of the record index: record keys and the places of their rows, in columns.

It may have millions of records. Log files are kept as few sorted runs; a run is merged into the one before it while
that is not much longer, so a key is merged a few times only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudilake.clock import now_ms
from hudilake.format.files.delete_block import decode_deletes, encode_deletes
from hudilake.format.files.hfile.columns import (
    VALUES,
    Entries,
    all_entries,
    append_entries,
    block_entries,
    count_less,
    greatest_byte,
    joined_values,
    scan_entries,
)
from hudilake.format.files.hfile.layout import MAX_RECORD_KEY, MIN_RECORD_KEY, PLACED_UNLIKE, SCHEMA_KEY
from hudilake.format.files.hfile.reader import HFileReader
from hudilake.format.files.hfile.writer import HFileWriter
from hudilake.format.files.log_file import BlockType, Header, LogBlock, encode_block, encode_delete_block, whole_blocks
from hudilake.metadata.records.file_group import FileGroup, MetadataLogFile, unsupported_block
from hudilake.metadata.records.places import of_schema
from hudilake.metadata.records.records import record_schema

Longs = npt.NDArray[np.int64]

#: Values repeat, so that a higher level makes files no smaller and takes twice as long (measured).
_GZIP_LEVEL = 1
#: A run is merged into the one before it if that is not so many times longer.
_RUN_RATIO = 2
#: Decoded bytes of a base file that stay in memory for the next lookup: about 1.4 million keys of ten digits.
_CACHED_BYTES = 32 << 20


@dataclass
class KeyGroup(FileGroup):
    """The newest slice of one file group of the record index."""

    _runs: list[Entries] | None = field(default=None, repr=False)
    _blocks: dict[int, Entries] = field(default_factory=dict, repr=False)
    _cached_bytes: int = field(default=0, repr=False)

    def runs(self) -> list[Entries]:
        """The records of the log files as sorted runs, the newest last; read once."""
        if self._runs is None:
            runs: list[Entries] = []
            for log in self.logs:
                path = self.path(log.name)
                for block in whole_blocks(self.storage.read(path), path):
                    _add(runs, _entries_of(block, path))
            self._runs = runs
        return self._runs

    def add(self, log: MetadataLogFile, entries: Entries) -> None:
        """Add a log file that was just written, with its records."""
        self.logs.append(log)
        if self._runs is None and len(self.logs) == 1:
            self._runs = []
        if self._runs is not None:
            _add(self._runs, entries)

    def drop_log(self, instant: str) -> list[MetadataLogFile]:
        """Remove the log files of an instant; returns them."""
        removed = super().drop_log(instant)
        if removed:
            self._runs = None
        return removed

    def forget(self) -> None:
        """Let go of the records that were read."""
        super().forget()
        self._runs = None if self.logs else []
        self._blocks, self._cached_bytes = {}, 0

    def find(self, wanted: pa.Array) -> pa.Array:
        """The values of some keys.

        Args:
            wanted: large_binary array of n distinct keys, ascending.

        Returns a dictionary<int32, binary> array of n; null where the key has none.
        """
        missing = np.arange(len(wanted), dtype=np.int64)
        matches: list[tuple[Longs, pa.Array]] = []
        for run in reversed(self.runs()):
            missing = _take_found(matches, missing, run, wanted)
        base = self.base_reader()
        if base is not None and len(missing):
            self._find_in_base(matches, missing, base, wanted)
        rows = np.full(len(wanted), -1, dtype=np.int64)
        if matches:
            rows[np.concatenate([places for places, _ in matches])] = np.arange(sum(len(p) for p, _ in matches))
        values = joined_values([values for _, values in matches])
        return values.take(pa.array(rows, mask=rows < 0))

    def _find_in_base(
        self, found: list[tuple[Longs, pa.Array]], missing: Longs, base: HFileReader, wanted: pa.Array
    ) -> None:
        asked = wanted.take(pa.array(missing))
        bounds = np.append(count_less(asked, base.first_keys), len(asked))
        needed = np.flatnonzero(np.diff(bounds) > 0).tolist()
        for number in [number for number in needed if number in self._blocks]:
            _take_found(found, missing[bounds[number] : bounds[number + 1]], self._blocks[number], wanted)
        for number, data in base.read_blocks([number for number in needed if number not in self._blocks]):
            block = _current(block_entries(data), base.schema)
            _take_found(found, missing[bounds[number] : bounds[number + 1]], block, wanted)
            self._keep(number, block)
        if greatest_byte(asked) >= PLACED_UNLIKE:
            _find_by_units(found, missing, base, wanted)

    def _keep(self, number: int, block: Entries) -> None:
        """Keep a block for the next lookup, while there is room. No block leaves for another one: lookups in no order
        ask for all of them, and would find none of those that they kept last."""
        size = block.keys.nbytes + block.values.nbytes
        if self._cached_bytes + size <= _CACHED_BYTES:
            self._blocks[number] = block
            self._cached_bytes += size

    def lookup(self, keys: Collection[bytes]) -> dict[bytes, bytes]:
        """The records of those keys that exist, as Python objects."""
        wanted = pa.array(sorted(set(keys)), pa.large_binary())
        pairs = zip(wanted.to_pylist(), self.find(wanted).to_pylist(), strict=True)
        return {key: value for key, value in pairs if value is not None}

    def merged(self) -> Iterator[Entries]:
        """All records, ascending by key, a block of the base file at a time."""
        newer = _one_run(self.runs())
        base, low = self.base_reader(), 0
        for older in scan_entries(base) if base is not None else ():
            if len(older):
                older = _current(older, base.schema if base is not None else None)
                high = int(count_less(newer.keys, [older.keys[-1].as_py() + b"\0"])[0])
                yield older.under(newer.slice(low, high)).living()
                low = high
        yield newer.slice(low, len(newer)).living()

    def entries(self) -> Iterator[tuple[bytes, bytes]]:
        """All records, ascending by key, as Python objects."""
        for part in self.merged():
            yield from zip(part.keys.to_pylist(), part.values.to_pylist(), strict=True)

    def check(self) -> None:
        """Read all of it. Raises CorruptDataError, StorageError."""
        for _ in self.merged():
            pass


def encode_key_base(parts: Iterator[Entries]) -> tuple[bytes, int]:
    """(an HFile of merged records, how many there are), with the file info that Hudi's base files have."""
    writer, first, last, count = HFileWriter(level=_GZIP_LEVEL), b"", b"", 0
    for part in parts:
        if len(part):
            first = part.keys[0].as_py() if not count else first
            last = part.keys[-1].as_py()
            count += len(part)
            append_entries(writer, part)
    info = {SCHEMA_KEY: record_schema().encode(), MIN_RECORD_KEY: first, MAX_RECORD_KEY: last}
    return writer.finish(info, now_ms()), count


def encode_key_log(instant: str, partition: str, entries: Entries) -> bytes:
    """A log file's bytes: a DELETE block of the keys to delete, then an HFILE_DATA block of the rest, either only if
    needed."""
    schema, blocks = record_schema(), []
    deleted, living = entries.deleted(), entries.living()
    if len(deleted):
        content = encode_deletes(deleted.cast(pa.large_string()).cast(pa.string()), None, partition)
        blocks.append(encode_delete_block(instant, schema, content))
    if len(living):
        writer = HFileWriter(level=_GZIP_LEVEL)
        append_entries(writer, living)
        header = {Header.INSTANT_TIME.value: instant, Header.SCHEMA.value: schema}
        data = writer.finish({SCHEMA_KEY: schema.encode()}, now_ms())
        blocks.append(encode_block(BlockType.HFILE_DATA, header, data))
    return b"".join(blocks)


def deletions(keys: pa.Array) -> Entries:
    """Deletions of n distinct keys, in any order."""
    return Entries.sorted(keys, pa.array([None] * len(keys), pa.binary()).cast(VALUES))


def _entries_of(block: LogBlock, path: str) -> Entries:
    if block.block_type is BlockType.DELETE:
        return deletions(decode_deletes(block.content, path).column(0).unique())
    if block.block_type is BlockType.HFILE_DATA:
        reader = HFileReader.from_bytes(bytes(block.content), path)
        return _current(all_entries(reader), reader.schema)
    raise unsupported_block(block, path)


def _current(entries: Entries, schema: str | None) -> Entries:
    return Entries(entries.keys, of_schema(entries.values, schema))


def _add(runs: list[Entries], entries: Entries) -> None:
    if len(entries):
        runs.append(entries)
    while len(runs) > 1 and len(runs[-2]) <= _RUN_RATIO * len(runs[-1]):
        newer = runs.pop()
        runs[-1] = runs[-1].under(newer)


def _one_run(runs: list[Entries]) -> Entries:
    merged = Entries.empty()
    for run in reversed(runs):
        merged = run.under(merged)
    return merged


def _find_by_units(found: list[tuple[Longs, pa.Array]], missing: Longs, base: HFileReader, wanted: pa.Array) -> None:
    """Note the values of those keys that are not where the order of bytes puts them."""
    met = np.concatenate([places for places, _ in found]) if found else np.empty(0, dtype=np.int64)
    left = {wanted[position].as_py(): position for position in np.setdiff1d(missing, met).tolist()}
    values = base.get_many(key for key in left if key and max(key) >= PLACED_UNLIKE)
    if values:
        entries = Entries.sorted(
            pa.array(list(values)), pa.array(list(values.values()), pa.binary()).dictionary_encode()
        )
        _take_found(found, np.sort(np.array([left[key] for key in values])), _current(entries, base.schema), wanted)


def _take_found(found: list[tuple[Longs, pa.Array]], missing: Longs, entries: Entries, wanted: pa.Array) -> Longs:
    """Note the values of those missing keys that the entries have; returns the keys that are still missing."""
    if not len(missing):
        return missing
    places = entries.places(wanted if len(missing) == len(wanted) else wanted.take(pa.array(missing)))
    met = places >= 0
    if met.any():
        found.append((missing[met], entries.values.take(pa.array(places[met]))))
    return missing[~met]
