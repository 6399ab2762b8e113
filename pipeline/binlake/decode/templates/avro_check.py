"""Tells whether the bytes of an Avro record are valid by their writer's schema, and what is wrong with them.

fastavro takes bytes that are no value: any boolean but 0 as true, the number -1 of a symbol as the last one, half of a
number that is too long. So each record that it reads is checked first. Valid is what the Avro specification ("Binary
Encoding") allows, which is more than one form of some values: blocks of arrays and maps with their size and without,
and numbers with more bytes than they need. Where the specification is silent, Java's reader decides: an int has at most
5 bytes (the numbers of symbols and of branches are ints), a long at most 10. Three things that Java's reader takes are
refused, since a value would be lost without a sign: bits of a number beyond its type, a block that does not end where
its size says, and a key that a map has twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from binlake.decode.quarantine import Fault, Reason

#: Steps: (step, arg). The first three begin with an int, the next four with a long. FIXED: ``arg`` bytes. ENUM: one of
#: ``arg`` symbols. UNION: of ``arg`` branches; so many JUMP follow. JUMP: go on at step ``arg``. ENTER: an array or map
#: begins. BLOCK: the next item; behind the last one go on at step ``arg``. KEY: a text that is the key of an item.
INT, ENUM, UNION, LONG, TEXT, KEY, BYTES, BLOCK, BOOLEAN, FLOAT, DOUBLE, FIXED, JUMP, ENTER = range(14)

#: What the check says of a record. TWICE is not among the answers of the compiled loop.
SOUND, NOT_FINITE, CUT, NO_INT, NO_LONG, NO_BOOLEAN, NO_SYMBOL, NO_BRANCH = range(8)
NO_LENGTH, NO_UTF8, NO_COUNT, NO_SIZE, LONGER, TWICE = range(8, 14)
_WORDS = {
    NOT_FINITE: "a number that is not finite",
    CUT: "the message ends before the value does",
    NO_INT: "no number of 32 bits in at most 5 bytes",
    NO_LONG: "no number of 64 bits in at most 10 bytes",
    NO_BOOLEAN: "a boolean is neither 0 nor 1",
    NO_SYMBOL: "the enum has no symbol of this number",
    NO_BRANCH: "the union has no branch of this number",
    NO_LENGTH: "the length is negative",
    NO_UTF8: "the text is not UTF-8",
    NO_COUNT: "more items than bytes that are left",
    NO_SIZE: "the block does not end where its size says",
    LONGER: "bytes are left over behind the record",
    TWICE: "the map has a key twice",
}
_REASONS = {NOT_FINITE: Reason.NAN, TWICE: Reason.DUPLICATE_KEY}
_READS = {
    "int": INT,
    "long": LONG,
    "boolean": BOOLEAN,
    "float": FLOAT,
    "double": DOUBLE,
    "string": TEXT,
    "bytes": BYTES,
}
#: Named types are written out wherever they are used; a schema that becomes longer than this is refused.
_MOST_STEPS = 200_000


@dataclass(frozen=True, eq=False)
class AvroCheck:
    """A schema that is ready for ``avro_check_kernel.check``.

    Attributes:
        steps: (n, 2) of step, arg.
        paths: the value of each step, as names with points between.
        depth: how many arrays and maps are in one another at most.
        maps: whether there is any map.
    """

    steps: npt.NDArray[np.int64]
    paths: list[str]
    depth: int
    maps: bool

    def fault(self, value: bytes, start: int, named: str) -> Fault | None:
        """What is wrong with the record from ``start`` to the end of a value. ``named``: the schema, for messages."""
        from binlake.decode.templates.avro_check_kernel import answer  # here: numba

        verdict, place, step, keys = answer(value, start, self.steps, self.depth, keys=self.maps)
        if verdict == SOUND:
            spans = [
                (number, value[begin : begin + size])
                for number, begin, size in (keys.tolist() if len(keys) > 1 else ())
            ]
            if len(set(spans)) == len(spans):
                return None
            verdict = TWICE
        path = self.paths[step] if step < len(self.paths) else ""
        where = f" in {path}" if path else ""
        detail = f"no record of {named}: {_WORDS[verdict]}{where}, byte {place}"
        return Fault(_REASONS.get(verdict, Reason.MALFORMED_AVRO), detail[:300])


@dataclass
class _CheckCompiler:
    """Turns a schema, parsed by fastavro, into steps. ``named``: the schema's named types met so far."""

    steps: list[tuple[int, int]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    named: dict[str, Any] = field(default_factory=dict)
    depth: int = 0
    maps: bool = False

    def add(self, node: Any, path: str, depth: int = 0) -> None:  # noqa: ANN401 - JSON
        """Add the steps of a value. ``depth``: how many arrays and maps it is in. Raises ValueError."""
        if isinstance(node, str):
            node = self.named.get(node, {"type": node})
        if isinstance(node, list):
            self._add_union(node, path, depth)
            return
        kind = node["type"]
        if not isinstance(kind, str):
            self.add(kind, path, depth)
            return
        if "name" in node:
            self.named[node["name"]] = node
        if kind in ("record", "error"):
            for member in node["fields"]:
                self.add(member["type"], f"{path}.{member['name']}" if path else member["name"], depth)
        elif kind in ("array", "map"):
            self._add_blocks(node, path, depth + 1)
        elif kind == "enum":
            self._step(ENUM, len(node["symbols"]), path)
        elif kind == "fixed":
            self._step(FIXED, node["size"], path)
        elif kind in _READS:
            self._step(_READS[kind], 0, path)
        elif kind in self.named:
            self.add(kind, path, depth)
        elif kind != "null":
            raise ValueError(f"{kind} is no type")

    def _step(self, step: int, arg: int, path: str) -> int:
        if len(self.steps) >= _MOST_STEPS:
            raise ValueError(f"the schema has more than {_MOST_STEPS} values")
        self.steps.append((step, arg))
        self.paths.append(path)
        return len(self.steps) - 1

    def _add_union(self, branches: list[Any], path: str, depth: int) -> None:
        self._step(UNION, len(branches), path)
        jumps = [self._step(JUMP, 0, path) for _ in branches]
        ends = []
        for jump, branch in zip(jumps, branches, strict=True):
            self.steps[jump] = (JUMP, len(self.steps))
            self.add(branch, path, depth)
            ends.append(self._step(JUMP, 0, path))
        for end in ends:
            self.steps[end] = (JUMP, len(self.steps))

    def _add_blocks(self, node: Any, path: str, depth: int) -> None:  # noqa: ANN401 - JSON
        self.depth = max(self.depth, depth)
        self._step(ENTER, 0, path)
        block = self._step(BLOCK, 0, path)
        if node["type"] == "map":
            self.maps = True
            self._step(KEY, 0, path)
        self.add(node["items"] if node["type"] == "array" else node["values"], f"{path}[]", depth)
        self._step(JUMP, block, path)
        self.steps[block] = (BLOCK, len(self.steps))


def avro_check(parsed: Any) -> AvroCheck:  # noqa: ANN401 - fastavro's
    """The check of a schema's records. ``parsed``: by fastavro. No record is inside itself, and items of arrays take
    bytes (``check_bounded``). Raises ValueError for a schema that is too large."""
    compiler = _CheckCompiler()
    compiler.add(parsed, "")
    steps = np.array(compiler.steps, dtype=np.int64).reshape(-1, 2)
    return AvroCheck(steps, compiler.paths, compiler.depth, compiler.maps)
