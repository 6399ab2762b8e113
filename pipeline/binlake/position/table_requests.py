"""What people ask of single tables while the stream runs: ``binlake table pause``, ``resume``, ``resync``, ``forget``.

One small file beside the ledger. Only the commands write it, and the stream only reads it. What the stream has done
about a request is in the ledger, which only the stream writes. So no lock is needed between them, and a lost ledger
does not lose a pause.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from binlake.decode.changes import SourceTable
from binlake.position.state_document import StateDocument
from hudilake.clock import now_ms
from hudilake.errors import TransientError
from hudilake.storage import Storage

FILE = "requests.json"
_DOCUMENT = StateDocument(
    FILE, "the requests about tables", "delete the file, then pause again the tables that shall be paused"
)


@dataclass(frozen=True, slots=True)
class ResyncRequest:
    """A request to fetch a table anew.

    Args:
        id: of the signal to the connector, which its notifications repeat.
        origin: the table at the source.
        prefix: the connector's ``topic.prefix``, which the signal must have as its key.
        order: an ordering value that is at least that of every row stored so far, and less than that of every change
            that the stream has not read yet. Rows that the connector reads because of the signal come just after it,
            and at the end stored rows up to it are deleted.
        place: the binlog place, as an ordering value, before which the connector reads no row of the signal.
        asked_ms: when it was asked, in ms since the epoch.
    """

    id: str
    origin: SourceTable
    prefix: str
    order: int
    place: int
    asked_ms: int


@dataclass(frozen=True, slots=True)
class TableRequest:
    """The newest request about a table. ``asked_ms``: when it was paused or resumed; ``forget_ms``: when it was asked
    that the stream forgets its commits, 0 for never; both in ms since the epoch."""

    paused: bool = False
    asked_ms: int = 0
    resync: ResyncRequest | None = None
    forget_ms: int = 0


NO_REQUEST = TableRequest()
Requests = Mapping[SourceTable, TableRequest]


def load_requests(state: Storage) -> Requests:
    """The requests by lake table; empty if nothing was ever asked. Raises CorruptDataError, StorageError."""

    def parse(fields: dict[str, Any]) -> Requests:
        return {SourceTable(*entry["table"]): _from_json(entry) for entry in fields["tables"]}

    return _DOCUMENT.read(state, parse) or {}


def change_request(state: Storage, table: SourceTable, change: Callable[[TableRequest], TableRequest]) -> TableRequest:
    """Replace the request about one table. Returns the new one.

    Raises TransientError if another command has replaced the file at the same moment, and as ``load_requests``.
    """
    requests = dict(load_requests(state))
    changed = requests[table] = change(requests.get(table, NO_REQUEST))
    document = {"version": _DOCUMENT.version, "tables": [_to_json(name, request) for name, request in requests.items()]}
    state.write(FILE, json.dumps(document, ensure_ascii=False, indent=1).encode())
    if load_requests(state).get(table) != changed:
        raise TransientError(
            "another command has changed the requests at the same moment", do_next="repeat the command", table=table
        )
    return changed


def paused(request: TableRequest) -> TableRequest:
    """The request to pause."""
    return replace(request, paused=True, asked_ms=now_ms())


def resumed(request: TableRequest) -> TableRequest:
    """The request to go on."""
    return replace(request, paused=False, asked_ms=now_ms())


def forgotten(request: TableRequest) -> TableRequest:
    """The request to forget that a table has commits, and to go on."""
    return replace(resumed(request), forget_ms=now_ms())


def _to_json(table: SourceTable, request: TableRequest) -> dict[str, Any]:
    entry: dict[str, Any] = {"table": _names(table), "paused": request.paused, "asked_ms": request.asked_ms}
    if request.forget_ms:
        entry["forget_ms"] = request.forget_ms
    if (resync := request.resync) is not None:
        entry["resync"] = [
            resync.id,
            _names(resync.origin),
            resync.prefix,
            resync.order,
            resync.place,
            resync.asked_ms,
        ]
    return entry


def _from_json(entry: Mapping[str, Any]) -> TableRequest:
    resync = None
    if "resync" in entry:
        name, origin, prefix, order, place, asked_ms = entry["resync"]
        resync = ResyncRequest(str(name), SourceTable(*origin), str(prefix), int(order), int(place), int(asked_ms))
    return TableRequest(bool(entry["paused"]), int(entry["asked_ms"]), resync, int(entry.get("forget_ms", 0)))


def _names(table: SourceTable) -> list[str]:
    return [table.database, table.table]
