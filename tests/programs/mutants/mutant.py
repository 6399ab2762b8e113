"""A mutant as a value: one change of one file that takes a guard away, and the tests that should notice."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Mutant:
    """One mutant.

    Args:
        name: unique, in lower case.
        guard: what the guard does, as a sentence without a full stop.
        without: what the mutant does instead.
        file: the changed file, below the root of the project.
        old, new: the text that occurs once in the file, and what stands in its place.
        tests: pytest's names of the tests that should notice, the quickest first.
    """

    name: str
    guard: str
    without: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def applied(self, root: Path) -> str:
        """The changed text of the file. Raises ValueError if ``old`` does not occur exactly once."""
        text = (root / self.file).read_text()
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: the text to replace occurs {text.count(self.old)} times in {self.file}")
        return text.replace(self.old, self.new)
