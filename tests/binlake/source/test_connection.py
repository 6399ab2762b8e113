"""A session at the source's database without ``tls`` looks for no certificates of authorities."""

from __future__ import annotations

import ssl
from typing import Any

import pytest

from binlake.settings import DatabaseSettings
from binlake.source.database import connection
from binlake.source.database.connection import SourceConnection
from embedded.process import free_ports
from hudilake.errors import TransientError


@pytest.mark.parametrize("tls", [False, True])
def test_a_session_without_tls_loads_no_certificates(monkeypatch: pytest.MonkeyPatch, *, tls: bool) -> None:
    loaded: list[bool] = []
    real = ssl.create_default_context

    def counted(*given: Any, **more: Any) -> ssl.SSLContext:  # noqa: ANN401
        loaded.append(True)
        return real(*given, **more)

    monkeypatch.setattr(ssl, "create_default_context", counted)
    connection._unchecked_tls.cache_clear()
    (port,) = free_ports(1)
    with pytest.raises(TransientError, match="cannot be reached"):
        SourceConnection(DatabaseSettings(host="127.0.0.1", user="reader", tls=tls), "127.0.0.1", port)
    assert loaded == [True] * tls


def test_a_session_without_tls_checks_no_server() -> None:
    context = connection._unchecked_tls()
    assert (context.check_hostname, context.verify_mode) == (False, ssl.CERT_NONE)
    assert context is connection._unchecked_tls()
    assert context.get_ca_certs() == []
