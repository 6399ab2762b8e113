"""Row images made from others: before images from a row and its changed values, and JSON columns as text."""

from __future__ import annotations

import json
from collections.abc import Collection

import msgspec

from binlake.decode.quarantine import Buffer

_BAD = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_NULL = b"null"


def members(image: Buffer) -> dict[str, msgspec.Raw] | None:
    """The members of an object with raw values; None if it is not an object, or a name may occur twice in it."""
    try:
        raw_members = _MEMBERS(image)
    except _BAD:
        return None
    if bytes(image).count(b'":') == len(raw_members):
        return raw_members
    try:
        pairs = json.loads(bytes(image), object_pairs_hook=list)
    except (ValueError, RecursionError):
        return None
    return raw_members if len(pairs) == len(raw_members) else None


def before_of(row: Buffer, old: Buffer, key: tuple[str, ...], whole: bool) -> Buffer:
    """The before image of an update if it is required (``whole``) or the key changed, else JSON's null.

    If ``old`` is not a valid object, it is returned unchanged and later refused as an image.
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
    """A row whose JSON columns hold documents -> the same row with the documents as text, unchanged byte for byte.

    An image that is not a valid object stays unchanged; the reader refuses it.
    """
    raw_members = members(image)
    if raw_members is None:
        return image
    documents = {name: _text(raw_members[name]) for name in names if name in raw_members}
    return msgspec.json.encode(raw_members | documents)


def _text(document: msgspec.Raw) -> msgspec.Raw:
    text = bytes(document)
    if text == _NULL:
        return document
    try:
        return msgspec.Raw(msgspec.json.encode(text.decode()))
    except UnicodeDecodeError:
        return document
