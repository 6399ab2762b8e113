"""Chunks that several sessions read side by side."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from binlake.load.first.chunks import Chunk, read_in_order


def test_nobody_reads_when_a_chunk_has_failed() -> None:
    """The sessions are used for the next table then."""
    release, reading = threading.Event(), Counter[str]()

    class Cut:
        def chunk(self, connection: object, rows: int, low: str | None) -> Chunk:
            number = 1 if low is None else int(low) + 1
            return Chunk(low, str(number) if number < 4 else None)

        def where(self, chunk: object, connection: object) -> str:
            return "x"

    def read(number: int, where: str) -> int:
        if number == 0:
            threading.Timer(0.3, release.set).start()
            raise RuntimeError("bad value")
        reading["begun"] += 1
        release.wait(30)
        reading["ended"] += 1
        return 1

    with ThreadPoolExecutor(3) as readers:
        with pytest.raises(RuntimeError, match="bad value"):
            list(read_in_order(Cut(), [None] * 3, 4, None, read, readers))  # type: ignore[arg-type, list-item]
        assert reading["begun"] == reading["ended"]
