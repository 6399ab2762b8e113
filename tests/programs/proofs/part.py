"""A part of the proofs: inputs that others wrote, and a verdict for each."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol, runtime_checkable


class Outcome(StrEnum):
    """What became of an input."""

    #: The lake holds what the input's owner holds, or what was claimed held.
    EQUAL = "equal"
    #: binlake refused it for a reason that its documentation has.
    REFUSED = "refused"
    #: The connector did not deliver it, which its topic or its log shows.
    LOST = "lost by the connector"
    #: It was not run, or it has nothing that can be compared.
    SKIPPED = "not run"
    #: A fault of ours.
    WRONG = "wrong"


@dataclass(frozen=True)
class Verdict:
    """``source``: the name of an input. ``reason``: in words that inputs of one kind share; ``detail``: of this one.
    ``tags``: what else the page counts by."""

    source: str
    outcome: Outcome
    reason: str = ""
    detail: str = ""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Task:
    """What a run asks of a part.

    Args:
        place: a directory of the part's own. It stays between runs.
        limit: of the number of inputs; None for all.
        start: the first seed of a part that draws, the number of the first input of one that does not.
        judged: the names of inputs that have a verdict already. They are left out, and count as none of ``limit``.
        options: words of the command line for this part (``--option suite=main``), in their order.
    """

    place: Path
    limit: int | None = None
    start: int = 0
    judged: Collection[str] = ()
    options: tuple[str, ...] = ()


class Part(Protocol):
    """Inputs of one owner."""

    @property
    def name(self) -> str:
        """One word, in lower case."""

    @property
    def owner(self) -> str:
        """Who wrote the inputs."""

    @property
    def inputs(self) -> str:
        """What they are, in a few words."""

    @property
    def about(self) -> str:
        """For the page: how an input is judged, in Markdown."""

    def run(self, task: Task) -> Iterator[Verdict]:
        """Judge inputs one after the other. What it starts, it stops when the iterator is closed."""


@runtime_checkable
class ComparingPart(Part, Protocol):
    """A part whose inputs another part judges, too."""

    def compared(self, verdicts: Sequence[Verdict], place: Path) -> list[Verdict]:
        """The verdicts with tags that say what became of their inputs there. ``place``: of all parts' verdicts."""
