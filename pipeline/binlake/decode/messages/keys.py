"""Kafka keys: the names of the key columns, and key values for deletes without a before image."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import msgspec

from binlake.decode.messages.frames import Frames
from binlake.decode.quarantine import Buffer

KeyFields = tuple[str, ...]
_BAD = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
_ANY = msgspec.json.Decoder().decode
_ROUTING_PREFIX = "__dbz__"
_FRAME = ("schema", "payload")
#: Characters that the typed decoder does not accept in a name.
_UNUSABLE = re.compile(r'["\\\x00-\x1f]')


@dataclass(frozen=True)
class Keys:
    """The keys of a chunk: payloads (None for a null key), and the field names: one tuple for all, or one for each key.

    The names are None for a null key, or a key that is not a JSON object.
    """

    payloads: Sequence[Buffer | None]
    fields: KeyFields | list[KeyFields | None] | None

    def fields_at(self, at: int) -> KeyFields | None:
        """The field names of one key."""
        return self.fields[at] if isinstance(self.fields, list) else self.fields


def read_keys(keys: Sequence[bytes | None]) -> Keys:
    """Parse all keys of a chunk; the names are decoded once where all keys have the same ones."""
    first = next((key for key in keys if key is not None), None)
    if first is None:
        return Keys(list(keys), None)
    names = _names(first)
    if names is not None and _all_have(names, keys):
        return Keys(list(keys), names)
    frames = Frames()
    payloads = [None if key is None else frames.open(key)[0] for key in keys]
    names = next((_names(payload) for payload in payloads if payload is not None), None)
    if names is not None and _all_have(names, payloads):
        return Keys(payloads, names)
    return Keys(payloads, [None if payload is None else _names(payload) for payload in payloads])


def _all_have(names: KeyFields, payloads: Sequence[Buffer | None]) -> bool:
    if names == _FRAME or None in payloads or any(_UNUSABLE.search(name) for name in names):
        return False
    try:
        deque(map(_exact_decoder(names), cast("Sequence[Buffer]", payloads)), maxlen=0)
    except _BAD:
        return False
    return True


@lru_cache(maxsize=256)
def _exact_decoder(names: KeyFields) -> Callable[[Buffer], Any]:
    """A decoder for an object of exactly these names, in any order."""
    fields = [(f"f{i}", msgspec.Raw) for i in range(len(names))]
    renamed = {f"f{i}": name for i, name in enumerate(names)}
    kind = msgspec.defstruct("KeyFields", fields, rename=renamed, forbid_unknown_fields=True, gc=False)
    return msgspec.json.Decoder(kind).decode


def _names(payload: Buffer) -> KeyFields | None:
    try:
        key = _ANY(payload)
    except _BAD:
        return None
    return key_fields(key) if isinstance(key, dict) else None


def key_fields(names: Iterable[str]) -> KeyFields | None:
    """The names of the key columns among the members of a key; None if there are none."""
    return tuple(name for name in names if not name.startswith(_ROUTING_PREFIX)) or None


def is_frame(names: Iterable[str]) -> bool:
    """Whether a key of these members is one with its schema."""
    return set(names) == set(_FRAME)
