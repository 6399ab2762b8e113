"""Row images made of others: the before image from a row and what changed in it, and JSON columns as text."""

from __future__ import annotations

import json
from collections.abc import Collection

import msgspec

from pipeline.decode.quarantine import Buffer

_BAD = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_NULL = b"null"


def members(image: Buffer) -> dict[str, msgspec.Raw] | None:
    """The members of an object, their values as they stand; None if it is none, or a name might occur twice in it."""
    try:
        found = _MEMBERS(image)
    except _BAD:
        return None
    if bytes(image).count(b'":') == len(found):
        return found
    try:
        pairs = json.loads(bytes(image), object_pairs_hook=list)
    except (ValueError, RecursionError):
        return None
    return found if len(pairs) == len(found) else None


def before_of(row: Buffer, old: Buffer, key: tuple[str, ...], whole: bool) -> Buffer:
    """The before image of an update where it is asked for (``whole``) or its key changed, else JSON's null.

    What changed may be no sound object: it comes back as it is then, and is refused as an image.
    """
    if bytes(old) == _NULL:
        return row if whole else _NULL
    changed = members(old)
    if changed is None:
        return old
    if not (whole or any(name in changed for name in key)):
        return _NULL
    now = members(row)
    return _NULL if now is None else msgspec.json.encode(now | changed)


def with_json_as_text(image: Buffer, names: Collection[str]) -> Buffer:
    """A row whose JSON columns hold documents -> the same with the documents as text, letter for letter.

    What is no sound object stays as it is, for the reader to refuse.
    """
    found = members(image)
    if found is None:
        return image
    documents = {name: _text(found[name]) for name in names if name in found}
    return msgspec.json.encode(found | documents)


def _text(document: msgspec.Raw) -> msgspec.Raw:
    text = bytes(document)
    if text == _NULL:
        return document
    try:
        return msgspec.Raw(msgspec.json.encode(text.decode()))
    except UnicodeDecodeError:
        return document
