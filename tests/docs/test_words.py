"""One word a thing: pages, the help of commands and the settings use the glossary's words, and it has no idle ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from binlake.cli.app import app
from tests.docs.pages import DOCS, pages, prose
from tests.docs.test_commands import real
from tests.paths import ROOT

GLOSSARY = DOCS / "glossary.md"
PROSE = [page for page in (*pages(), ROOT / "ARCHITECTURE.md", ROOT / "bench" / "README.md") if page != GLOSSARY]
_ROW = re.compile(r"^\| (.+?) \| (.+?) \|$", re.MULTILINE)


def rows(section: str) -> list[tuple[str, str]]:
    """The two cells of each row below the headings that begin with these words."""
    parts = [part for part in GLOSSARY.read_text().split("\n## ") if part.startswith(section)]
    return [row for part in parts for row in _ROW.findall(part)[1:] if not set(row[0]) <= {"-"}]


def terms() -> list[str]:
    """The words that the glossary explains."""
    return [word for cell, _ in rows("Terms") for word in cell.split(", ")]


def banned() -> dict[str, str]:
    """Words that are not used, each with the one that is."""
    return {word: use for cell, use in rows("Words that are not used") for word in cell.split(", ")}


def uses(text: str, word: str) -> bool:
    """Whether the text has the word, in singular or plural."""
    plural = rf"(?:{re.escape(word)}(?:s|es)?|{re.escape(word[:-1])}(?:ies|ing|ed|s))"
    return re.search(rf"(?<![\w-]){plural}(?![\w-])", text.replace("\n", " "), re.IGNORECASE) is not None


def misused(text: str) -> list[str]:
    """Which of the words that are not used the text has."""
    return [word for word in banned() if uses(re.sub(r"`[^`]*`", "", text), word)]


def helps() -> Iterator[tuple[str, str]]:
    """Each command with its help and that of its options."""
    waiting: list[tuple[str, Any]] = [("binlake", get_command(app))]
    while waiting:
        name, command = waiting.pop()
        waiting += [(f"{name} {sub}", real(inner)) for sub, inner in getattr(command, "commands", {}).items()]
        options = [getattr(parameter, "help", None) or "" for parameter in command.params]
        yield name, "\n".join([command.help or "", *options])


HELPS = dict(helps())


def test_pages_use_the_words_of_the_glossary() -> None:
    found = {str(page.relative_to(ROOT)): misused(prose(page)) for page in PROSE}
    assert {page: words for page, words in found.items() if words} == {}


def test_the_help_of_commands_uses_the_words_of_the_glossary() -> None:
    found = {command: misused(text) for command, text in HELPS.items()}
    assert {command: words for command, words in found.items() if words} == {}


def test_no_term_is_explained_twice() -> None:
    assert sorted(terms()) == sorted(set(terms()))
    assert len(terms()) > 60


def test_every_term_is_used() -> None:
    text = "\n".join([*(page.read_text() for page in PROSE), *HELPS.values()])
    assert [term for term in terms() if not uses(text, term)] == []


def test_the_words_to_use_are_explained() -> None:
    known = {*terms(), "settings file"}  # which needs no explanation
    assert set(banned().values()) <= known


def test_control_other_words_are_found() -> None:
    assert misused("The upkeep of target\ntables; `upkeep` in code") == ["upkeep", "target table"]
    assert "binlake table resync" in HELPS
