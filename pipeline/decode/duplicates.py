"""Envelopes with a member twice: the typed decoder takes the last one silently, so they are looked for in bulk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pipeline.decode.quarantine import Buffer

#: The tails of member names, of 4 or 8 bytes so that they are compared as integers. A JSON string cannot hold a bare
#: quote, so outside of names they occur nowhere.
_MEMBERS = (b'"after":', b'before":', b'source":', b'op":')
#: Messages looked at together: about as much as stays in the processor's cache.
_AT_ONCE = 2000


def with_duplicate_members(payloads: Sequence[Buffer], envelopes: Sequence[Any]) -> list[int]:
    """Which payloads name ``op``, ``source``, ``before`` or ``after`` more than once outside their row images.

    ``envelopes``: the payloads decoded, of which ``before`` and ``after`` are raw.
    """
    found = []
    for start in range(0, len(payloads), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        found += [start + i for i in _in_part(payloads[part], envelopes[part])]
    return found


def _in_part(payloads: Sequence[Buffer], envelopes: Sequence[Any]) -> list[int]:
    whole = b"".join(payloads)
    odd = [member for member in _MEMBERS if _count(whole, member) != len(envelopes)]
    if odd:
        # a column can have such a name: what the images hold is no duplicate
        images = b" ".join([image for envelope in envelopes for image in (envelope.before, envelope.after)])
        odd = [member for member in odd if _count(whole, member) - _count(images, member) != len(envelopes)]
    return [i for i, payload in enumerate(payloads) if odd and _has_duplicate(payload, envelopes[i], odd)]


def _has_duplicate(payload: Buffer, envelope: Any, members: list[bytes]) -> bool:  # noqa: ANN401 - envelope types
    text, images = bytes(payload), bytes(envelope.before) + b" " + bytes(envelope.after)
    return any(text.count(member) - images.count(member) > 1 for member in members)


def _count(text: bytes, pattern: bytes) -> int:
    """``text.count(pattern)`` for patterns of 4 or 8 bytes, twice as fast."""
    width = len(pattern)
    kind = np.dtype(f"<u{width}")
    wanted = np.frombuffer(pattern, kind)[0]
    return sum(
        int(np.count_nonzero(np.frombuffer(text, kind, (len(text) - shift) // width, shift) == wanted))
        for shift in range(min(width, len(text)))
    )
