"""A client of the embedded HBase: one long-lived Java process that carries out requests, a line each."""

from __future__ import annotations

import base64
import json
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal, NamedTuple, Self, cast

from binlake.hbase.settings.families import FamilyRule
from embedded.hbase import EmbeddedHBase, java
from embedded.hbase_statements import MarkerKind, Statement, as_json
from hudilake.errors import TransientError, UnsupportedError

CellKind = Literal["Put"] | MarkerKind


class ScannedCell(NamedTuple):
    """A cell of a scan; ``kind`` is always ``Put`` unless the scan is raw."""

    row: bytes
    family: bytes
    qualifier: bytes
    timestamp_ms: int
    kind: CellKind
    value: bytes


class HBaseSource:
    """Statements, administration and scans, for the duration of the ``with`` block. One request at a time.

    A request waits while HBase is down, up to two minutes, so a thread can write while another one kills HBase.
    Methods raise UnsupportedError with HBase's words if it refuses, and TransientError if the client ended.

    Args:
        hbase: a running HBase; it may be killed and started again meanwhile.
    """

    def __init__(self, hbase: EmbeddedHBase) -> None:
        self._hbase = hbase
        self._log = hbase.configuration.parent / "client.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        command = [*java(self._hbase.configuration, "-Xms32m", "-Xmx200m"), "binlake.hbase.Client"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def create_table(self, table: str, families: Sequence[FamilyRule], *, splits: Sequence[bytes] = ()) -> None:
        """Create ``namespace:table``, and the namespace if it is missing; its changes are replicated.

        Args:
            table: its name.
            families: its column families; a TTL is cut to seconds.
            splits: the first row keys of all regions but the first.
        """
        self._ask("create", table=table, families=as_json(list(families)), splits=as_json(list(splits)))

    def drop_table(self, table: str) -> None:
        """Drop a table."""
        self._ask("drop", table=table)

    def replicate_to_kafka(
        self,
        bootstrap_servers: str,
        *,
        prefix: str,
        formats: str = "wal,events",
        fail_every: int = 0,
        peer: str = "kafka",
    ) -> None:
        """Add a peer that sends the changes of all tables to Kafka, from now on.

        Args:
            bootstrap_servers: of Kafka.
            prefix: of the topics' names: ``PREFIX.NAMESPACE.TABLE.wal`` and ``.events``.
            formats: ``wal``, ``events`` or ``wal,events``.
            fail_every: each n-th batch of a region server's queue is sent and reported as failed, so that it comes
                again; 0 for none.
            peer: its name.
        """
        settings = {
            "bootstrap.servers": bootstrap_servers,
            "topic.prefix": prefix,
            "formats": formats,
            "fail.every": str(fail_every),
        }
        self._ask("peer", name=peer, settings=settings)

    def apply(self, table: str, statement: Statement) -> bool:
        """Carry out a statement. Returns False only if the check of a ``CheckAndMutate`` failed."""
        return bool(self._ask("apply", table=table, statement=as_json(statement)))

    def batch(self, table: str, statements: Sequence[Statement]) -> None:
        """Carry out statements of any rows as one request: those of one region are one WAL entry."""
        self._ask("batch", table=table, statements=as_json(list(statements)))

    def flush(self, table: str) -> None:
        """Write the memory of all regions to files: surplus versions are dropped."""
        self._ask("flush", table=table)

    def major_compact(self, table: str) -> None:
        """Rewrite all files of a table, and wait for it: markers, masked, surplus and expired cells are dropped."""
        self._ask("majorCompact", table=table)

    def split(self, table: str, row: bytes, *, timeout_s: float = 60) -> None:
        """Split the region that holds a row, at that row."""
        self._ask("split", table=table, row=as_json(row), timeout_ms=int(timeout_s * 1000))

    def move(self, table: str, row: bytes) -> int:
        """Move the region that holds a row to another region server. Returns that server's port."""
        return int(self._ask("move", table=table, row=as_json(row)))

    def region_servers(self) -> list[int]:
        """The ports of the live region servers."""
        return list(map(int, self._ask("servers")))

    def holder(self, table: str, row: bytes) -> int:
        """The port of the region server that holds a row."""
        return int(self._ask("holder", table=table, row=as_json(row)))

    def drain(self, *, timeout_s: float = 120) -> None:
        """Wait until all changes made before the call are in Kafka. Raises TransientError if they are not in time."""
        if not self._ask("drain", timeout_ms=int(timeout_s * 1000)):
            raise TransientError("the replication does not end", do_next="read HBase's log", waited_s=timeout_s)

    def scan(self, table: str, *, raw: bool = False) -> list[ScannedCell]:
        """All cells with all versions that HBase shows; ``raw``: markers and cells that they mask too."""
        return [cell for line in self._scan_lines(table, raw) for cell in _cells(json.loads(line), raw)]

    def write_scan(self, table: str, file: Path, *, raw: bool = False) -> int:
        """Write a scan as JSON lines, a row each. Returns the number of rows.

        ``{"row": ..., "cells": [[family, qualifier, timestamp, value], ...]}``, with base64; a raw scan has the kind
        before the value.
        """
        rows = 0
        with file.open("wb") as lines:
            for line in self._scan_lines(table, raw):
                lines.write(line)
                rows += 1
        return rows

    def export(self, table: str, file: Path) -> int:
        """Write a scan as HBase's Export job does: a sequence file of row keys and results. Returns its rows."""
        return int(self._ask("export", table=table, path=str(file.absolute())))

    def _ask(self, what: str, **more: object) -> Any:  # noqa: ANN401 - depends on the request
        with self._lock:
            return _result(self._line(self._send(what, **more)), what)

    def _scan_lines(self, table: str, raw: bool) -> Iterator[bytes]:
        """The rows' lines of a scan. Nothing else may be asked until all are read, so they are read here."""
        with self._lock:
            answers = self._send("scan", table=table, raw=raw)
            lines = []
            while (line := self._line(answers)).startswith(b'{"row"'):
                lines.append(line)
            _result(line, "scan")
        yield from lines

    def _send(self, what: str, **more: object) -> IO[bytes]:
        process = self._process
        if process is None:
            raise TransientError("the client of HBase does not run", do_next="use it in a with block")
        try:
            requests = cast("IO[bytes]", process.stdin)
            requests.write(json.dumps({"do": what, **more}).encode() + b"\n")
            requests.flush()
        except OSError as error:
            raise self._ended() from error
        return cast("IO[bytes]", process.stdout)

    def _line(self, answers: IO[bytes]) -> bytes:
        line = answers.readline()
        if not line:
            raise self._ended()
        return line

    def _ended(self) -> TransientError:
        return TransientError("the client of HBase ended", do_next="read its log", log=str(self._log))


def _result(line: bytes, what: str) -> Any:  # noqa: ANN401 - depends on the request
    answer = json.loads(line)
    if "error" in answer:
        raise UnsupportedError(f"HBase refuses to {what}: {answer['error']}", do_next="correct the request")
    return answer["result"]


def _cells(row: dict[str, Any], raw: bool) -> Iterator[ScannedCell]:
    key = base64.b64decode(row["row"])
    for family, qualifier, timestamp_ms, *rest in row["cells"]:
        kind: CellKind = rest[0] if raw else "Put"
        yield ScannedCell(
            key, base64.b64decode(family), base64.b64decode(qualifier), timestamp_ms, kind, base64.b64decode(rest[-1])
        )
