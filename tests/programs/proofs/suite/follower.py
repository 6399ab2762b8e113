"""Lakes that ``source.mysql`` feeds while a file runs at the server: a lake for each segment, judged at its stops."""

from __future__ import annotations

import contextlib
import random
import tempfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from demo.truth import TruthTable
from embedded.mariadb import EmbeddedMariaDB
from tests.programs.oracle.binlog.lake import BinlogLake
from tests.programs.oracle.binlog.ways import Follower
from tests.programs.oracle.exceptions import Excuses
from tests.programs.proofs.part import Outcome
from tests.programs.proofs.suite.judge import SEVERITY, Segment
from tests.programs.proofs.suite.reasons import excused_by, named, reason_without_connector
from tests.programs.proofs.suite.server import MARKS, SuiteServer

#: So many stops of a segment are judged, and its last one.
_STOPS = 4
#: A batch takes an event at least for so much of the log: a long one is not read in batches of three events.
_SHARE_BYTES = 20_000
_WAYS = ("backlog", "live", "live", "kills")


@dataclass
class FileFollower:
    """A WalkListener: what became of the segments of a file. A ``with`` statement removes the lakes.

    Args:
        database, server: where the file runs.
        name: of the file.
        segments: those that have ended, if any stop of them was judged.
    """

    database: EmbeddedMariaDB
    server: SuiteServer
    name: str
    segments: list[Segment] = field(default_factory=list)
    _places: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _start: str = ""
    _way: str = ""
    _draw: random.Random = field(default_factory=random.Random)
    _live: Follower | None = None
    _stops: int = 0
    _worst: Segment | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._places.close()

    def begin(self) -> None:
        """The next segment begins here."""
        name = f"{self.name}#{len(self.segments)}"
        self._start, self._draw = self.server.end, random.Random(name)
        self._way = _WAYS[zlib.crc32(name.encode()) % len(_WAYS)]
        self._live, self._stops, self._worst = None, 0, None

    def stop(self, truth: tuple[TruthTable, ...], statements: Sequence[str], *, is_last: bool) -> None:
        """Bring the lake here and compare, if it is the last stop or one of the first."""
        if self._stops >= _STOPS and not is_last:
            return
        self._stops += 1
        if self._live is None or self._way == "backlog":
            self._places.close()
            place = self._places.enter_context(tempfile.TemporaryDirectory(prefix="suite-lake-"))
            zero_dates = "text" if _has_zero_dates(truth) else "null"
            lake = BinlogLake(
                self.database,
                Path(place),
                ["*"],
                self._start,
                self._draw,
                excluded=[f"{MARKS}.*"],
                zero_dates=zero_dates,
                least=(self.server.position() - int(self._start.rpartition(":")[2])) // _SHARE_BYTES,
            )
            self._live = Follower(lake, self._way)
        segment = _judged(f"{self.name}#{len(self.segments)}", self._live, truth, statements)
        if self._worst is None or SEVERITY.index(segment.outcome) > SEVERITY.index(self._worst.outcome):
            self._worst = replace(segment, keyed=segment.keyed or (self._worst is not None and self._worst.keyed))
        else:
            self._worst = replace(self._worst, keyed=segment.keyed or self._worst.keyed)

    def end(self) -> None:
        """Keep the segment."""
        self._places.close()
        if self._worst is not None:
            self.segments.append(self._worst)


def _judged(name: str, follower: Follower, truth: tuple[TruthTable, ...], statements: Sequence[str]) -> Segment:
    lake, excuses = follower.lake, Excuses(by_connector=False)
    lake.read, lake.statements = truth, tuple(statements)
    if follower.way == "kills":
        follower.go_on()
    failures = follower.end(excuses)
    keyed = any(table.key and table.rows for table in truth)
    worst = Segment(name, Outcome.EQUAL, "", "", keyed, carried=True)
    words = named(lake) if failures else {}
    excused = excused_by(excuses.used, by_connector=False)
    if excused is not None:
        worst = Segment(name, excused[0], excused[1], str(dict(excuses.used)), keyed)
    for failure in failures:
        outcome, reason = reason_without_connector(failure, failures, words, statements)
        if SEVERITY.index(outcome) > SEVERITY.index(worst.outcome):
            detail = f"{follower.way}: {failure.kind} | {failure.table} | {failure.detail}"
            worst = Segment(name, outcome, reason, detail, keyed)
    return worst


def _has_zero_dates(truth: Sequence[TruthTable]) -> bool:
    return any(
        "-00" in str(row[place])[:10]
        for table in truth
        for place, column in enumerate(table.columns)
        if column.data_type in ("date", "datetime", "timestamp")
        for row in table.rows
    )
