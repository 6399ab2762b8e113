"""A template: the common part of the messages of one table, learned from one message.

Connectors write the members of a table's messages in one order and one layout; only values differ. So a message with
the same bytes between its values is as valid as the message of the template: the same members, no duplicates, none
unknown. Compiled code reads its values in one pass (kernel.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from binlake.decode.templates.kernel import LITERAL, MARK, NO_SLOT, PADDING, PLAIN, SPAN, TEXTS, VALUE, words_of

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[^\s",:{}\[\]]+|[{}\[\]:,]', re.DOTALL)

Path = tuple[str, ...]


@dataclass(frozen=True)
class Layout:
    """Where the messages of a format have what, by the paths of members.

    Attributes:
        head: the slots of scalars. first_column: the slot of the first column.
        fixed: members whose values are part of the template, so that all its messages have the same.
        spans: the slots of values that are taken whole, whatever they are; NO_SLOT: they are skipped.
        later: the slots of arrays, without arrays in them, whose content is read, and checked, by another loop.
        texts: members that may be arrays of plain texts, and are skipped.
        marks: objects of columns, with the row of the marks where each begins; the next one has its end. Such an object
            may be the only one of an array.
        row: the object whose members are the columns that are read; None: there is none.
        depth: the deepest level of members that are looked at.
        added: members of the row whose names begin so are no columns; None: there are none.
    """

    head: Mapping[Path, int]
    first_column: int
    fixed: frozenset[Path] = frozenset()
    spans: Mapping[Path, int] = field(default_factory=dict)
    later: Mapping[Path, int] = field(default_factory=dict)
    texts: frozenset[Path] = frozenset()
    marks: Mapping[Path, int] = field(default_factory=dict)
    row: Path | None = None
    depth: int = 1
    added: str | None = None

    def is_column(self, path: Path) -> bool:
        """Whether a value is a column's, of the row that is read."""
        return bool(path) and path[:-1] == self.row and path not in self.head and not self._is_added(path[-1])

    def _is_added(self, name: str) -> bool:
        return self.added is not None and name.startswith(self.added)

    def passed(self, document: Mapping[str, Any]) -> frozenset[str]:
        """The members of a message's row that are no columns; its row is the message itself."""
        return frozenset(filter(self._is_added, document))

    def takes(self, path: Path) -> bool:
        """Whether a value may be an object or an array."""
        if path in self.later or path in self.texts:
            return True
        return path in self.spans or (len(path) == 2 and path[:1] in self.marks) or self.is_column(path)

    def step(self, path: Path, slots: dict[str, int]) -> tuple[int, int, int]:
        """The kernel's step for a value; a column's goes into its slot of ``slots``, which may grow."""
        if path in self.spans:
            return VALUE, self.spans[path], 0
        if path in self.later:
            return SPAN, self.later[path], 0
        if path in self.texts:
            return TEXTS, NO_SLOT, 0
        if self.is_column(path):
            return VALUE, slots.setdefault(path[-1], self.first_column + len(slots)), 0
        if path[:1] in self.marks:
            return VALUE, NO_SLOT, 0
        return PLAIN, self.head.get(path, NO_SLOT), 0


@dataclass
class Template:
    """The common part of the messages of one table and form.

    Attributes:
        document: the message that it was learned from.
        layout: of the message's format.
        columns: the row's members.
        steps, literals: see the kernel.
    """

    document: Mapping[str, Any]
    layout: Layout
    columns: list[str] = field(default_factory=list)
    steps: list[tuple[int, int, int]] = field(default_factory=list)
    literals: bytearray = field(default_factory=bytearray)

    @cached_property
    def arrays(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8], npt.NDArray[np.uint64]]:
        """Steps and literals in the kernel's form, of a template that is whole."""
        literals = bytes(self.literals) + PADDING
        return np.array(self.steps, dtype=np.int64), np.frombuffer(literals, dtype=np.uint8), words_of(literals)

    def add_literal(self, text: bytes) -> None:
        """Add fixed bytes."""
        if not text:
            return
        if self.steps and self.steps[-1][0] == LITERAL:
            _, start, size = self.steps[-1]
            self.steps[-1] = (LITERAL, start, size + len(text))
        else:
            self.steps.append((LITERAL, len(self.literals), len(text)))
        self.literals += text

    def add_value(self, path: Path, slots: dict[str, int]) -> None:
        """Add a value."""
        if self.layout.is_column(path):
            self.columns.append(path[-1])
        self.steps.append(self.layout.step(path, slots))


def template_of(text: bytes, document: Mapping[str, Any], layout: Layout, slots: dict[str, int]) -> Template | None:
    """The template of a valid message, of which ``document`` is the content.

    None where an array or an object is neither fixed, nor a span, nor a column's value. ``slots``: those of columns
    seen before; this template adds its own.
    """
    template, known = Template(document, layout), dict(slots)
    end = nesting = 0
    fixed = False
    for token, path, is_value in _tokens(text):
        kind = token.group()
        depth = (kind in (b"{", b"[")) - (kind in (b"}", b"]"))
        if nesting:  # inside an object or array that is one value
            nesting += depth
            if not fixed:
                end = token.end()
        elif depth > 0 and (path in layout.fixed or layout.takes(path)):
            fixed = path in layout.fixed
            if not fixed:
                template.add_literal(text[end : token.start()])
                template.add_value(path, known)
            nesting = 1
        elif (
            (kind == b"[" and path not in layout.marks)
            or len(path) > layout.depth
            or (kind == b"{" and len(path) == layout.depth)
        ):
            return None
        else:
            template.add_literal(text[end : token.start()])
            end = token.end()
            _add(template, kind, path, is_value, known)
    template.add_literal(text[end:])
    slots |= known
    return template


def _add(template: Template, token: bytes, path: Path, is_value: bool, slots: dict[str, int]) -> None:
    layout = template.layout
    mark = layout.marks.get(path) if is_value else None
    if mark is not None and token != b"}":
        template.steps.append((MARK, mark, 0))
    if is_value and mark is None and token not in b"{}" and path not in layout.fixed:
        template.add_value(path, slots)
    else:
        template.add_literal(token)
    if mark is not None and token != b"{":
        template.steps.append((MARK, mark + 1, 0))


def _tokens(text: bytes) -> Iterator[tuple[re.Match[bytes], Path, bool]]:
    """The tokens of a valid object, each with its path and whether it is a value (or the brace of one)."""
    path: list[str] = []
    depth, named = 0, False
    for token in _TOKEN.finditer(text):
        kind = token.group()[:1]
        if kind == b"}":
            depth -= 1
            del path[depth:]
        is_value = kind in b"{}" or (named and kind not in b":,[]")
        if kind == b'"' and not is_value:
            path[depth - 1 :] = [msgspec.json.decode(token.group(), type=str)]
        yield token, tuple(path), is_value
        depth += kind == b"{"
        named = kind == b":"
