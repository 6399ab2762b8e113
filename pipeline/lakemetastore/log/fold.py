"""How the changes of a log become a state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import msgspec

S = TypeVar("S")
E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class VersionedChange(Generic[E]):
    """A change, and the version of the log that it came with. One version may have several changes."""

    version: int
    change: E


class Fold(Protocol[S, E]):
    """Pure functions from changes to a state. A state is never changed in place: readers hold it."""

    def empty(self) -> S:
        """The state of a log without entries."""
        ...

    def apply(self, state: S, changes: Sequence[VersionedChange[E]]) -> S:
        """The state after some changes, in this order. Many come at once when a log is read: copy once for all."""
        ...

    def encode(self, change: E) -> bytes:
        """A change as bytes."""
        ...

    def decode(self, data: bytes) -> E:
        """A change from its bytes. Raises msgspec.MsgspecError for bytes that are none."""
        ...

    def dump(self, state: S) -> bytes:
        """A state as bytes, for a snapshot."""
        ...

    def load(self, data: bytes) -> S:
        """A state from its bytes. Raises msgspec.MsgspecError for bytes that are none."""
        ...


class StructFold(Generic[S, E]):
    """A fold whose changes and states are written by msgspec as MessagePack.

    Args:
        change_type: a tagged Struct or a union of some. An old log stays readable if fields are only added, with
            defaults.
        state_type: a Struct, or what else msgspec writes.
        empty: makes the state of a log without entries.
        apply: see ``Fold.apply``.
    """

    def __init__(
        self,
        change_type: type[E] | object,
        state_type: type[S],
        empty: Callable[[], S],
        apply: Callable[[S, Sequence[VersionedChange[E]]], S],
    ) -> None:
        self._empty, self._apply = empty, apply
        self._encoder = msgspec.msgpack.Encoder()
        self._changes: msgspec.msgpack.Decoder[E] = msgspec.msgpack.Decoder(change_type)
        self._states = msgspec.msgpack.Decoder(state_type)

    def empty(self) -> S:
        """Makes the state of a log without entries."""
        return self._empty()

    def apply(self, state: S, changes: Sequence[VersionedChange[E]]) -> S:
        """Returns the state after some changes, in this order; the one before stays as it is."""
        return self._apply(state, changes)

    def encode(self, change: E) -> bytes:
        """Returns a change as MessagePack."""
        return self._encoder.encode(change)

    def decode(self, data: bytes) -> E:
        """Reads a change from MessagePack. Raises msgspec.MsgspecError for bytes that are none."""
        return self._changes.decode(data)

    def dump(self, state: S) -> bytes:
        """Returns a state as MessagePack, for a snapshot."""
        return self._encoder.encode(state)

    def load(self, data: bytes) -> S:
        """Reads a state from MessagePack. Raises msgspec.MsgspecError for bytes that are none."""
        return self._states.decode(data)
