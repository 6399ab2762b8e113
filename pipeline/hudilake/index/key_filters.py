"""Key ranges and bloom filters of base files: from the metadata table, else from the files' footers.

A base file is never changed, so what is known of it stays right for as long as the index is open. The metadata table
opens the filter of a base file that gets log files (``metadata.opened_filters``); the index needs the base file's own
keys, so it takes such a file's filter from its footer.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.base_file import BLOOM_FILTER_KEY, BLOOM_TYPE_KEY, MAX_KEY, MIN_KEY, open_base_file
from hudilake.format.files.bloom import SIMPLE, BloomFilter
from hudilake.format.files.column_stats import ColumnRange, ValueType
from hudilake.format.files.packed_bloom import KeyBytes, PackedBloom
from hudilake.format.files.view import BaseFile
from hudilake.index.base_file_index import KeyProbe
from hudilake.index.key_files import Longs
from hudilake.metadata.records.delta import FileKey
from hudilake.metadata.records.reader import MetadataReader
from hudilake.read.filters.bounds import column_bounds, span
from hudilake.storage.metered import Meter, MeteredStorage
from hudilake.table.table import HudiTable

_PARALLEL_READS: Final = 8
#: Filters that are looked up at once: unpacked they take a byte a bit.
_FILTERS_AT_ONCE: Final = 64
#: Filters are kept up to so many bytes, the last used longest.
FILTER_BYTES_KEPT: Final = 512 << 20


@dataclass(frozen=True, slots=True)
class _Footer:
    """What a base file's footer says; ``range`` None: nothing of its keys, ``bloom`` None: no filter."""

    range: ColumnRange | None
    bloom: PackedBloom | None


