"""Reads over structs of Thrift's binary protocol without decoding them: finds their end, and names within.

The protocol says no lengths of structs, so the end of an answer is found by its fields. The walker takes bytes as they
arrive and keeps where it is in `Walk`, so an answer of any size passes through in pieces.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hudilake.errors import BadInputError
from lakemetastore.router.name_fields import NameFields
from lakemetastore.router.steps import AT, DEPTH, FOUND, FULL, LEVEL, LEVEL_CHILD, MALFORMED, PASS, VALUE, walk


class MalformedAnswerError(BadInputError):
    """Bytes that are no struct of Thrift's binary protocol."""


_NOTHING = NameFields(np.full((1, 1), -1, dtype=np.int64))


class Walk:
    """A walk over one struct, whose bytes come in pieces.

    ``names``: where names may be; then all bytes must be given as one piece, or positions would mean nothing.
    """

    __slots__ = ("_children", "_found", "_registers", "_rest", "_stack", "done")

    def __init__(self, names: NameFields | None = None) -> None:
        self._children = (names or _NOTHING).children
        self._registers = np.zeros(6, dtype=np.int64)
        self._registers[LEVEL] = 1
        self._stack = np.zeros((2 * DEPTH, 5), dtype=np.int64)
        self._stack[0, LEVEL_CHILD] = 0 if names else -1
        self._found = np.empty((8, 3), dtype=np.int64)
        self._rest = b""
        self.done = False

    def take(self, piece: bytes | memoryview) -> int:
        """Go over the next piece.

        Returns:
            How many bytes of the piece belong to the struct; all of them while it is not ``done``.

        Raises:
            MalformedAnswerError: the bytes are no struct.
        """
        kept = len(self._rest)
        data = self._rest + bytes(piece) if kept else piece
        offset = self._step(np.frombuffer(data, dtype=np.uint8), 0)
        self.done = self._registers[LEVEL] == 0 and not self._registers[VALUE] and not self._registers[PASS]
        if self.done:
            return offset - kept
        self._rest = bytes(data[offset:])
        return len(piece)

    def _step(self, data: np.ndarray, at: int) -> int:
        end = int(walk(data, at, self._registers, self._stack, self._children, self._found))
        while end == FULL:
            self._found = np.concatenate([self._found, np.empty_like(self._found)])
            end = int(walk(data, int(self._registers[AT]), *self._state()))
        if end == MALFORMED:
            raise MalformedAnswerError(
                "The bytes are no struct of Thrift's binary protocol",
                do_next="look at what answers at the address; TLS and SASL are not spoken to backends",
            )
        return end

    def _state(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self._registers, self._stack, self._children, self._found

    @property
    def found(self) -> Sequence[Sequence[int]]:
        """The names so far: position of the text in the piece, its length in bytes, what it names (DATABASE...)."""
        rows: list[list[int]] = self._found[: self._registers[FOUND]].tolist()
        return rows


def names_in(body: bytes | memoryview, fields: NameFields) -> Sequence[Sequence[int]]:
    """Names in a whole struct: see `Walk.found`."""
    whole = Walk(fields)
    whole.take(body)
    return whole.found
