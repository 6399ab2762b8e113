"""HFile entries as columns: keys as one array and few distinct values, without a Python object an entry.

The metadata table's record index has an entry a row of the data table, and all rows of a file group that one commit
wrote have the same value. So values are a dictionary array.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.errors import CorruptDataError
from hudilake.format.files.hfile import kernel, layout
from hudilake.format.files.hfile.reader import HFileReader
from hudilake.format.files.hfile.writer import HFileWriter

Longs = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
VALUES = pa.dictionary(pa.int32(), pa.binary())
_LEAST_ENTRY = layout.ENTRY_EXTRA
_NOTHING = np.empty(0, dtype=np.uint8)


@dataclass(frozen=True)
class Entries:
    """n entries, strictly ascending by key.

    Args:
        keys: large_binary array of n without nulls.
        values: dictionary<int32, binary> array of n; null deletes the key.
    """

    keys: pa.Array
    values: pa.Array

    def __len__(self) -> int:
        return len(self.keys)

    @classmethod
    def empty(cls) -> Entries:
        """No entries."""
        return cls(pa.array([], pa.large_binary()), pa.array([], pa.binary()).cast(VALUES))

    @classmethod
    def sorted(cls, keys: pa.Array, values: pa.Array) -> Entries:
        """Entries in any order. Raises CorruptDataError for a key given twice."""
        keys = keys.cast(pa.large_binary())
        order = pc.sort_indices(keys)
        entries = cls(keys.take(order), values.take(order))
        twice = kernel.first_disorder(*key_buffers(entries.keys))
        if twice >= 0:
            raise CorruptDataError(
                "a record key is in two places of one commit",
                do_next="report this error with the commit's log",
                key=entries.keys[twice].as_py().decode(),
            )
        return entries

    def in_order(self) -> Entries:
        """The same, of a writer that orders keys by UTF-16 units."""
        if kernel.first_disorder(*key_buffers(self.keys)) < 0:
            return self
        order = pc.sort_indices(self.keys)
        return Entries(self.keys.take(order), self.values.take(order))

    def take(self, rows: Longs) -> Entries:
        """The entries at these indexes, ascending."""
        picked = pa.array(rows)
        return Entries(self.keys.take(picked), self.values.take(picked))

    def slice(self, low: int, high: int) -> Entries:
        """The entries from ``low`` to ``high`` (exclusive)."""
        return Entries(self.keys.slice(low, high - low), self.values.slice(low, high - low))

    def places(self, wanted: pa.Array) -> Longs:
        """The index of each wanted key, -1 where it is absent. ``wanted``: large_binary array, ascending."""
        places = np.empty(len(wanted), dtype=np.int64)
        kernel.match(*key_buffers(wanted), *key_buffers(self.keys), places)
        return places

    def under(self, newer: Entries) -> Entries:
        """These entries with newer ones over them; deletions stay in the result."""
        if not len(newer) or not len(self):
            return newer if len(newer) else self
        kept = np.ones(len(self), dtype=np.bool_)
        met = self.places(newer.keys)
        kept[met[met >= 0]] = False
        rows = self.take(np.flatnonzero(kept)) if not kept.all() else self
        keys = pa.chunked_array([rows.keys, newer.keys]).combine_chunks()
        return Entries.sorted(keys, joined_values([rows.values, newer.values]))

    def living(self) -> Entries:
        """The entries without deletions."""
        if not self.values.null_count:
            return self
        return self.take(np.flatnonzero(self.values.is_valid().to_numpy(zero_copy_only=False)))

    def deleted(self) -> pa.Array:
        """The deleted keys."""
        return self.keys.filter(self.values.is_null())


def count_less(keys: pa.Array, bounds: Sequence[bytes]) -> Longs:
    """For each of some bounds, how many keys are less. ``keys``: large_binary array, ascending."""
    counts = np.empty(len(bounds), dtype=np.int64)
    asked = key_buffers(pa.array(bounds, pa.large_binary()))
    kernel.lower_bounds(*asked, *key_buffers(keys), counts)
    return counts


def joined_values(parts: Sequence[pa.Array]) -> pa.Array:
    """Dictionary arrays, one after the other, under one dictionary."""
    joined = pa.chunked_array(list(parts), type=VALUES).unify_dictionaries()
    combined = joined.combine_chunks()
    return combined.combine_chunks() if isinstance(combined, pa.ChunkedArray) else combined


def key_buffers(keys: pa.Array) -> tuple[Bytes, Longs]:
    """(the bytes, int64 array of n + 1 offsets) of a large_binary array."""
    _, offsets, data = keys.buffers()
    if offsets is None or not len(keys):
        return _NOTHING, np.zeros(1, dtype=np.int64)
    marks = np.frombuffer(offsets, dtype=np.int64)[keys.offset : keys.offset + len(keys) + 1]
    return np.frombuffer(data, dtype=np.uint8) if data is not None else _NOTHING, marks.copy()


def append_entries(writer: HFileWriter, entries: Entries) -> None:
    """Add entries without deletions to an HFile, block by block. Raises CorruptDataError for keys out of order."""
    if not len(entries):
        return
    keys, key_offsets = key_buffers(entries.keys)
    if (wrong := kernel.first_disorder(keys, key_offsets)) >= 0:
        key = entries.keys[wrong].as_py()
        raise CorruptDataError("HFile keys must be strictly ascending", do_next="report this as a bug", key=key)
    values, value_offsets = key_buffers(entries.values.dictionary.cast(pa.large_binary()))
    codes = entries.values.indices.to_numpy().astype(np.int64)
    sizes = np.diff(key_offsets) + np.diff(value_offsets)[codes] + layout.ENTRY_EXTRA
    marks = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes)))
    low = 0
    while low < len(entries):
        high = int(np.searchsorted(marks, marks[low] + writer.block_size, side="right")) - 1
        high = min(max(high, low + 1), len(entries))
        block = np.empty(int(marks[high] - marks[low]), dtype=np.uint8)
        kernel.write_entries(keys, key_offsets[low : high + 1], values, value_offsets, codes[low:high], block)
        first, last = entries.keys[low].as_py(), entries.keys[high - 1].as_py()
        key_bytes = int(key_offsets[high] - key_offsets[low])
        writer.append_block(block.tobytes(), first, last, high - low, key_bytes)
        low = high


def block_entries(data: bytes) -> Entries:
    """The entries of a data block's bytes, ascending. Raises CorruptDataError."""
    block = np.frombuffer(data, dtype=np.uint8)
    room = len(block) // _LEAST_ENTRY + 1
    places = [np.empty(room, dtype=np.int64) for _ in range(4)]
    count = kernel.find_entries(block, *places)
    if count < 0:
        raise CorruptDataError("an HFile block is cut short", do_next="rebuild the metadata table")
    key_starts, key_sizes, value_starts, value_sizes = (array[:count] for array in places)
    values = _gathered(block, value_starts, value_sizes).cast(pa.binary())
    return Entries(_gathered(block, key_starts, key_sizes), values.dictionary_encode()).in_order()


