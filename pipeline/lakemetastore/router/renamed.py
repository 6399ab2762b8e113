"""Replies of backends whose databases have other names for clients."""

from __future__ import annotations

from lakemetastore.hive.wire import REPLY
from lakemetastore.router.name_fields import CATALOG, FULL_NAME, result_names
from lakemetastore.router.replies import body_start, spliced
from lakemetastore.router.requests import split_catalog
from lakemetastore.router.rules import Rules
from lakemetastore.router.walker import names_in


def names_databases(method: str) -> bool:
    """Whether the method's reply can name databases."""
    fields = result_names(method)
    return fields is not None and fields.any_names


def as_seen(reply: bytes, method: str, backend: str, rules: Rules) -> bytes:
    """A backend's whole reply with the names that clients see. The texts of errors and of views stay as they are."""
    fields = result_names(method)
    if fields is None or reply[3] != REPLY:
        return reply
    start = body_start(reply)
    body = memoryview(reply)[start:]
    changes = []
    known: dict[tuple[bytes, int], bytes | None] = {}
    for position, length, kind in names_in(body, fields):
        text = bytes(body[position : position + length])
        if (text, kind) not in known:
            known[text, kind] = _seen(text, kind, backend, rules)
        changed = known[text, kind]
        if changed is not None:
            changes.append((position, length, changed))
    return spliced(reply, start, changes) if changes else reply


def _seen(text: bytes, kind: int, backend: str, rules: Rules) -> bytes | None:
    """What stands for a name; None if it stays."""
    if kind == CATALOG:
        return None
    before, database = split_catalog(text.decode(errors="surrogateescape"))
    name, dot, table = database.partition(".") if kind == FULL_NAME else (database, "", "")
    place = rules.seen_as(backend, name)
    if place is None or place.seen == name.lower():
        return None
    return f"{before}{place.seen}{dot}{table}".encode(errors="surrogateescape")
