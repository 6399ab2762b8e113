"""One connection to the embedded server, kept for many statements: the server's own client with pipes."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from embedded.database import EmbeddedDatabase

_ERROR = re.compile(r"ERROR (\d+) \(\w+\)(?: at line \d+)?: (.*)")
_ESCAPED = re.compile(r"\\([ntr0\\])")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\"}


@dataclass(frozen=True)
class Answer:
    """The server's answer: rows of cells as text (None is NULL), or the error by which it refused the statement."""

    rows: tuple[tuple[str | None, ...], ...] = ()
    error: str | None = None


class SqlSession:
    """Runs statements one after the other. A refused statement is an answer, not an exception."""

    def __init__(self, database: EmbeddedDatabase) -> None:
        self._command = database.client_command("--force", "--unbuffered", "--comments")
        self._sent = 0

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)

    def run(self, sql: str) -> Answer:
        """One statement, without a semicolon at its end."""
        assert self._process.stdin is not None
        self._sent += 1
        mark = f"--answered-{self._sent}--"
        # The newline ends a comment of one line.
        self._process.stdin.write(f"{sql}\n;\nSELECT '{mark}';\n".encode())
        self._process.stdin.flush()
        rows, error = [], None
        for line in self._lines(mark):
            refused = _ERROR.match(line)
            if refused:
                error = f"{refused[1]}: {refused[2]}"
            else:
                rows.append(tuple(map(_cell, line.split("\t"))))
        return Answer(tuple(rows), error)

    def query(self, sql: str) -> tuple[tuple[str | None, ...], ...]:
        """The rows of a statement that must succeed."""
        answer = self.run(sql)
        assert answer.error is None, f"{sql}: {answer.error}"
        return answer.rows

    def drop_databases(self, names: Iterable[str]) -> None:
        """Drop databases whose tables may have foreign keys to each other's."""
        self.query("SET foreign_key_checks = 0")
        for name in names:
            self.query(f"DROP DATABASE {name}")
        self.query("SET foreign_key_checks = 1")

    def _lines(self, mark: str) -> Iterator[str]:
        assert self._process.stdout is not None
        while True:
            line = self._process.stdout.readline().decode(errors="replace")
            assert line, "the server's client has ended"
            text = line.removesuffix("\n")
            if text == mark:
                return
            yield text


def _cell(text: str) -> str | None:
    return None if text == "NULL" else _ESCAPED.sub(lambda found: _ESCAPES[found[1]], text)
