"""Replies of backends whose databases have other names for clients."""

from __future__ import annotations

from pipeline.metastore.hive.wire import REPLY
from pipeline.metastore.router.name_fields import CATALOG, FULL_NAME, result_names
from pipeline.metastore.router.replies import spliced
from pipeline.metastore.router.requests import split_catalog
from pipeline.metastore.router.rules import Rules
from pipeline.metastore.router.walker import names_in


def names_databases(method: str) -> bool:
    """Whether the method's reply can name databases."""
    fields = result_names(method)
    return fields is not None and fields.any_names


def as_seen(reply: bytes, method: str, backend: str, rules: Rules) -> bytes:
    """A backend's whole reply with the names that clients see. The texts of errors and of views stay as they are."""
    fields = result_names(method)
    if fields is None or reply[3] != REPLY:
        return reply
    start = 12 + int.from_bytes(reply[4:8], "big")
    body = memoryview(reply)[start:]
    changes = []
    for position, length, kind in names_in(body, fields):
        if kind == CATALOG:
            continue
        before, database = split_catalog(bytes(body[position : position + length]).decode())
        name, dot, table = database.partition(".") if kind == FULL_NAME else (database, "", "")
        place = rules.seen_as(backend, name)
        if place is not None and place.seen != name.lower():
            changes.append((position, length, f"{before}{place.seen}{dot}{table}".encode()))
    return spliced(reply, start, changes) if changes else reply
