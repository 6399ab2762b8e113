"""The pages of the documentation, and what stands in them: fenced blocks, code between backticks, links."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tests.paths import ROOT

DOCS = ROOT / "docs"
_FENCE = re.compile(r"^ *```(\w*)\s*$")
_MARK = re.compile(r"^<!-- test: (\w+) -->$")
_INLINE = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block. ``mark``: the word of a ``<!-- test: word -->`` line right above it."""

    page: Path
    line: int
    language: str
    text: str
    mark: str = ""

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


@lru_cache(maxsize=1)
def pages() -> tuple[Path, ...]:
    """README, CONTRIBUTING and every page of the site."""
    return ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))


def blocks(language: str) -> list[Block]:
    """All blocks of a language."""
    return [block for page in pages() for block in blocks_of(page, page.read_text()) if block.language == language]


def blocks_of(page: Path, text: str) -> Iterator[Block]:
    """The blocks of one page, in order. Raises ValueError for a block that does not end."""
    lines = text.splitlines()
    start: int | None = None
    for number, line in enumerate(lines):
        fence = _FENCE.match(line)
        if fence is None:
            continue
        if start is None:
            start = number
            continue
        opening = _FENCE.match(lines[start])
        assert opening is not None
        mark = _MARK.match(lines[start - 1]) if start else None
        body = "\n".join(lines[start + 1 : number]) + "\n"
        yield Block(page, start + 1, opening[1], body, mark[1] if mark else "")
        start = None
    if start is not None:
        raise ValueError(f"{page}:{start + 1}: the block does not end")


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    text = page.read_text()
    for block in blocks_of(page, text):
        text = text.replace(block.text, "")
    return text


def inline_code(page: Path) -> list[str]:
    """What stands between backticks in the prose."""
    return _INLINE.findall(re.sub(r"^ *```\w*\s*$", "", prose(page), flags=re.MULTILINE))


def links(page: Path) -> list[str]:
    """The targets of the page's links that lead to files, without their anchors."""
    targets = [target.partition("#")[0] for target in _LINK.findall(prose(page))]
    return [target for target in targets if target and "://" not in target]


def shell_commands(block: Block) -> Iterator[list[str]]:
    """The words of each command of a shell block, comments left out."""
    for line in block.text.replace("\\\n", " ").splitlines():
        if words := shlex.split(line, comments=True):
            yield words


def binlake_arguments(words: list[str]) -> list[str] | None:
    """What ``binlake`` gets, whether it is called here or in a container; None for another command."""
    for start in ([], ["dc", "exec", "binlake"], ["docker", "compose", "-f", "docker/compose.yaml", "exec", "binlake"]):
        if words[: len(start) + 1] == [*start, "binlake"]:
            return words[len(start) + 1 :]
    return None
