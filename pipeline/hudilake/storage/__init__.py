"""The only door to files: local disk, object stores, HDFS. It does not know what the bytes mean."""

from hudilake.storage.base import (
    AlreadyExistsError,
    FileInfo,
    OutcomeUnknownError,
    Storage,
    StorageError,
    StorageNotFoundError,
)
from hudilake.storage.exclusive import check_exclusive_create
from hudilake.storage.opening import has_scheme, open_storage
from hudilake.storage.passing import is_near

__all__ = [
    "AlreadyExistsError",
    "FileInfo",
    "OutcomeUnknownError",
    "Storage",
    "StorageError",
    "StorageNotFoundError",
    "check_exclusive_create",
    "has_scheme",
    "is_near",
    "open_storage",
]