def _gathered(block: Bytes, starts: Longs, sizes: Longs) -> pa.Array:
    offsets = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes)))
    out = np.empty(int(offsets[-1]), dtype=np.uint8)
    kernel.gather(block, starts, sizes, out)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(out)]
    return pa.Array.from_buffers(pa.large_binary(), len(starts), buffers)


def scan_entries(reader: HFileReader) -> Iterator[Entries]:
    """Every entry of an HFile, ascending, a data block at a time. Where its writer ordered keys by UTF-16 units, all
    from the first character beyond U+FFFF on are one part."""
    checked = False
    for number, data in reader.read_blocks(range(reader.num_blocks)):
        entries = block_entries(data)
        if not checked and greatest_byte(entries.keys) >= layout.BEYOND_FFFF:
            checked = True
            if not _ascending_from(reader, number):
                yield _joined([block_entries(d) for _, d in reader.read_blocks(range(number, reader.num_blocks))])
                return
        yield entries


def _ascending_from(reader: HFileReader, first: int) -> bool:
    """Whether the data blocks from one on come one after the other by bytes."""
    last = b""
    for _, data in reader.read_blocks(range(first, reader.num_blocks)):
        keys = block_entries(data).keys
        if len(keys) and keys[0].as_py() < last:
            return False
        last = keys[-1].as_py() if len(keys) else last
    return True


def greatest_byte(keys: pa.Array) -> int:
    """The greatest byte in a large_binary array; 0 without any."""
    data, offsets = key_buffers(keys)
    return int(data[offsets[0] : offsets[-1]].max(initial=0))


def all_entries(reader: HFileReader) -> Entries:
    """Every entry of an HFile at once, ascending."""
    return _joined(list(scan_entries(reader)))


def _joined(parts: Sequence[Entries]) -> Entries:
    if not parts:
        return Entries.empty()
    keys = pa.chunked_array([part.keys for part in parts]).combine_chunks()
    return Entries(keys, joined_values([part.values for part in parts])).in_order()
