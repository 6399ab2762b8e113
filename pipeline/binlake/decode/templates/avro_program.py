"""The writer's schema of Avro envelopes or keys as steps for the compiled reader; none for schemas it does not read.

The reader takes what Connect's converter writes for Debezium: records of records, and unions of null and one type.
Arrays, maps, columns that are nested deeper than a geometry, and envelopes of other members are left to the general
decoder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from binlake.decode.templates.avro_kernel import (
    BEGIN,
    MARK,
    ONLY,
    READ_BOOLEAN,
    READ_BYTES,
    READ_DOUBLE,
    READ_ENUM,
    READ_FIXED,
    READ_FLOAT,
    READ_INT,
    READ_LONG,
    READ_TEXT,
    UNION,
)
from binlake.decode.templates.envelope_head import HEAD, IMAGES, NEXT_SLOT
from binlake.decode.templates.kernel import NO_SLOT
from binlake.decode.templates.template import Path
from binlake.decode.templates.value_kernel import BINARY, DOUBLE, FLOAT, INT, NESTED, TEXT, TRUE

_I64 = npt.NDArray[np.int64]

#: Slots of what templates of JSON have as part of themselves; those of the columns follow.
DB, TABLE = range(NEXT_SLOT, NEXT_SLOT + 2)
FIRST_COLUMN = NEXT_SLOT + 2
_HEAD: Mapping[Path, int] = {**HEAD, ("source", "db"): DB, ("source", "table"): TABLE}
#: The deepest record: a value inside a column of an image.
_DEEPEST = 3
_NEEDED = ({"before", "after", "source", "op"}, {"db", "table", "file", "pos"})

_READS = {
    "int": (READ_INT, INT),
    "long": (READ_LONG, INT),
    "boolean": (READ_BOOLEAN, TRUE),
    "float": (READ_FLOAT, FLOAT),
    "double": (READ_DOUBLE, DOUBLE),
    "string": (READ_TEXT, TEXT),
    "bytes": (READ_BYTES, BINARY),
}


class _UnreadableError(Exception):
    """The schema has what the compiled reader does not read."""


@dataclass
class AvroColumn:
    """A column of the row images: its slot, its kind of value (TRUE stands for both booleans), and its members by name
    if that is NESTED."""

    slot: int
    kind: int
    members: dict[str, AvroColumn] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class AvroProgram:
    """A schema that is ready for ``avro_kernel.walk``.

    Attributes:
        steps: (n, 4) of step, slot, arg, more.
        symbols: the text of the symbols of all enums; ``bounds`` has the ends of each in it, from 0 on.
        slots: how many there are.
        columns: of the row images, by name; of a key its fields.
    """

    steps: _I64
    symbols: bytes
    bounds: _I64
    slots: int
    columns: Mapping[str, AvroColumn]


@dataclass
class _Compiler:
    """Turns a schema, parsed by fastavro, into steps. ``named``: records, enums and fixed types met so far."""

    slots: int
    head: Mapping[Path, int] = field(default_factory=dict)
    images: Mapping[Path, int] = field(default_factory=dict)
    columns: dict[str, AvroColumn] = field(default_factory=dict)
    named: dict[str, Any] = field(default_factory=dict)
    steps: list[tuple[int, int, int, int]] = field(default_factory=list)
    symbols: list[bytes] = field(default_factory=list)

    def program(self) -> AvroProgram:
        """What was compiled."""
        ends = np.cumsum([0, *map(len, self.symbols)], dtype=np.int64)
        steps = np.array(self.steps, dtype=np.int64)
        return AvroProgram(steps, b"".join(self.symbols), ends, self.slots, self.columns)

    def add(self, node: Any, path: Path) -> None:  # noqa: ANN401 - JSON
        """Add the steps of a value. Raises _UnreadableError."""
        node = self._resolved(node)
        if not isinstance(node, list):
            self._add_value(node, path, self._slot(node, path))
            return
        values = [self._resolved(branch) for branch in node if branch != "null"]
        if len(values) != 1 or len(node) > 2:
            raise _UnreadableError
        slot = self._slot(values[0], path)
        union = len(self.steps)
        if len(node) == 1:
            self.steps.append((ONLY, slot, 0, 0))
            self._add_value(values[0], path, slot)
            return
        self.steps.append((UNION, slot, 0, 0))
        self._add_value(values[0], path, slot)
        self.steps[union] = (UNION, slot, node.index("null"), len(self.steps))

    def _resolved(self, node: Any) -> Any:  # noqa: ANN401 - JSON
        """The type itself: not its name, and without what is around a primitive one."""
        while isinstance(node, dict) and not isinstance(node["type"], str):
            node = node["type"]
        if isinstance(node, dict) and node["type"] in _READS:
            return node["type"]
        return self.named.get(node, node) if isinstance(node, str) else node

    def _kind(self, node: Any) -> int:  # noqa: ANN401 - JSON
        if isinstance(node, str) and node in _READS:
            return _READS[node][1]
        kinds = {"record": NESTED, "fixed": BINARY, "enum": TEXT}
        if not isinstance(node, dict) or node["type"] not in kinds:
            raise _UnreadableError
        return kinds[node["type"]]

    def _slot(self, node: Any, path: Path) -> int:  # noqa: ANN401 - JSON
        """The slot of a value; one of a column, or of a member of one, is given to the first that asks."""
        if path[:1] not in self.images:
            return self.head.get(path, NO_SLOT)
        of = self.columns
        for name in path[1:-1]:
            of = of[name].members
        if len(path) == 1:
            return NO_SLOT
        column = of.get(path[-1])
        if column is None:
            column = of[path[-1]] = AvroColumn(self.slots, self._kind(node))
            self.slots += 1
        elif column.kind != self._kind(node):
            raise _UnreadableError
        return column.slot

    def _add_value(self, node: Any, path: Path, slot: int) -> None:  # noqa: ANN401 - JSON
        self._kind(node)
        if isinstance(node, str):
            self.steps.append((_READS[node][0], slot, 0, 0))
            return
        self.named[node["name"]] = node
        if node["type"] == "fixed":
            self.steps.append((READ_FIXED, slot, node["size"], 0))
        elif node["type"] == "enum":
            self.steps.append((READ_ENUM, slot, len(self.symbols), len(node["symbols"])))
            self.symbols += [symbol.encode() for symbol in node["symbols"]]
        else:
            self._add_record(node, path, slot)

    def _add_record(self, node: Mapping[str, Any], path: Path, slot: int) -> None:
        names = [member["name"] for member in node["fields"]]
        if not names or len(set(names)) < len(names) or len(path) > _DEEPEST - 1:
            raise _UnreadableError
        if slot != NO_SLOT:
            self.steps.append((BEGIN, slot, 0, 0))
        mark = self.images.get(path)
        if mark is not None:
            self.steps.append((MARK, mark, 0, 0))
        for member in node["fields"]:
            self.add(member["type"], (*path, member["name"]))
        if mark is not None:
            self.steps.append((MARK, mark + 1, 0, 0))


def envelope_program(parsed: Any) -> AvroProgram | None:  # noqa: ANN401 - fastavro's
    """The program of envelopes with both images, of the same columns; None for any other schema.

    ``parsed``: the schema as fastavro has parsed it, without logical types.
    """
    compiler = _Compiler(FIRST_COLUMN, head=_HEAD, images=IMAGES)
    try:
        members = _fields(parsed)
        if not _NEEDED[0] <= members.keys() or not _NEEDED[1] <= _fields(members["source"]).keys():
            return None
        compiler.add(parsed, ())
        images = [_names(compiler, members[name]) for name in ("before", "after")]
    except _UnreadableError:
        return None
    return compiler.program() if images[0] == images[1] else None


def record_program(parsed: Any) -> AvroProgram | None:  # noqa: ANN401 - fastavro's
    """The program of a key: it says whether a message is a valid record. None for a schema that it does not read."""
    compiler = _Compiler(0)
    try:
        _fields(parsed)
        compiler.add(parsed, ())
    except _UnreadableError:
        return None
    return compiler.program()


def _fields(node: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    if not isinstance(node, dict) or node.get("type") != "record":
        raise _UnreadableError
    return {member["name"]: member["type"] for member in node["fields"]}


def _names(compiler: _Compiler, image: Any) -> Sequence[str]:  # noqa: ANN401 - JSON
    """The columns of an image, which may be null."""
    (node,) = [branch for branch in image if branch != "null"] if isinstance(image, list) else [image]
    return list(_fields(compiler.named.get(node, node) if isinstance(node, str) else node))
