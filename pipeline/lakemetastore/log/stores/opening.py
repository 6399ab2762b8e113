"""Opens the store of a URI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from hudilake.errors import ConfigError
from hudilake.extras import require_extra
from hudilake.storage import open_storage
from lakemetastore.log.stores.base import LogStore
from lakemetastore.log.stores.files import FileStore
from lakemetastore.log.stores.sql import SqlStore

_SQL: Final = {
    "sqlite": "sqlite",
    "mysql": "mysql+pymysql",
    "mariadb": "mariadb+pymysql",
    "mysql+pymysql": "mysql+pymysql",
    "mariadb+pymysql": "mariadb+pymysql",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}
_SQL_OPTIONS: Final = frozenset({"username", "password"})


def open_store(uri: str, options: Mapping[str, str] | None = None) -> LogStore:
    """The store of a URI. It does not connect yet.

    Args:
        uri: ``sqlite:///path`` (four slashes for an absolute path), ``mysql+pymysql://user@host:port/database``,
            ``postgresql+psycopg://...``, ``lmdb:path``, or what ``hudilake.storage.open_storage`` takes: a path,
            ``file:``, ``s3:``, ``hdfs:``...
        options: the storage's options; for a SQL database ``username`` and ``password``; LMDB has none.

    Raises:
        ConfigError: an unknown scheme or option, or a URI that cannot be read.
    """
    options = dict(options or {})
    scheme, colon, rest = uri.partition(":")
    if colon and scheme == "lmdb":
        _check(options, frozenset(), "lmdb")
        require_extra("lakemetastore", "lmdb", "lmdb")
        from lakemetastore.log.stores.key_value import LmdbLogStore  # an extra

        return LmdbLogStore("/" + rest.lstrip("/") if rest.startswith("/") else rest)
    if colon and scheme in _SQL:
        _check(options, _SQL_OPTIONS, scheme)
        return SqlStore(_url(uri, scheme, options))
    return FileStore(open_storage(uri, options))


def _url(uri: str, scheme: str, options: Mapping[str, str]) -> URL:
    try:
        url = make_url(uri).set(drivername=_SQL[scheme])
    except (ArgumentError, ValueError) as error:
        raise ConfigError(
            "the address of the database cannot be read",
            do_next=f"write {scheme}://user@host:port/database, and the password into the options",
        ) from error
    if not url.database:
        raise ConfigError("the uri names no database", do_next=f"write {scheme}://.../database", scheme=scheme)
    return url.set(username=options.get("username"), password=options.get("password"))


def _check(options: Mapping[str, str], known: frozenset[str], scheme: str) -> None:
    if unknown := sorted(set(options) - known):
        raise ConfigError(
            "the store has no such options",
            do_next=f"use {', '.join(sorted(known))}" if known else "remove them",
            scheme=scheme,
            got=unknown,
        )
