"""Where scripts are run: authors say what, a desk runs it and keeps what the server answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from tests.programs.oracle.script import Script, Statement
from tests.programs.oracle.session import SqlSession


class Author(Protocol):
    """Says what is run: a generator decides from the answers, a script that is written knows it all before."""

    @property
    def name(self) -> str:
        """Of the script."""

    def before(self, desk: Desk) -> None:
        """Run what comes before the connector starts."""

    def after(self, desk: Desk) -> None:
        """Run what comes after its snapshot."""


@dataclass(frozen=True)
class Written:
    """The author of a script that is there already."""

    script: Script

    @property
    def name(self) -> str:
        """The script's name."""
        return self.script.name

    def before(self, desk: Desk) -> None:
        """See Author."""
        for statement in self.script.before:
            desk.run(statement)

    def after(self, desk: Desk) -> None:
        """See Author."""
        for statement in self.script.after:
            desk.run(statement)


@dataclass
class Desk:
    """Where an author's statements are run: a session, the script's database, and what has been run.

    ``pause``: called after each statement.
    """

    session: SqlSession
    database: str
    done: list[Statement] = field(default_factory=list)
    split: int = 0
    pause: Callable[[], None] = lambda: None

    def run(self, statement: Statement) -> bool:
        """Run one; whether the server accepted it."""
        answer = self.session.run(statement.at(self.database))
        self.done.append(Statement(statement.sql, statement.kind, answer.error))
        self.pause()
        return answer.error is None

    def sit_down(self) -> None:
        """Take the session over from the script that used it last."""
        self.session.query("COMMIT")
        self.session.query("SET SESSION sql_mode = DEFAULT, time_zone = '+00:00', foreign_key_checks = 1")
        self.session.query(f"USE {self.database}")

    def script(self, name: str) -> Script:
        """What has been run."""
        return Script(name, tuple(self.done[: self.split]), tuple(self.done[self.split :]))

    @property
    def databases(self) -> tuple[str, str]:
        """The names of the script's two databases at the server."""
        return self.database, f"{self.database}_2"