class KeyFilters:
    """The narrowing of BLOOM (see ``base_file_index.Narrowing``): key ranges, then filters.

    The keys are ascending, so a file's range admits a run of them: two binary searches a file take the place of a walk
    through an interval tree a key.

    Args:
        table: open.
        kept: filters are kept up to so many bytes.
    """

    def __init__(self, table: HudiTable, kept: int = FILTER_BYTES_KEPT) -> None:
        self._table, self._kept, self._meter = table, kept, Meter()
        self._ranges: dict[FileKey, ColumnRange | None] = {}
        self._filters: OrderedDict[FileKey, PackedBloom | None] = OrderedDict()
        self._bytes = 0

    @property
    def bytes_read(self) -> int:
        """Bytes of footers read so far; those of the metadata table are in its own meter."""
        return self._meter.bytes_read

    def candidates(self, questions: Sequence[KeyProbe]) -> list[list[Longs]]:
        """For each question, for each file the positions of keys that it may hold. Raises CorruptDataError,
        StorageError, UnsupportedError for a filter of an unknown kind."""
        self._load_ranges([file.base for question in questions for file in question.files])
        return [self._of(question, *self._admitted(question)) for question in questions]

    def _admitted(self, question: KeyProbe) -> tuple[Longs, Longs]:
        """For each file the run of keys, from first to last (exclusive), that its key range admits."""
        ranges = [self._ranges[_key(file.base)] for file in question.files]
        bounds = column_bounds(pa.string(), ranges)
        first, last = span(bounds, question.keys)
        return first, np.where(bounds.has_values, last, first)

    def _of(self, question: KeyProbe, first: Longs, last: Longs) -> list[Longs]:
        keys = KeyBytes.of(question.keys)
        places = [np.zeros(0, dtype=np.int64)] * len(question.files)
        meeting = np.flatnonzero(first < last)
        for begin in range(0, len(meeting), _FILTERS_AT_ONCE):
            some = meeting[begin : begin + _FILTERS_AT_ONCE].tolist()
            filters = self._loaded([question.files[i].base for i in some])
            for i in some:
                bloom = filters[_key(question.files[i].base)]
                low, high = int(first[i]), int(last[i])
                inside = None if bloom is None else bloom.might_contain(keys, low, high)
                places[i] = np.arange(low, high) if inside is None else low + np.flatnonzero(inside)
        return places

    def _load_ranges(self, files: Iterable[BaseFile]) -> None:
        wanted = {_key(file): file for file in files if _key(file) not in self._ranges}
        if not wanted:
            return
        reader = self._reader(MetadataPartition.COLUMN_STATS)
        known = {} if reader is None else reader.column_ranges([RECORD_KEY_FIELD], wanted)
        for key in wanted:
            item = known.get(key, {}).get(RECORD_KEY_FIELD)
            if item is not None:
                self._ranges[key] = item
        self._read_footers([file for key, file in wanted.items() if key not in self._ranges])

    def _loaded(self, files: Sequence[BaseFile]) -> dict[FileKey, PackedBloom | None]:
        """The filters of those files; None for one without a filter."""
        held = {_key(file): self._filters[_key(file)] for file in files if _key(file) in self._filters}
        wanted = [file for file in files if _key(file) not in held]
        reader = self._reader(MetadataPartition.BLOOM_FILTERS)
        known = reader.bloom_filters([_key(file) for file in wanted]) if reader is not None and wanted else {}
        rest = []
        for file in wanted:
            bloom = PackedBloom.of(known[_key(file)]) if _key(file) in known else None
            if bloom is None or bloom.is_open:
                rest.append(file)
            else:
                held[_key(file)] = bloom
        held |= self._read_footers(rest)
        self._keep(held)
        return held

    def _keep(self, filters: dict[FileKey, PackedBloom | None]) -> None:
        for key, bloom in filters.items():
            if key not in self._filters:
                self._filters[key] = bloom
                self._bytes += _size(bloom)
            self._filters.move_to_end(key)
        while self._bytes > self._kept and len(self._filters) > 1:
            self._bytes -= _size(self._filters.popitem(last=False)[1])

    def _read_footers(self, files: Sequence[BaseFile]) -> dict[FileKey, PackedBloom | None]:
        """The filters in the footers; their key ranges are kept where none are known."""
        if not files:
            return {}
        storage = MeteredStorage(self._table.storage, self._meter)
        with ThreadPoolExecutor(_PARALLEL_READS) as pool:
            footers = list(pool.map(lambda file: _footer(storage, file), files))
        filters: dict[FileKey, PackedBloom | None] = {}
        for file, footer in zip(files, footers, strict=True):
            self._ranges.setdefault(_key(file), footer.range)
            filters[_key(file)] = footer.bloom
        self._keep(filters)
        return filters

    def _reader(self, partition: MetadataPartition) -> MetadataReader | None:
        index = self._table.metadata_table
        return index.reader if index is not None and index.keeps(partition) else None


def _footer(storage: MeteredStorage, file: BaseFile) -> _Footer:
    with open_base_file(storage, file.path, [RECORD_KEY_FIELD], file.size) as rows:
        pairs, count = rows.footer, rows.num_rows
    item = None
    if not count:
        item = ColumnRange(RECORD_KEY_FIELD, ValueType.STRING, None, None, 0, 0)
    elif MIN_KEY in pairs and MAX_KEY in pairs:
        item = ColumnRange(RECORD_KEY_FIELD, ValueType.STRING, pairs[MIN_KEY], pairs[MAX_KEY], 0, count)
    text = pairs.get(BLOOM_FILTER_KEY)
    # A SIMPLE filter of Hudi 1.2.0 has no type code (measured).
    bloom = None if text is None else PackedBloom.of(BloomFilter.from_base64(pairs.get(BLOOM_TYPE_KEY, SIMPLE), text))
    return _Footer(item, bloom)


def _key(file: BaseFile) -> FileKey:
    return file.partition_path, str(file.name)


def _size(bloom: PackedBloom | None) -> int:
    return 0 if bloom is None else bloom.nbytes
