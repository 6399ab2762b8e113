"""The quarantined records of one row, found by their Kafka key or their row images, as far as these can be read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from binlake.load.replay.quarantine_records import QuarantineEntry, QuarantineSelection, held_records
from binlake.proof.history.keys import RowKey
from binlake.settings import Settings
from binlake.tables.seal import Seal
from hudilake.format.definition.column_names import lake_name
from hudilake.storage import Storage


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
        images = [image for image in _images(held) if _names(image, key)]
        if any(_matches(image, key) for image in images):
            matches.append(held)
        unknown += not images
    return matches, unknown


def _images(held: QuarantineEntry) -> Iterator[Mapping[str, Any]]:
    """The objects in a record that may name the row: its key, and the row images of any format."""
    for payload in (held.key, held.value):
        document = _object(payload)
        if document is None:
            continue
        inner = document.get("payload") if document.keys() == {"schema", "payload"} else document
        if not isinstance(inner, dict):
            continue
        yield inner
        data = inner.get("data")
        for image in (inner.get("before"), inner.get("after"), *(data if isinstance(data, list) else [data])):
            if isinstance(image, dict):
                yield image


def _object(payload: bytes | None) -> dict[str, Any] | None:
    try:
        document = json.loads(payload) if payload is not None else None
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _names(image: Mapping[str, Any], key: RowKey) -> bool:
    return {name.lower() for name in key.values} <= {lake_name(name).lower() for name in image}


def _matches(image: Mapping[str, Any], key: RowKey) -> bool:
    values = {lake_name(name).lower(): value for name, value in image.items()}
    return all(str(values[name.lower()]) == str(value) for name, value in key.values.items())
