"""A template: the common part of the messages of one table, learned from one message.

Connectors write the members of a table's messages in one order and one layout; only values differ. So a message with
the same bytes between its values is as valid as the message of the template: the same members, no duplicates, none
unknown. Compiled code reads its values in one pass (kernel.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec
import numpy as np
import numpy.typing as npt

from binlake.decode.quarantine import Buffer, json_fault
from binlake.decode.templates.kernel import LITERAL, MARK, NO_SLOT, PLAIN, VALUE

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[^\s",:{}\[\]]+|[{}\[\]:,]', re.DOTALL)
_ANY = msgspec.json.Decoder().decode
_BAD = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)

_Path = tuple[str, ...]
#: Slots of the values in an event's head; those of the row's columns follow.
OP, FILE, POS, ROW, TS_MS, SERVER_ID, GTID = range(7)
FIRST_COLUMN = 7
_HEAD: dict[_Path, int] = {
    ("op",): OP,
    ("source", "file"): FILE,
    ("source", "pos"): POS,
    ("source", "row"): ROW,
    ("source", "ts_ms"): TS_MS,
    ("source", "server_id"): SERVER_ID,
    ("source", "gtid"): GTID,
}
#: Members whose values are part of the template, so that all its messages are of one table.
_FIXED = frozenset({("source", "db"), ("source", "table")})
#: Rows of the marks where an image begins; the next row has its end.
BEFORE, AFTER = 0, 2
_MARKS: dict[_Path, int] = {("before",): BEFORE, ("after",): AFTER}


@dataclass
class Template:
    """The common part of the messages of one table and form.

    Attributes:
        database, table: the source's names.
        image: the member that is the row of the event: ``before`` where there is no after image.
        columns: the row's members.
        steps, literals: see the kernel.
    """

    database: str
    table: str
    image: str
    columns: list[str] = field(default_factory=list)
    steps: list[tuple[int, int, int]] = field(default_factory=list)
    literals: bytearray = field(default_factory=bytearray)

    def arrays(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
        """Steps and literals in the kernel's form."""
        return np.array(self.steps, dtype=np.int64), np.frombuffer(bytes(self.literals), dtype=np.uint8)

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

    def add_value(self, path: _Path, slots: dict[str, int]) -> None:
        """Add a value: a column's into its slot of ``slots``, which may grow; unused values are skipped."""
        if len(path) == 2 and path[0] == self.image:
            self.columns.append(path[1])
            self.steps.append((VALUE, slots.setdefault(path[1], FIRST_COLUMN + len(slots)), 0))
        elif path[:1] in _MARKS:
            self.steps.append((VALUE, NO_SLOT, 0))
        else:
            self.steps.append((PLAIN, _HEAD.get(path, NO_SLOT), 0))


def learn(message: Buffer, slots: dict[str, int], max_nesting: int) -> Template | None:
    """The template of a Debezium envelope with at least one row image.

    None for any other message, and where an array, or an object inside an object, is not a value of a row. ``slots``:
    those of columns seen before; this template adds its own.
    """
    text = bytes(message)
    template = _begun(text)
    if template is None or json_fault(text, max_nesting) is not None:
        return None
    end = nesting = 0
    known = dict(slots)
    for token, path, is_value in _tokens(text):
        kind = token.group()
        depth = (kind in (b"{", b"[")) - (kind in (b"}", b"]"))
        if nesting:  # inside an object or array that is a column's value
            nesting, end = nesting + depth, token.end()
        elif depth > 0 and len(path) == 2 and path[:1] in _MARKS:
            template.add_literal(text[end : token.start()])
            template.add_value(path, known)
            nesting = 1
        elif kind == b"[" or len(path) > 2 or (kind == b"{" and len(path) == 2):
            return None
        else:
            template.add_literal(text[end : token.start()])
            end = token.end()
            _add(template, kind, path, is_value, known)
    template.add_literal(text[end:])
    slots |= known
    return template


def _begun(text: bytes) -> Template | None:
    """A template without steps, if the message is an envelope."""
    try:
        document = _ANY(text)
    except _BAD:
        return None
    if not isinstance(document, dict) or not isinstance(document.get("source"), dict):
        return None
    source, images = document["source"], [document.get("before", 0), document.get("after", 0)]
    named = all(isinstance(source.get(name), str) for name in ("db", "table", "file"))
    if not named or not isinstance(document.get("op"), str) or "pos" not in source:
        return None
    if images == [None, None] or not all(image is None or isinstance(image, dict) for image in images):
        return None
    return Template(source["db"], source["table"], "before" if images[1] is None else "after")


def _add(template: Template, token: bytes, path: _Path, is_value: bool, slots: dict[str, int]) -> None:
    mark = _MARKS.get(path) if is_value else None
    if mark is not None and token != b"}":
        template.steps.append((MARK, mark, 0))
    if is_value and mark is None and token not in b"{}" and path not in _FIXED:
        template.add_value(path, slots)
    else:
        template.add_literal(token)
    if mark is not None and token != b"{":
        template.steps.append((MARK, mark + 1, 0))


def _tokens(text: bytes) -> Iterator[tuple[re.Match[bytes], _Path, bool]]:
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
