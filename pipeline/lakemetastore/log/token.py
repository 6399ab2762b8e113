"""A token of a commit: who has it reads at least that commit, through any process of the service.

It stands alone: logs, the catalog, the lakes and the HTTP service all use it.
"""

from __future__ import annotations

from dataclasses import dataclass

from hudilake.errors import BadInputError


@dataclass(frozen=True, slots=True)
class Token:
    """A log and a version of it; as text ``log:version``."""

    log: str
    version: int

    @classmethod
    def parse(cls, text: str) -> Token:
        """The token of a text. Raises BadInputError for any other text."""
        log, colon, version = text.rpartition(":")
        if not colon or not log or not version.isascii() or not version.isdigit():
            raise BadInputError("this is no token", do_next="send the token of an answer as it came", token=text[:200])
        return cls(log, int(version))

    def __str__(self) -> str:
        return f"{self.log}:{self.version}"
