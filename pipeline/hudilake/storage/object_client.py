"""The connection to an object store: its options, one client per process, its errors as BinlakeErrors."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import timedelta
from functools import lru_cache
from threading import Lock
from typing import Any, TypeAlias

from obstore.exceptions import BaseError, GenericError, PermissionDeniedError, UnauthenticatedError
from obstore.store import AzureStore, GCSStore, MemoryStore, ObjectStore, S3Store

from hudilake.errors import ConfigError, LakeError, UnsupportedError
from hudilake.storage.base import StorageError, StorageNotFoundError
from hudilake.storage.redaction import redact

Options: TypeAlias = tuple[tuple[str, str], ...]

# obstore raises these; FileNotFoundError stands for a missing object, ValueError for a path or an option it refuses.
STORE_ERRORS = (BaseError, FileNotFoundError, ValueError)

S3_SCHEMES = ("s3", "s3a")
AZURE_SCHEMES = ("az", "azure", "adl", "abfs", "abfss")

# Options of obstore's HTTP client; all others are options of the store.
_CLIENT_OPTIONS = frozenset(
    {
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "http1_only",
        "http2_only",
        "pool_idle_timeout",
        "pool_max_idle_per_host",
        "proxy_ca_certificate",
        "proxy_excludes",
        "proxy_url",
        "randomize_addresses",
        "read_timeout",
        "root_certificate",
        "timeout",
        "user_agent",
    }
)
_RETRY_OPTIONS = frozenset({"max_retries", "retry_timeout_s"})

# Options whose values a message may show. All other values are treated as secrets.
_PUBLIC_OPTIONS = _RETRY_OPTIONS | {
    *(_CLIENT_OPTIONS - {"proxy_url"}),
    *("region", "aws_region", "endpoint", "aws_endpoint", "endpoint_url", "aws_endpoint_url"),
    *("account_name", "azure_storage_account_name", "virtual_hosted_style_request", "process"),
}

# A refused listing is a general error; only its text shows the reason.
_REFUSED = re.compile(r"status code: 40[13]\b")
#: What is asked of the cloud that a machine runs in where no credentials are given: Amazon's, Google's, Microsoft's.
_ASKS_THE_CLOUD = ("/latest/api/token", "/latest/meta-data/", "/computeMetadata/", "/metadata/identity/")
_NO_CREDENTIALS = (
    "set them in the store's options (lake.options; S3: access_key_id, secret_access_key) or its environment variables "
    "(S3: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)"
)
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist")

_memory_stores: dict[str, MemoryStore] = {}
_memory_lock = Lock()


def connect(root: str, options: Options) -> ObjectStore:
    """The client for a bucket; one for all storages of this process that have the same root and options.

    Args:
        root: scheme and bucket, ``s3://lake``.
        options: as given to :func:`hudilake.storage.open_storage`.

    Raises:
        ConfigError: an unknown option, or an invalid value.
        UnsupportedError: a memory store of another process.
    """
    scheme = root.partition(":")[0]
    if scheme == "memory":
        return _memory_store(root, dict(options))
    try:
        return _connected(scheme, root, options)
    except STORE_ERRORS as error:
        raise ConfigError(
            f"the object store's options are wrong: {describe(error, options)}",
            do_next="fix the storage options: they are obstore's names for this store and its HTTP client",
            uri=root,
        ) from None


@lru_cache(maxsize=32)
def _connected(scheme: str, root: str, options: Options) -> ObjectStore:
    given = {key.lower(): value for key, value in options}
    retry: Any = {
        "max_retries": int(given.pop("max_retries", "10")),
        "retry_timeout": timedelta(seconds=float(given.pop("retry_timeout_s", "180"))),
    }
    client: Any = {key: given.pop(key) for key in _CLIENT_OPTIONS & set(given)}
    if any(key.endswith(("endpoint", "endpoint_url")) and value.startswith("http://") for key, value in given.items()):
        client.setdefault("allow_http", "true")
    config: Any = given
    bucket = root.partition("://")[2]
    if scheme in S3_SCHEMES:
        if "conditional_put" not in given:
            given.setdefault("aws_conditional_put", "etag")
        return S3Store(bucket, config=config, client_options=client or None, retry_config=retry)
    if scheme == "gs":
        return GCSStore(bucket, config=config, client_options=client or None, retry_config=retry)
    return AzureStore.from_url(root, config=config, client_options=client or None, retry_config=retry)


def _memory_store(root: str, options: Mapping[str, str]) -> MemoryStore:
    if options["process"] != str(os.getpid()):
        raise UnsupportedError(
            "a memory store cannot be reached from another process", do_next="use a store that tasks share", uri=root
        )
    with _memory_lock:
        return _memory_stores.setdefault(root, MemoryStore())


def describe(error: Exception, options: Options) -> str:
    """The client's message without its debugging part and without any secret."""
    text = str(error).partition("Debug source:")[0]
    return redact(text, (value for key, value in options if key.lower() not in _PUBLIC_OPTIONS))


def translate(error: Exception, operation: str, uri: str, options: Options) -> LakeError:
    """The LakeError for one of the client's errors.

    Args:
        error: one of ``STORE_ERRORS``.
        operation: the verb, for the message.
        uri: the object or directory.
        options: the storage's; their secrets are kept out of the message.
    """
    detail = describe(error, options)
    message = f"cannot {operation}: {detail}"
    if any(place in detail for place in _ASKS_THE_CLOUD):
        # A machine of a cloud may get them later, where its service is only out of reach.
        kind = ConfigError if re.search(r"status code: 4", detail) else StorageError
        what = f"cannot {operation}: there are no credentials for the object store, and this machine's cloud gives none"
        return kind(what, do_next=_NO_CREDENTIALS, path=uri)
    if any(word in detail for word in _NO_BUCKET):
        return ConfigError(message, do_next="create the bucket, or name another bucket in the uri", path=uri)
    if isinstance(error, FileNotFoundError):
        return StorageNotFoundError("no such object", do_next="list the directory", path=uri)
    if isinstance(error, (PermissionDeniedError, UnauthenticatedError)) or _REFUSED.search(detail):
        rights = "give the credentials the rights to list, get, put and delete there; look at region and endpoint too"
        return ConfigError(message, do_next=rights, path=uri)
    if isinstance(error, GenericError):
        return StorageError(
            message, do_next="check the network, the endpoint and the store's health, then start again", path=uri
        )
    return UnsupportedError(message, do_next="check the path, and which operations this store supports", path=uri)


def is_out_of_range(error: Exception) -> bool:
    """True if a range was asked for that starts at or after the end of the object."""
    return isinstance(error, GenericError) and bool(re.search(r"\b416\b|StartTooLarge|starting at", str(error)))
