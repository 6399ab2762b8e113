"""Opens the storage of a URI."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hudilake.errors import ConfigError
from hudilake.extras import require_extra
from hudilake.storage.base import Storage
from hudilake.storage.local import open_local
from hudilake.storage.objects import OBJECT_SCHEMES, open_objects

_URI = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):(?P<slashes>//(?P<authority>[^/]*))?(?P<path>.*)", re.DOTALL)
_SCHEMES = ("file", "hdfs", *OBJECT_SCHEMES)


def open_storage(uri: str, options: Mapping[str, str] | None = None) -> Storage:
    """The storage of a URI. It does not connect yet.

    The path of a URI is taken as it is written, as Hadoop does: ``%20`` is three characters, not a space.

    Args:
        uri: a plain path, ``file:``, ``hdfs:``, ``s3:``/``s3a:``, ``gs:``, ``az:``/``azure:``/``adl:``/``abfs:``/
            ``abfss:``, or ``memory:`` (lives and dies with this process).
        options: the store's own options. Object stores: the names obstore takes for credentials, region and endpoint,
            for its HTTP client (``timeout``, ``proxy_url``...), and ``max_retries`` and ``retry_timeout_s``. HDFS:
            Hadoop's property names, see :func:`hudilake.storage.hdfs.open_hdfs`. Local disk: ``fsync``.

    Raises:
        ConfigError: an unknown scheme or option, credentials inside the URI, or a scheme whose extra is not installed.

    Example:
        >>> storage = hudilake.open_storage("memory://lake")
        >>> storage.create("a/file", b"bytes")
        >>> [file.path for file in storage.list("a")]
        ['a/file']
    """
    options = dict(options or {})
    parts = _URI.fullmatch(uri)
    if not parts or not has_scheme(uri):
        return open_local(uri, options)
    scheme = parts["scheme"].lower()
    authority, path = parts["authority"] or "", parts["path"]
    _refuse_credentials(scheme, authority)
    if scheme == "file":
        return open_local(_file_path(authority, path), options)
    if scheme == "hdfs":
        require_extra("hudilake", "hdfs", "hdfs_native")
        from hudilake.storage.hdfs import open_hdfs  # its client is an extra

        return open_hdfs(authority, path, options)
    if scheme in OBJECT_SCHEMES:
        return open_objects(scheme, authority, path, options)
    raise ConfigError("no storage has this scheme", do_next=f"use one of {', '.join(_SCHEMES)}", scheme=scheme)


def has_scheme(uri: str) -> bool:
    """Whether this is a URI, and not the path of a directory, which may have a colon in its name."""
    parts = _URI.fullmatch(uri)
    return parts is not None and bool(parts["slashes"] or parts["scheme"].lower() in _SCHEMES)


def _file_path(authority: str, path: str) -> str:
    if authority not in ("", "localhost") or not path.startswith("/"):
        raise ConfigError("the file URI has a host, or its path is not absolute", do_next="write file:///the/path")
    return path


def _refuse_credentials(scheme: str, authority: str) -> None:
    """Refuse credentials in a URI. Only Azure has a part before an @: the container."""
    before, separator, _ = authority.rpartition("@")
    if separator and (":" in before or scheme not in ("abfs", "abfss", "hdfs")):
        raise ConfigError("a storage URI must not hold credentials", do_next="move them to the options", scheme=scheme)
