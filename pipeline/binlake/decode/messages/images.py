"""Row images made from others: before images from a row and its changed values, and JSON columns as text."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Set

import msgspec
import numpy as np
import pyarrow as pa

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


#: In place of the before image of an update whose old values are not all known.
UNKNOWN = b'"unknown"'


def before_of(row: Buffer, old: Buffer, key: tuple[str, ...], whole: bool, nulls: bool | None = True) -> Buffer:
    """The before image of an update if it is required (``whole``) or the key changed, else JSON's null.

    If ``old`` is not a valid object, it is returned unchanged and later refused as an image. UNKNOWN where the whole
    image is required and ``old`` may lack a null.

    Args:
        row: the row after the update.
        old: the old values of the columns that it changed.
        key: the columns of the key.
        whole: whether the values of all columns are needed.
        nulls: whether nulls are members of ``row`` and ``old``; None if that is not known.
    """
    if bytes(old) == _NULL:
        return row if whole else _NULL
    changed = members(old)
    if changed is None:
        return old
    if not (whole or any(name in changed for name in key)):
        return _NULL
    now = members(row)
    if now is None:
        return _NULL
    if whole and may_hide_null(now.keys(), changed.keys(), key, nulls):
        return UNKNOWN
    return msgspec.json.encode(now | changed)


def may_hide_null(row: Set[str], old: Set[str], key: Collection[str], nulls: bool | None) -> bool:
    """Whether a column of an update may have been null before, though ``old`` does not name it.

    Args:
        row: the names of the members of the row after it.
        old: those of its old values.
        key: the columns of the key, which are never null.
        nulls: whether nulls are members; None if that is not known. Then an ``old`` without members, or with one that
            the row lacks, shows that they are not.
    """
    if nulls is None:
        return not old or not old <= row
    return not nulls and not row <= old | set(key)


def lacks_column(row: Buffer, before: Buffer, columns: Set[str]) -> bool:
    """Whether a before image that was made of ``row`` and old values shows that nulls were left out: a column is in
    neither. ``columns``: those of the table."""
    if bytes(row) == bytes(before):
        return False  # nothing has changed
    named = members(before)
    return named is not None and not columns <= named.keys()


def says_nulls(rows: pa.Table, image_of: Callable[[int], Buffer]) -> bool | None:
    """Whether row images have the columns that are null in them; None if they do not tell. Of each column the first and
    the last null are looked at, and one that is left out outweighs others.

    Args:
        rows: the rows that were read of the images; a column that no image has is null.
        image_of: the image of a row, by its index.
    """
    places = set[int]()
    for column in rows.columns:
        if column.null_count:
            null = np.flatnonzero(column.is_null().to_numpy())
            places |= {int(null[0]), int(null[-1])}
    says = None
    for place in sorted(places):
        named = members(image_of(place))
        if named is not None:
            if not named.keys() >= {*rows.column_names}:
                return False
            says = says or any(bytes(value) == _NULL for value in named.values()) or None
    return says


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
