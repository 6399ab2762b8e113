"""What the router adds to a call: ``python -m bench.metastore.router_share``.

A backend that sends ready bytes, the router and the clients are processes of their own, so the backend costs next to
nothing. Each question is asked in turns, directly and through the router, by the same clients; answers are read and
not decoded. ``read`` is the time of one client to the end of the answer; ``p99`` is of all calls of all clients.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import socket
import statistics
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from typing import Final

from hive_metastore import ThriftHiveMetastore as Hive
from hive_metastore.ttypes import FieldSchema, Partition, SerDeInfo, StorageDescriptor, Table

from hudilake.clock import monotonic_s
from lakemetastore.hive.message import encode, head, reply
from lakemetastore.hive.server import ThriftServer, listen
from lakemetastore.hive.session import Session
from lakemetastore.hive.wire import CALL, Message
from lakemetastore.router.router import Router
from lakemetastore.settings.router import RouterSettings

_context = multiprocessing.get_context("spawn")
_COLUMNS: Final = 12


@dataclass(frozen=True)
class Figures:
    """Milliseconds of a call, and calls a second of all clients. ``way``: ``direct`` or ``router``."""

    question: str
    clients: int
    way: str
    p50: float
    p99: float
    calls_a_second: float


def storage(location: str) -> StorageDescriptor:
    """A storage descriptor of the usual size."""
    columns = [FieldSchema(f"column_{i}", "string", None) for i in range(_COLUMNS)]
    serde = SerDeInfo(
        None, "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe", {"serialization.format": "1"}
    )
    return StorageDescriptor(columns, location, "input", "output", False, -1, serde, [], [], {})


def answers(partitions: int) -> dict[str, bytes]:
    """The result structs of the backend, by the name of the call."""
    table = Table("t", "shop", "me", 0, 0, 0, storage("/shop/t"), [FieldSchema("day", "string", None)], {})
    found = [Partition([f"d{i}"], "shop", "t", 0, 0, storage(f"/shop/t/day=d{i}"), {}) for i in range(partitions)]
    return {
        "get_table": encode(Hive.get_table_result(success=table)),
        "get_partitions": encode(Hive.get_partitions_result(success=found)),
    }


def backend(ready: Connection, partitions: int) -> None:
    """A server of ready answers, until the pipe closes."""
    results = answers(partitions)

    def answer(session: Session, request: Message) -> bytes:
        return reply(request.name, request.sequence, results[request.name])

    _serve(ready, answer)


def router(ready: Connection, port: int, renamed: bool) -> None:
    """A router before the backend, until the pipe closes."""
    rules = [{"match": "shop", "to": "there", **({"as": "sold"} if renamed else {})}]
    backends = {"there": {"uri": f"thrift://127.0.0.1:{port}"}}
    settings = {"backends": backends, "primary": "there", "rules": rules}
    _serve(ready, Router(RouterSettings.model_validate(settings)).answer)


def _serve(ready: Connection, answer: Callable[[Session, Message], object]) -> None:
    server = ThriftServer(answer, listener=listen("127.0.0.1", 0))  # type: ignore[arg-type]
    server.start()
    ready.send(server.address[1])
    try:
        ready.recv()
    except EOFError:
        server.stop(0)


class _Served:
    """A server in a process of its own."""

    def __init__(self, work: Callable[..., None], *arguments: object) -> None:
        self._pipe, theirs = _context.Pipe()
        self._process = _context.Process(target=work, args=(theirs, *arguments), daemon=True)
        self._process.start()
        theirs.close()
        self.port: int = self._pipe.recv()

    def stop(self) -> None:
        self._pipe.close()
        self._process.join(5)


def request_of(name: str, database: str) -> bytes:
    """A call's bytes."""
    kind = getattr(Hive, f"{name}_args")
    arguments = kind(database, "t") if name == "get_table" else kind(database, "t", -1)
    return head(name, CALL, 0) + encode(arguments)


def measure(port: int, request: bytes, size: int, clients: int, calls: int) -> list[float]:
    """The seconds of each call. ``size``: bytes of an answer."""
    times: list[float] = []
    barrier = threading.Barrier(clients)

    def work() -> None:
        into = bytearray(1 << 20)
        with socket.create_connection(("127.0.0.1", port)) as sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            barrier.wait()
            for _ in range(calls):
                begun = monotonic_s()
                sock.sendall(request)
                left = size
                while left:
                    left -= sock.recv_into(into, min(left, len(into)))
                times.append(monotonic_s() - begun)

    threads = [threading.Thread(target=work) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times


def figures(question: str, clients: int, way: str, times: Sequence[float], took: float) -> Figures:
    """The figures of all rounds of a question."""
    ordered = sorted(times)
    p50, p99 = statistics.median(ordered), ordered[int(len(ordered) * 0.99)]
    return Figures(question, clients, way, round(p50 * 1e3, 3), round(p99 * 1e3, 3), round(len(times) / took, 1))


def main() -> None:
    """Ask each question in turns and print a line of JSON for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    servers = [_Served(backend, options.partitions)]
    ways = [("direct", servers[0].port, "shop")]
    for way, renamed in (("router", False), ("router, renamed", True)):
        servers.append(_Served(router, servers[0].port, renamed))
        ways.append((way, servers[-1].port, "sold" if renamed else "shop"))
    results = answers(options.partitions)
    for name, clients, calls in (("get_table", 1, 400), ("get_table", 50, 40), ("get_partitions", 1, 1)):
        times: dict[str, list[float]] = {way: [] for way, _, _ in ways}
        took = dict.fromkeys(times, 0.0)
        for _ in range(options.rounds):
            for way, port, database in ways:
                changed = (1 if name == "get_table" else options.partitions) * (len(database) - len("shop"))
                size = len(reply(name, 0, results[name])) + changed
                begun = monotonic_s()
                times[way] += measure(port, request_of(name, database), size, clients, calls)
                took[way] += monotonic_s() - begun
        for way, _, _ in ways:
            print(json.dumps(asdict(figures(name, clients, way, times[way], took[way]))))
    for server in servers:
        server.stop()


if __name__ == "__main__":
    main()
