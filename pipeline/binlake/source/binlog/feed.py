"""Reads the binlog ahead of the stream, in a thread, and gives it out in portions that end between two transactions."""

from __future__ import annotations

import logging
import threading
from collections import deque
from dataclasses import dataclass

from binlake.source.binlog.reading import BinlogSource
from binlake.source.binlog.records import RecordPiece
from hudilake.clock import monotonic_s
from hudilake.errors import TransientError

_log = logging.getLogger(__name__)

#: So many portions are read ahead.
_AHEAD = 1
_RETRY_S = 1.0
#: Small transactions become one piece of so many records.
_MERGED = 1_000


@dataclass(frozen=True)
class Portion:
    """Pieces that follow each other. ``end``: the offset after them."""

    pieces: list[RecordPiece]
    end: int

    @property
    def records(self) -> int:
        """How many records it has."""
        return sum(len(piece.offsets) for piece in self.pieces)

    @property
    def whole(self) -> bool:
        """Whether it ends between two transactions."""
        return self.pieces[-1].whole

    @property
    def gtid(self) -> str | None:
        """Of the newest transaction that has ended with it; None if it ends within one, or none is known."""
        return self.pieces[-1].gtid

    @property
    def schema(self) -> list[bytes]:
        """Its records of schema changes, in order."""
        return [record for piece in self.pieces for record in piece.schema]


class BinlogFeed:
    """The pieces from an offset on.

    Args:
        source: the binlog.
        start: the first offset.
        server_id: of this reader.
        most: a portion ends after so many records, where a transaction does.
        splits: whether a transaction of more records than that may be given out in parts.
        patience_s: so long the server may be out of reach.
    """

    def __init__(
        self, source: BinlogSource, start: int, *, server_id: int, most: int, splits: bool, patience_s: float
    ) -> None:
        self._source, self._next, self._server_id = source, start, server_id
        self._most, self._splits, self._patience_s = most, splits, patience_s
        self._pieces: deque[RecordPiece] = deque()
        self._records = 0
        self._news = threading.Condition()
        self._error: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="binlake-binlog", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop reading; the thread ends at the next event or heartbeat."""
        with self._news:
            self._stop.set()
            self._news.notify_all()
        self._thread.join(10.0)

    def take(self, wait_s: float) -> Portion | None:
        """What has come, at most ``most`` records of whole transactions; None if nothing came in time.

        Raises what the reader failed with, once all before it is given out.
        """
        with self._news:
            self._news.wait_for(lambda: self._count() or self._error is not None or self._stop.is_set(), wait_s)
            count = self._count()
            if not count:
                if self._error is not None:
                    raise self._error
                return None
            taken = [self._pieces.popleft() for _ in range(count)]
            self._records -= sum(len(piece.offsets) for piece in taken)
            self._news.notify_all()
        return Portion(taken, taken[-1].end)

    def _count(self) -> int:
        """How many pieces the next portion has: up to the last end of a transaction among its records; 0 for none."""
        records = count = 0
        for number, piece in enumerate(self._pieces, 1):
            records += len(piece.offsets)
            if piece.whole:
                count = number
            if records >= self._most and (count or self._splits):
                return count or number
        return count

    def _run(self) -> None:
        try:
            self._read()
        except BaseException as error:
            with self._news:
                self._error = error
                self._news.notify_all()

    def _read(self) -> None:
        failing_s: float | None = None
        while not self._stop.is_set():
            try:
                for piece in self._source.pieces(self._next, server_id=self._server_id, ends=False):
                    failing_s = None
                    if self._stop.is_set():
                        return
                    if piece is not None:
                        self._put(piece)
                raise TransientError("the server has ended its binlog", do_next="start again")
            except TransientError as error:
                failing_s = failing_s or monotonic_s()
                if monotonic_s() - failing_s > self._patience_s:
                    raise
                fields = {"event": "binlog_interrupted", "error": error.what}
                _log.warning("the binlog is interrupted and read again: %s", error, extra=fields)
                with self._news:
                    self._news.wait_for(lambda: self._stop.is_set(), _RETRY_S)

    def _put(self, piece: RecordPiece) -> None:
        with self._news:
            self._news.wait_for(lambda: self._stop.is_set() or self._records < _AHEAD * self._most or not self._count())
            last = self._pieces[-1] if self._pieces else None
            if last is not None and last.whole and piece.whole and len(last.offsets) + len(piece.offsets) < _MERGED:
                last.offsets += piece.offsets
                last.millis += piece.millis
                last.values += piece.values
                last.schema += piece.schema
                last.file, last.end, last.whole, last.gtid = piece.file, piece.end, piece.whole, piece.gtid
            else:
                self._pieces.append(piece)
            self._records += len(piece.offsets)
            self._next = piece.end
            self._news.notify_all()
