"""A file of the suite on its way through the server, cut into segments.

A *segment* is the statements from a moment without tables to the next one. At each *stop*, before a table goes, all
tables are read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from demo.truth import TruthTable
from hudilake import clock
from tests.programs.proofs.suite.interpreter import EnoughError, Interpreter
from tests.programs.proofs.suite.server import SuiteServer

_STOP = re.compile(
    r"\s*(?:/\*.*?\*/\s*)*(drop\s+(table|database|schema)|create\s+or\s+replace\s+table|truncate|alter\s+table.*\b(drop|"
    r"truncate|exchange)\s+partition)\b",
    re.IGNORECASE | re.DOTALL,
)
_SECONDS, _LOG_BYTES = 30.0, 2_000_000


class WalkListener(Protocol):
    """Hears of segments and stops. What it raises ends the file."""

    def begin(self) -> None:
        """A segment begins."""

    def stop(self, truth: tuple[TruthTable, ...], statements: Sequence[str], *, is_last: bool) -> None:
        """All tables at a stop, and the statements of the segment so far; ``is_last``: the next one may leave none."""

    def end(self) -> None:
        """A segment ends."""


class FileWalk:
    """Runs one file.

    Args:
        server: where it runs.
        listener: hears of it. The time that it takes is not the file's.
    """

    def __init__(self, server: SuiteServer, listener: WalkListener) -> None:
        self._server, self._listener = server, listener
        self._statements: list[str] = []
        self._from = self._last = self._seen = 0
        self._dropped = False
        self._interpreter = Interpreter(
            server.home, server.connect, self._before, server.variables(), clock.monotonic_s() + _SECONDS
        )

    @property
    def ran(self) -> Counter[str]:
        """How many statements were accepted and refused, and what was left out."""
        return self._interpreter.ran

    def run(self, name: str) -> str:
        """Why the file was given up, or nothing."""
        end = ""
        try:
            self._begin()
            self._from = self._server.position()
            end = self._interpreter.run(name)
            self._commit()
            self._stop("")
            self._listener.end()
        except EnoughError as enough:
            end = end or str(enough)
        finally:
            self._interpreter.close()
        return end

    def _begin(self) -> None:
        self._listener.begin()
        self._last = self._server.position()
        self._statements.clear()

    def _before(self, sql: str) -> None:
        self._seen += 1
        if self._dropped:
            self._dropped = False
            if not self._server.has_tables():
                self._listener.end()
                self._begin()
        if self._seen % 100 == 0 and self._server.position() - self._from > _LOG_BYTES:
            raise EnoughError("writes too many rows")
        if _STOP.match(sql):
            self._commit()
            self._stop(sql)
            self._dropped = True
        self._statements.append(sql)

    def _commit(self) -> None:
        """What a DROP does first. What other connections have not committed, is in neither log nor truth."""
        session = self._interpreter.sessions.get(self._interpreter.current)
        if session is not None:
            session.run("COMMIT")

    def _stop(self, sql: str) -> None:
        """``sql``: the statement that comes next; empty at the end."""
        position = self._server.position()
        if position - self._from > _LOG_BYTES:
            raise EnoughError("writes too many rows")
        if position == self._last:
            return
        truth = self._server.truth()
        if truth is None:
            return
        if any(table.rows for table in truth):
            began_s = clock.monotonic_s()
            named = 0 if "table" not in sql.lower()[:40] else sql.count(",") + 1
            self._listener.stop(truth, self._statements, is_last=not named or named >= len(truth))
            self._interpreter.deadline_s += clock.monotonic_s() - began_s
        self._last = self._server.position()
