"""What a batch that takes long is doing, for people who wait for it: records fetched and decoded, tables committed.

Tasks that run on this machine count in small files, which the driver adds up; tasks on other machines cannot, and then
the lines say only how many records there are. Nothing but these lines depends on the counts.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from binlake.decode.changes import SourceTable
from binlake.position.in_hand import WorkInHand
from binlake.rows.tasks.counts import COUNTS_SUFFIX
from binlake.source.binlog.topic import is_binlog
from binlake.source.offsets import Ranges
from hudilake.clock import monotonic_s, now_ms

_log = logging.getLogger(__name__)

#: How long the first batch, and any later one, works in silence; and the time between two lines, in seconds.
FIRST_S, LATER_S, EVERY_S = 2.0, 10.0, 5.0
_LOOK_S = 0.25
#: The state of a table that has committed.
_COMMITTED = "is committed"
#: Topics or tables that a line names.
_NAMED = 4


@dataclass
class _Work:
    """A batch in hand."""

    number: int
    ranges: Ranges
    began_s: float
    stage: str = "plans"
    states: dict[SourceTable, str] = field(default_factory=dict)


def _sizes(ranges: Ranges) -> Counter[str]:
    """Records by topic; without a binlog, whose offsets count none."""
    sizes: Counter[str] = Counter()
    for one in ranges:
        if not is_binlog(one.topic):
            sizes[one.topic] += len(one)
    return sizes


class BatchSteps:
    """What the batch in hand is doing. The stream's thread tells; any thread may ask for the line.

    ``counts_in``: a directory that tasks of this machine count in; None if nobody looks at the counts.
    """

    def __init__(self, counts_in: str | None = None) -> None:
        self.counts_in = counts_in
        self._lock = threading.Lock()
        self._work: _Work | None = None
        self._finished = 0
        self._last_line_s: float | None = None

    @contextlib.contextmanager
    def batch(self, number: int, ranges: Ranges) -> Iterator[None]:
        """Within, this batch is in hand."""
        self._forget_counts()
        with self._lock:
            self._work, self._last_line_s = _Work(number, ranges, monotonic_s()), None
        try:
            yield
        finally:
            with self._lock:
                self._work = None
                self._finished += 1

    def stage(self, words: str) -> None:
        """What the batch does from now on; ``fetches`` is followed by the counts of records."""
        if words == "fetches":  # the tasks may run once more, when the batch has taught something
            self._forget_counts()
        with self._lock:
            if self._work is not None:
                self._work.stage = words

    def tables(self, tables: Iterable[SourceTable], state: str) -> None:
        """Tables that wait, are written or are committed."""
        with self._lock:
            if self._work is not None:
                self._work.states |= dict.fromkeys(tables, state)

    def due(self) -> str | None:
        """The line that is to be shown now; None if the batch is quick, or a line was shown a moment ago."""
        with self._lock:
            work, now_s = self._work, monotonic_s()
            if work is None:
                return None
            patience_s = LATER_S if self._finished else FIRST_S
            since_s = work.began_s + patience_s if self._last_line_s is None else self._last_line_s + EVERY_S
            if now_s < since_s:
                return None
            self._last_line_s = now_s
            head = f"batch {work.number} has taken {now_s - work.began_s:.0f} s: {work.stage}"
            states = dict(work.states)
        if states:
            return f"{head}: {_listed(f'{table} {state}' for table, state in states.items())}"
        return f"{head}{self._records(work.ranges)}" if work.stage == "fetches" else head

    def work(self) -> WorkInHand | None:
        """The batch in hand, for a ``WorkNotes``; None between two batches."""
        with self._lock:
            work = self._work
            if work is None:
                return None
            states = {str(table): state for table, state in work.states.items()}
            seconds, stage = monotonic_s() - work.began_s, work.stage
        begun = WorkInHand("batch", str(work.number), stage, now_ms() - round(seconds * 1000))
        if states:
            committed = sum(state == _COMMITTED for state in states.values())
            return replace(begun, tables=states, done=committed, of=len(states), unit="tables committed")
        if stage != "fetches":
            return begun
        fetched, decoded = self._counted()
        of = _sizes(work.ranges).total() or None  # of a binlog it is not known
        return replace(begun, done=decoded.total() if fetched else None, of=of, unit="records decoded")

    def _records(self, ranges: Ranges) -> str:
        fetched, decoded = self._counted()
        whole = _sizes(ranges)
        if not whole:
            return " and decodes what the binlog has"
        head = f" and decodes {whole.total():,} records"
        if not fetched:
            return f"{head}: {_listed(f'{topic} {count:,}' for topic, count in whole.most_common())}"
        parts = _listed(f"{topic} {decoded[topic]:,} of {count:,}" for topic, count in whole.most_common())
        return f"{head}: {fetched.total():,} fetched, {decoded.total():,} decoded ({parts})"

    def _counted(self) -> tuple[Counter[str], Counter[str]]:
        """Records by topic, fetched and decoded, over all tasks of the batch."""
        fetched: Counter[str] = Counter()
        decoded: Counter[str] = Counter()
        for file in self._files():
            with contextlib.suppress(OSError, ValueError):
                for topic, (came, done) in json.loads(file.read_text(encoding="utf-8")).items():
                    fetched[topic] += came
                    decoded[topic] += done
        return fetched, decoded

    def _forget_counts(self) -> None:
        for file in self._files():
            with contextlib.suppress(OSError):
                file.unlink()

    def _files(self) -> list[Path]:
        return [] if self.counts_in is None else list(Path(self.counts_in).glob(f"*{COUNTS_SUFFIX}"))


def say_step(line: str) -> None:
    """Log a line of the batch in hand."""
    _log.info("%s", line, extra={"event": "step"})


def _listed(parts: Iterable[str]) -> str:
    named = list(parts)
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return ", ".join(named[:_NAMED]) + more


class StepTeller:
    """Shows the lines that are due, from a thread of its own. A context manager."""

    def __init__(self, steps: BatchSteps, say: Callable[[str], None]) -> None:
        self._steps, self._say = steps, say
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, name="binlake-steps", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(_LOOK_S):
            line = self._steps.due()
            if line is not None:
                self._say(line)
