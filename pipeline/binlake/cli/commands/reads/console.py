"""``binlake console``: the streams, their tables and their lake in a browser; and the console that a stream starts.

That one is a process of its own, so that its pages take no time of the stream's driver. It takes the processor where
the stream leaves it, and ends when the stream's process does, however that ends: then the pipe from there is closed.
"""

# ruff: noqa: E402 - the check for the extra comes before the imports that need it

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import typer

from hudilake.extras import require_extra

require_extra("binlake", "console", "starlette", "uvicorn", "jinja2")

from binlake.cli.console.access import ENVIRONMENT, Access
from binlake.cli.console.page import Site
from binlake.cli.console.site import application
from binlake.cli.console.watch import StreamWatch
from binlake.cli.text import say, say_json
from binlake.cli.until_stopped import until_stopped
from binlake.settings import Settings
from hudilake.errors import ConfigError
from lakemetastore.service.http_server import HttpServer

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_ANY = ("0.0.0.0", "::")  # noqa: S104 - compared with, not listened on
_DRAIN_S, _END_S = 1.0, 10.0
#: How far the console stands back for the streams of its machine; its queries and actions are processes that do too.
NICE = 10
Confs = Annotated[list[Path], typer.Argument(help="The settings file of each stream (YAML).", metavar="CONF")]


def console(
    confs: Confs,
    host: Annotated[
        str, typer.Option(help="The address to listen on: 127.0.0.1 is for this machine only.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.", min=0, max=65535)] = 8765,
    names: Annotated[
        list[str] | None,
        typer.Option("--name", help="A further host name by which browsers call the console; * for any."),
    ] = None,
    ask_kafka: Annotated[bool, typer.Option("--kafka/--no-kafka", help="Ask Kafka for the ends of the topics.")] = True,
    token_file: Annotated[
        Path | None,
        typer.Option(help=f"Who knows the token in this file, or in {ENVIRONMENT}, may act; without one nobody may."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the address as a JSON object.")] = False,
) -> None:
    """Serve a page for every stream, table and row, on this machine only unless --host says otherwise."""
    settings = {str(conf): Settings.load(conf) for conf in confs}
    access = Access.of(token_file)

    def serve(stop: threading.Event) -> None:
        os.nice(NICE)  # on Linux this thread and those that it starts
        with (
            watched(settings, ask_kafka=ask_kafka) as site,
            served(site, host, port, *(names or ()), access=access) as address,
        ):
            if as_json:
                say_json({"address": address, "streams": list(site.watches)})
            else:
                say(f"the console is at {address}")
            stop.wait()

    until_stopped(serve)


@contextlib.contextmanager
def watched(settings: Mapping[str, Settings], *, ask_kafka: bool = True) -> Iterator[Site]:
    """A site whose watches look until the end. ``settings``: by settings file. Raises ConfigError for two streams of
    one name."""
    watches: dict[str, StreamWatch] = {}
    for conf, one in settings.items():
        if one.name in watches:
            raise ConfigError(
                "two settings files have the same stream name", do_next="watch them in two consoles", stream=one.name
            )
        watches[one.name] = StreamWatch(one, conf, ask_kafka=ask_kafka)
    with contextlib.ExitStack() as stack:
        for watch in watches.values():
            stack.callback(watch.close)
            watch.start()
        yield Site(watches)


@contextlib.contextmanager
def served(
    site: Site,
    host: str,
    port: int,
    *names: str,
    access: Access | None = None,
    listener: socket.socket | None = None,
) -> Iterator[str]:
    """Serve the console until the end; yields its address.

    Args:
        site: what it shows.
        host, port: where it listens; port 0 takes a free one.
        names: host names by which browsers may call it, beside those of this machine.
        access: who may act; None lets nobody.
        listener: a socket that listens there already; None to make one.

    Raises ConfigError if it cannot listen.
    """
    listener = listener or listening(host, port)
    hosts = [*_LOOPBACK, *(name for name in (host, *names) if name not in _ANY)]
    server = HttpServer(application(site, hosts, access), listener, None, _DRAIN_S)
    server.start()
    try:
        yield address_of(listener, host)
    finally:
        site.ended.set()  # else each open page would hold the server
        server.stop()


def address_of(listener: socket.socket, host: str) -> str:
    """The address of the pages, for people. ``host``: on which it listens, as it was asked for."""
    shown = "localhost" if host in _ANY else f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}/"


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 takes a free one. Raises ConfigError."""
    try:
        server = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"cannot listen: {error}", do_next="choose another --port or --host", host=host, port=port
        ) from error
    server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else each answer waits for an acknowledgement
    return server


@contextlib.contextmanager
def console_beside(settings: Settings, conf: Path) -> Iterator[tuple[str, int]]:
    """Serve the console of a stream until the end, as its ``monitoring`` says; yields its address and its process id.

    The address answers as soon as the process has started, and takes connections at once. Raises ConfigError if it
    cannot listen, or the token is too short.
    """
    host = settings.monitoring.host
    Access.of(None)
    with contextlib.closing(listening(host, settings.monitoring.console_port)) as listener:
        address = address_of(listener, host)
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(conf), host, str(listener.fileno())],
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
        )
    assert process.stdin is not None
    try:
        yield address, process.pid
    finally:
        process.stdin.close()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main() -> None:
    """Serve on a socket that was handed over, until standard input ends: arguments CONF HOST DESCRIPTOR."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C asks the stream to finish its batch, which is worth seeing
    os.nice(NICE)
    conf, host, descriptor = sys.argv[1:]
    listener = socket.socket(fileno=int(descriptor))
    with (
        watched({conf: Settings.load(Path(conf))}) as site,
        served(site, host, 0, access=Access.of(None), listener=listener),
    ):
        sys.stdin.buffer.read()
        os._exit(0)  # nothing of it is worth waiting for, and threads may be in the middle of a read


if __name__ == "__main__":
    main()
