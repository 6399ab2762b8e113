"""Ports that several processes listen on, and their certificates."""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass

from hudilake.errors import ConfigError
from lakemetastore.settings.service import HttpSettings, ThriftSettings, TlsSettings

_BACKLOG = 512


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of the service, which all its processes listen on."""

    thrift: int
    http: int


def reserve(wanted: ThriftSettings | HttpSettings) -> socket.socket:
    """A socket that keeps the port for this service and does not listen; port 0 becomes a free one.

    Processes that listen by ``listen`` share the port. Any process of the same user could, so the port is first taken
    alone, to find out whether another service has it. Raises ConfigError if it does.
    """
    try:
        with _socket(wanted.host) as alone:
            alone.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections that have just ended do not count
            alone.bind((wanted.host, wanted.port))
            port = int(alone.getsockname()[1])
        return _bound(wanted.host, port)
    except OSError as error:
        raise ConfigError(
            f"cannot listen: {error}",
            do_next="give another host or port, or stop what has it",
            host=wanted.host,
            port=wanted.port,
        ) from error


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on a reserved port beside those of other processes. Raises OSError."""
    listener = _bound(host, port)
    # Accepted sockets inherit it. asyncio sets it for sockets made with a protocol number only, and without it each
    # answer over HTTP waits 40 ms for the client's acknowledgement (measured).
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.listen(_BACKLOG)
    return listener


def server_context(tls: TlsSettings) -> ssl.SSLContext:
    """TLS 1.2 or newer with the settings' certificate. Raises ConfigError if its files do not fit."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(tls.certificate_file, tls.key_file)
        if tls.client_ca_file is not None:
            context.load_verify_locations(tls.client_ca_file)
            context.verify_mode = ssl.CERT_REQUIRED
    except OSError as error:  # ssl.SSLError is one
        raise ConfigError(
            f"the certificate cannot be used: {error}",
            do_next="give a certificate, its key and the authorities as PEM files",
            certificate_file=tls.certificate_file,
        ) from error
    return context


def _bound(host: str, port: int) -> socket.socket:
    listener = _socket(host)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind((host, port))
    except BaseException:
        listener.close()
        raise
    return listener


def _socket(host: str) -> socket.socket:
    return socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
