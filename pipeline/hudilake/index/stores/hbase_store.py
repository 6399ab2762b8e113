"""Index entries in HBase, through its REST server (``hbase rest start``).

The row of a key is its SHA-256, so that rows spread over all regions; the value is one cell, ``i:v``.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any, Final

from hudilake.errors import ConfigError
from hudilake.storage.base import StorageError

COLUMN: Final = "i:v"
#: Rows of a request: the names of the rows stand in its address, which the server takes up to 64 KiB.
_ROWS_READ: Final = 500
_ROWS_WRITTEN: Final = 2000
_JSON: Final = {"Accept": "application/json", "Content-Type": "application/json"}


class HBaseStore:
    """A table of HBase (see ``base.KeyValueStore``). Not for use from several threads at once.

    Args:
        url: of the REST server.
        table: which must exist and have the column family ``i``.
        timeout_s: how long a request may take, in seconds.
    """

    def __init__(self, url: str, table: str, timeout_s: float) -> None:
        self._url, self._table, self._timeout = url.rstrip("/"), table, timeout_s
        self._connection: http.client.HTTPConnection | None = None

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Returns the values of n keys in their order, None for a key without one; a missing table has no entries."""
        values_by_row: dict[str, bytes] = {}
        rows = [_row(key) for key in keys]
        for begin in range(0, len(rows), _ROWS_READ):
            query = "&".join(f"row={row}" for row in dict.fromkeys(rows[begin : begin + _ROWS_READ]))
            body = self._ask("GET", f"{self._table}/multiget?{query}")
            for row in json.loads(body).get("Row", []) if body else []:
                cells = {_text(cell["column"]): cell["$"] for cell in row["Cell"]}
                values_by_row[_text(row["key"])] = base64.b64decode(cells[COLUMN])
        return [values_by_row.get(row) for row in rows]

    def put_many(self, entries: Mapping[bytes, bytes]) -> None:
        """As ``KeyValueStore.put_many``. Raises ConfigError if the table does not exist."""
        rows = [
            {"key": _base64(_row(key).encode()), "Cell": [{"column": _base64(COLUMN.encode()), "$": _base64(value)}]}
            for key, value in entries.items()
        ]
        for begin in range(0, len(rows), _ROWS_WRITTEN):
            self._ask("PUT", f"{self._table}/rows", json.dumps({"Row": rows[begin : begin + _ROWS_WRITTEN]}).encode())

    def _ask(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """The answer's body; empty if no row is found."""
        address = urllib.parse.urlsplit(f"{self._url}/{path}")
        target = address.path + (f"?{address.query}" if address.query else "")
        for is_last in (self._connection is None, True):
            try:
                connection = self._connected(address)
                connection.request(method, target, body, _JSON)
                answer = connection.getresponse()
                status, content = answer.status, answer.read()
                break
            except (OSError, http.client.HTTPException) as error:
                self._connection = None  # a server ends connections that were idle
                if is_last:
                    raise self._failed(f"does not answer: {error}") from error
        if status == http.HTTPStatus.NOT_FOUND and method == "GET":
            return b""  # also if the table does not exist (measured, HBase 2.4.17)
        if status == http.HTTPStatus.NOT_FOUND:
            raise ConfigError(
                "HBase has no such table",
                do_next=f"create it in the HBase shell: create '{self._table}', 'i'",
                url=self._url,
                table=self._table,
            )
        if status != http.HTTPStatus.OK:
            raise self._failed(f"answers {status}")
        return content

    def _connected(self, address: urllib.parse.SplitResult) -> http.client.HTTPConnection:
        if self._connection is None:
            kind: Any = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
            self._connection = kind(address.hostname, address.port, timeout=self._timeout)
        assert self._connection is not None
        return self._connection

    def _failed(self, what: str) -> StorageError:
        return StorageError(
            f"HBase's REST server {what}", do_next="look at the server; the batch is tried again", url=self._url
        )


def _row(key: bytes) -> str:
    return hashlib.sha256(key).hexdigest()


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _text(data: str) -> str:
    return base64.b64decode(data).decode()
