"""A stored file of which some ranges are fetched ahead, few and large."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from hudilake.storage.base import Storage
from hudilake.storage.ranged import StoredFile

#: Two ranges no further apart are fetched by one request: at 100 MB a second that is what 2.6 ms of waiting cost.
MOST_GAP = 256 * 1024
_PARALLEL = 8


class FileParts(StoredFile):
    """A stored file, read by ranges.

    Args:
        storage: the table's root.
        path: the file.
        size: its bytes.

    What was fetched stays in memory. Ranges that were not fetched ahead are fetched when they are read.
    """

    def __init__(self, storage: Storage, path: str, size: int) -> None:
        super().__init__(storage, path, size)
        self._starts: list[int] = []
        self._blocks: list[bytes] = []
        #: Requests made, and bytes fetched.
        self.requests = self.fetched = 0

    def fetch_whole(self) -> int:
        """Fetch the file by one request, whatever its size; returns its bytes. Raises StorageError."""
        data = self._storage.read(self._path)
        self._size = len(data)
        self._keep(0, data)
        return self._size

    def fetch(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Fetch ranges (start, end) that are not in memory yet. Raises ValueError for a range outside of the file,
        StorageError."""
        missing: list[list[int]] = []
        for start, end in sorted(ranges):
            if not 0 <= start <= end <= self._size:
                raise ValueError(f"its metadata name bytes {start} to {end} of {self._size}")
            if self._held(start, end) is not None:
                continue
            if missing and start - missing[-1][1] <= MOST_GAP:
                missing[-1][1] = max(end, missing[-1][1])
            else:
                missing.append([start, end])
        if len(missing) < 2:
            data = [self._requested(start, end) for start, end in missing]
        else:
            with ThreadPoolExecutor(min(_PARALLEL, len(missing))) as pool:
                data = list(pool.map(lambda one: self._requested(*one), missing))
        for (start, _), block in zip(missing, data, strict=True):
            self._keep(start, block)

    def part(self, start: int, end: int) -> memoryview:
        """The bytes from ``start`` to ``end`` (exclusive). Raises as ``fetch``."""
        held = self._held(start, end)
        if held is None:
            self.fetch([(start, end)])
            held = self._held(start, end)
        if held is None:
            raise ValueError(f"it ends before byte {end}")
        return held

    def _requested(self, start: int, end: int) -> bytes:
        return super()._between(start, end)

    def _keep(self, start: int, block: bytes) -> None:
        place = bisect_right(self._starts, start)
        self._starts.insert(place, start)
        self._blocks.insert(place, block)
        self.requests += 1
        self.fetched += len(block)

    def _held(self, start: int, end: int) -> memoryview | None:
        # A block may begin inside of an older one: the one that reaches further counts.
        for place in range(bisect_right(self._starts, start) - 1, -1, -1):
            first = self._starts[place]
            if end <= first + len(self._blocks[place]):
                return memoryview(self._blocks[place])[start - first : end - first]
        return None

    def _between(self, start: int, end: int) -> bytes:
        return bytes(self.part(start, end))
