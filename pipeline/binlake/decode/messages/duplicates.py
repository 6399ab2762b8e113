"""Finds envelopes with a duplicate member, in bulk: the typed decoder takes the last one silently."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from binlake.decode.quarantine import Buffer

#: The ends of member names, of 4 or 8 bytes so that they are compared as integers. A JSON string cannot contain an
#: unescaped quote, so they occur in names only.
_MEMBERS = {b'"after":': 1, b'before":': 1, b'source":': 1, b'op":': 1}
#: Parts of those members at successive byte offsets, four bytes each, as integers in native byte order. Wherever a
#: member is in a text, one of its parts is at a multiple of four.
_PARTS = tuple(
    tuple(np.frombuffer(part, np.uint32)[0] for part in parts)
    for parts in (
        (b',"af', b'{"af', b'"aft', b"afte", b"fter"),
        (b'"bef', b"befo", b"efor", b"fore"),
        (b'"sou', b"sour", b"ourc", b"urce"),
    )
)
#: Messages examined together: about as much as fits into the processor's cache.
_AT_ONCE = 2000
_ODD = (b" :", b"\t:", b"\n:", b"\r:", b"\\u")


Images = Callable[[Any], Iterable[Buffer]]


def _of_envelope(envelope: Any) -> Iterable[Buffer]:  # noqa: ANN401 - one of the envelope types
    return envelope.before, envelope.after


def with_duplicate_members(
    payloads: Sequence[Buffer],
    messages: Sequence[Any],
    members: Mapping[bytes, int] = _MEMBERS,
    images: Images = _of_envelope,
) -> list[int]:
    """Indices of payloads that name one of ``members`` more often than its count, outside their row images.

    ``messages``: the decoded payloads. ``images`` gives their raw parts that may contain such names.
    """
    duplicates = []
    for start in range(0, len(payloads), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        duplicates += [start + i for i in _in_part(payloads[part], messages[part], members, images)]
    return duplicates


def _in_part(
    payloads: Sequence[Buffer], messages: Sequence[Any], members: Mapping[bytes, int], images: Images
) -> list[int]:
    whole = b"".join(payloads)
    if _is_odd(whole):  # one member that is not counted would hide one that is counted twice
        names = {member.strip(b'":').decode() for member in members}
        return [
            i
            for i, payload in enumerate(payloads)
            if _has_duplicate(payload, messages[i], members, images)
            or (_is_odd(payload) and _names_twice(payload, names))
        ]
    if members is _MEMBERS and _surely_once_each(whole, len(messages)):
        return []
    odd = {member: n for member, n in members.items() if _count(whole, member) != n * len(messages)}
    if odd:
        # a column can have such a name: occurrences inside the images are not duplicates
        inner = b" ".join([image for message in messages for image in images(message)])
        odd = {m: n for m, n in odd.items() if _count(whole, m) - _count(inner, m) != n * len(messages)}
    return [i for i, payload in enumerate(payloads) if odd and _has_duplicate(payload, messages[i], odd, images)]


def _is_odd(text: Buffer) -> bool:
    """Whether a member may be spelled otherwise than ``"name":``, by a blank before the colon or an escape."""
    text = bytes(text)
    return any(sign in text for sign in _ODD)


def _names_twice(payload: Buffer, names: Collection[str]) -> bool:
    """Whether an object of a message has two members of one of these names; True too if the message is no JSON."""

    repeated = False

    def look(pairs: list[tuple[str, Any]]) -> None:
        nonlocal repeated
        named = [name for name, _ in pairs if name in names]
        repeated = repeated or len(set(named)) < len(named)

    try:
        json.loads(bytes(payload), object_pairs_hook=look)
    except (ValueError, RecursionError):
        return True
    return repeated


def _surely_once_each(whole: bytes, count: int) -> bool:
    """Whether ``count`` envelopes, none without any of the members, contain ``count`` of each.

    A part of a member can also occur elsewhere (``before`` in a text), so False proves nothing. This takes half the
    time of counting the members themselves.
    """
    words = np.frombuffer(whole, np.uint32, len(whole) // 4)
    if any(sum(int(np.count_nonzero(words == part)) for part in parts) != count for parts in _PARTS):
        return False
    return _count(whole, b'op":') == count


def _has_duplicate(payload: Buffer, message: Any, members: Mapping[bytes, int], images: Images) -> bool:  # noqa: ANN401
    text, inner = bytes(payload), b" ".join(images(message))
    return any(text.count(member) - inner.count(member) > n for member, n in members.items())


def _count(text: bytes, pattern: bytes) -> int:
    """``text.count(pattern)``, for patterns of 4 or 8 bytes twice as fast."""
    width = len(pattern)
    if width not in (4, 8):
        return text.count(pattern)
    kind = np.dtype(f"<u{width}")
    wanted = np.frombuffer(pattern, kind)[0]
    return sum(
        int(np.count_nonzero(np.frombuffer(text, kind, (len(text) - shift) // width, shift) == wanted))
        for shift in range(min(width, len(text)))
    )
