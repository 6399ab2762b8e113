"""A script: the statements of one seed, as values and as a readable text file.

Statements name the database ``oracle_db`` and a second one ``oracle_db_2``. At the server each script has databases of
its own, so that many scripts run at once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

DATABASE, SECOND = "oracle_db", "oracle_db_2"
_SPLIT = "-- the connector takes its snapshot here"
_KIND = re.compile(r"-- (\S.*)")


@dataclass(frozen=True)
class Statement:
    """``sql`` without a semicolon; ``kind``: what the generator calls it; ``error``: why the server refused it."""

    sql: str
    kind: str = ""
    error: str | None = None

    def at(self, database: str) -> str:
        """The text for a database."""
        return self.sql.replace(DATABASE, database)


@dataclass(frozen=True)
class Script:
    """``before``: statements before the connector starts; ``after``: those that it follows. ``seed``: the origin."""

    name: str
    before: tuple[Statement, ...]
    after: tuple[Statement, ...]

    @property
    def statements(self) -> tuple[Statement, ...]:
        """All of them."""
        return self.before + self.after

    @property
    def accepted(self) -> Script:
        """Without what the server refused."""
        before, after = (tuple(s for s in part if s.error is None) for part in (self.before, self.after))
        return replace(self, before=before, after=after)

    def kept(self, places: Sequence[int]) -> Script:
        """Only the statements at these places of ``statements``."""
        wanted = set(places)
        before = tuple(s for at, s in enumerate(self.before) if at in wanted)
        after = tuple(s for at, s in enumerate(self.after, len(self.before)) if at in wanted)
        return Script(self.name, before, after)

    def text(self, *remarks: str) -> str:
        """The script as SQL, each statement on lines of its own and ended by ``;`` at a line's end."""
        head = [f"-- {line}" for remark in remarks for line in remark.splitlines()]
        before, after = (
            ["\n".join([f"-- {s.kind}"] * bool(s.kind) + [f"{s.sql};"]) for s in part]
            for part in (self.before, self.after)
        )
        return "\n".join([*head, "", *before, "", _SPLIT, "", *after, ""])


def parse(name: str, text: str) -> Script:
    """The script of a text as ``Script.text`` writes it. ``--`` lines before a statement are no part of it."""
    before, _, after = text.partition(_SPLIT)
    return Script(name, tuple(_statements(before)), tuple(_statements(after)))


def _statements(text: str) -> list[Statement]:
    found: list[Statement] = []
    kind, lines = "", list[str]()
    for line in text.splitlines():
        remark = _KIND.fullmatch(line) if not lines else None
        if remark:
            kind = remark[1]
        elif line.strip() or lines:
            lines.append(line)
            if line.endswith(";"):
                found.append(Statement("\n".join(lines).removesuffix(";"), kind))
                kind, lines = "", []
    return found
