"""What a reader types: the fenced blocks of the pages, line by line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.docs.pages import blocks_of
from tests.paths import ROOT

#: Languages of blocks that a reader types.
_TYPED = ("sh", "sql")


@dataclass(frozen=True)
class Step:
    """A line that a reader types.

    Args:
        place: page and line of its block.
        language: ``sh``, or ``sql`` for the source's database.
        text: of the line, with the addresses of this run.
    """

    place: str
    language: str
    text: str

    @property
    def stays(self) -> bool:
        """Whether it is a command that goes on until it is stopped."""
        return self.text.startswith("binlake run ") and "--once" not in self.text.partition("#")[0]


def steps_of(page: Path, heading: str, addresses: Mapping[str, str]) -> Iterator[Step]:
    """The lines below a heading, up to the next one of its level.

    Args:
        page: of the documentation.
        heading: as it stands in the page, without marks; "" for the whole page.
        addresses: what the page says -> what is so here.

    Raises ValueError if the page has no such heading.
    """
    text = page.read_text(encoding="utf-8")
    first, last = _bounds(text, heading)
    for block in blocks_of(page, text):
        if block.language in _TYPED and first <= block.line <= last:
            lines = block.text.replace("\\\n", " ").splitlines() if block.language == "sh" else [block.text]
            for line in filter(str.strip, lines):
                yield Step(f"{page.relative_to(ROOT)}:{block.line}", block.language, _here(line, addresses))


def _bounds(text: str, heading: str) -> tuple[int, int]:
    lines = text.splitlines()
    if not heading:
        return 1, len(lines)
    [start] = [number for number, line in enumerate(lines, 1) if line.startswith("#") and line.lstrip("# ") == heading]
    level = lines[start - 1].partition(" ")[0]
    ends = [n for n, line in enumerate(lines, 1) if n > start and line.startswith(f"{level} ")]
    return start, min(ends, default=len(lines))


def _here(line: str, addresses: Mapping[str, str]) -> str:
    for told, real in addresses.items():
        line = line.replace(told, real)
    return line
