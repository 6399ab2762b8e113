"""The stores of the external index: LMDB, and the HBase client against a server that answers as HBase 2.4.17 does.

With BINLAKE_HBASE_REST (``http://host:port``) set, the client talks to that HBase, whose table ``binlake_index`` must
exist.
"""

from __future__ import annotations

import base64
import json
import multiprocessing
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from hudilake.errors import ConfigError
from hudilake.index.stores.base import MAX_KEY_BYTES, KeyValueStore
from hudilake.index.stores.hbase_store import HBaseStore
from hudilake.index.stores.lmdb_store import LmdbStore
from hudilake.index.stores.opening import open_store
from hudilake.policies import ExternalStorePolicy
from hudilake.storage.base import StorageError

ENTRIES = {b"a": b"1", b"\x00\xff/?&": b"\xff\x00", b"x" * MAX_KEY_BYTES: b"long", "é".encode(): b""}


class Answers(BaseHTTPRequestHandler):
    """The calls that the client makes, answered as the real server answered (measured). One table: binlake_index."""

    protocol_version = "HTTP/1.1"
    rows: dict[str, str]

    def do_GET(self) -> None:
        """Some rows by name; 404 if none exists, or if the table does not."""
        asked = [name for kind, name in parse_qsl(urlsplit(self.path).query) if kind == "row"]
        cells = {
            name: [{"column": "aTp2", "timestamp": 1, "$": self.rows[name]}] for name in asked if name in self.rows
        }
        rows = [{"key": base64.b64encode(name.encode()).decode(), "Cell": cell} for name, cell in cells.items()]
        found = bool(rows) and self.path.startswith("/binlake_index/multiget?")
        self._answer(200, json.dumps({"Row": rows}).encode()) if found else self._answer(404, b"Not found\r\n")

    def do_PUT(self) -> None:
        """Rows with one cell each."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.path.startswith("/binlake_index/"):
            return self._answer(404, b"Not found\r\n")
        for row in body["Row"]:
            (cell,) = row["Cell"]
            assert base64.b64decode(cell["column"]) == b"i:v"
            self.rows[base64.b64decode(row["key"]).decode()] = cell["$"]
        return self._answer(200, b"")

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def rest() -> Iterator[str]:
    if real := os.environ.get("BINLAKE_HBASE_REST"):
        yield real
        return
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Rows", (Answers,), {"rows": {}}))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(params=["lmdb", "hbase"])
def store(request: pytest.FixtureRequest, tmp_path: Path, rest: str) -> KeyValueStore:
    return open_store(ExternalStorePolicy(store=request.param, path=str(tmp_path / "store"), url=rest))


def test_what_is_put_is_got(store: KeyValueStore) -> None:
    store.put_many(ENTRIES)
    store.put_many({b"a": b"2"})
    keys = [b"a", b"none", *ENTRIES, b"a"]
    assert store.get_many(keys) == [b"2", None, b"2", *list(ENTRIES.values())[1:], b"2"]
    assert store.get_many([]) == []
    many = {f"k{i}".encode(): f"v{i}".encode() for i in range(2500)}
    store.put_many(many)
    assert store.get_many(list(many)) == list(many.values())


def test_lmdb_grows_and_other_processes_read_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hudilake.index.stores.lmdb_store._FIRST_BYTES", 1 << 16)
    store = LmdbStore(str(tmp_path / "store"))
    entries = {f"k{i}".encode(): b"v" * 100 for i in range(5000)}
    store.put_many(entries)
    assert store.get_many(list(entries)) == list(entries.values())
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(LmdbStore(str(tmp_path / "store")).get_many, ([b"k1", b"k"],)) == [b"v" * 100, None]


def test_a_store_that_cannot_be_used_says_so(tmp_path: Path, rest: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="LMDB cannot open the index"):
        LmdbStore(str(tmp_path / "file")).get_many([b"a"])
    with pytest.raises(StorageError, match="does not answer"):
        HBaseStore("http://127.0.0.1:1", "binlake_index", 2).get_many([b"a"])
    missing = HBaseStore(rest, "no_such_table", 20)
    assert missing.get_many([b"a"]) == [None]
    with pytest.raises(ConfigError, match="HBase has no such table"):
        missing.put_many({b"a": b"b"})
