"""A part of a service that answers each client with its process id, for tests of the processes themselves."""

from __future__ import annotations

import os
import socket
import threading
from contextlib import AbstractContextManager, nullcontext

from hudilake.errors import ConfigError
from lakemetastore.service.part import Report
from lakemetastore.service.ports import listen

HOST = "127.0.0.1"


class TcpPart:
    """Sends its process id to whoever connects. ``reason``: why it says that it is not well."""

    def __init__(self, port: int, reason: str | None = None) -> None:
        self._port, self._reasons = port, (reason,) if reason else ()
        self._answered = 0

    def start(self) -> None:
        self._listener = listen(HOST, self._port)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            client, _ = self._listener.accept()
            with client:
                self._answered += 1
                client.sendall(str(os.getpid()).encode())

    def stop(self) -> None:
        self._listener.close()

    def report(self) -> Report:
        text = f"# HELP answered_total Clients.\n# TYPE answered_total counter\nanswered_total {self._answered}\n"
        return Report(self._reasons, text)


class Refusing:
    """Cannot begin."""

    def start(self) -> None:
        raise ConfigError("the certificate is missing", do_next="give one", path="/none")

    def stop(self) -> None: ...

    def report(self) -> Report:
        raise AssertionError("it never began")


def no_log() -> AbstractContextManager[None]:
    return nullcontext()


def ask(port: int) -> int:
    """The id of the process that answers."""
    with socket.create_connection((HOST, port), timeout=5) as client:
        return int(client.recv(64))
