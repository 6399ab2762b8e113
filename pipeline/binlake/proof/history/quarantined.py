"""The quarantined records of one row, found by their Kafka key or their row images, as far as these can be read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from binlake.load.replay.quarantine_records import QuarantineEntry, QuarantineSelection, held_records
from binlake.proof.history.keys import RowKey
from binlake.settings import Settings
from binlake.tables.seal import Seal
from hudilake.format.definition.column_names import lake_name
from hudilake.storage import Storage

#: Members of each message of Canal and Maxwell that has rows.
_ROW_MESSAGE = frozenset({"database", "table", "type", "data"})
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")


def quarantined_records(
    settings: Settings, root: Storage, table: str, key: RowKey
) -> tuple[list[QuarantineEntry], int]:
    """The waiting and replayed records of a row, and the number of the table's records that cannot be matched.

    Args:
        settings: of the stream.
        root: the lake's root.
        table: ``database.table``.
        key: the row.

    Raises ConfigError if the records have another seal, CorruptDataError, StorageError.
    """
    selection = QuarantineSelection(tables=frozenset({table}), replayed=True)
    seal = Seal(settings.quarantine.secret())
    matches, unknown = [], 0
    for held in held_records(root.sub(settings.quarantine_path), selection, seal, payload=True):
        of_row = is_of_row(held.key, held.value, key)
        if of_row:
            matches.append(held)
        unknown += of_row is None
    return matches, unknown


def is_of_row(record_key: bytes | None, value: bytes | None, key: RowKey) -> bool | None:
    """Whether a record of any format has an image with a row's key; None if its images do not determine it: no image
    names all columns of the key, a connector may write a value of the key's type in other words, or records name the
    row by other columns or values."""
    if not key.is_said:
        return None
    said = [_has(image, key) for image in _images(record_key, value) if _names(image, key)]
    if any(said):
        return True
    return None if not said or None in said else False


def names_another(record_key: bytes | None, value: bytes | None, key: RowKey) -> bool:
    """Whether a record of any format has an image that is not certainly the one of a row: it says something of another
    row, too."""
    return any(not _has(image, key) for image in _images(record_key, value) if _names(image, key))


def _images(record_key: bytes | None, value: bytes | None) -> Iterator[Mapping[str, Any]]:
    """The objects in a record that may name the row: its key, and the row images of any format."""
    for payload in (record_key, value):
        document = _object(payload)
        if document is None:
            continue
        inner = document.get("payload") if document.keys() == {"schema", "payload"} else document
        if not isinstance(inner, dict):
            continue
        if not _is_envelope(inner):
            yield inner
        data, old = (one if isinstance(one, list) else [one] for one in (inner.get("data"), inner.get("old")))
        images = [one for one in (inner.get("before"), inner.get("after"), *data) if isinstance(one, dict)]
        yield from images
        for now, was in zip(data, old, strict=False):
            if isinstance(now, dict) and isinstance(was, dict):
                yield {**now, **was}


def _is_envelope(document: Mapping[str, Any]) -> bool:
    """Whether a document is a message about rows, whose own members are no columns: Canal's have an ``id``."""
    return document.keys() >= _ROW_MESSAGE or ("op" in document and not document.keys().isdisjoint(("before", "after")))


def _object(payload: bytes | None) -> dict[str, Any] | None:
    try:
        document = json.loads(payload) if payload is not None else None
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _names(image: Mapping[str, Any], key: RowKey) -> bool:
    return {name.lower() for name in key.values} <= {lake_name(name).lower() for name in image}


def _has(image: Mapping[str, Any], key: RowKey) -> bool | None:
    """Whether an image has the key's values; None if a value that differs may be the same in other words."""
    values = {lake_name(name).lower(): value for name, value in image.items()}
    pairs = [(values[name.lower()], value) for name, value in key.values.items()]
    if all(str(there) == str(value) for there, value in pairs):
        return True
    return False if any(_differ(there, value) for there, value in pairs) else None


def _differ(there: object, value: object) -> bool:
    """Whether two unlike values are certainly no spellings of one: integers, or texts."""
    if isinstance(value, bool) or isinstance(there, bool) or str(there) == str(value):
        return False
    if isinstance(value, int):
        return isinstance(there, int) or (isinstance(there, str) and _INTEGER.fullmatch(there) is not None)
    return isinstance(value, str) and isinstance(there, str)
