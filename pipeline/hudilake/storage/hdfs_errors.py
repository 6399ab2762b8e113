"""Meaning of the HDFS client's errors, and which of them are transient."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from hudilake.errors import ConfigError, LakeError, UnsupportedError
from hudilake.storage.base import StorageError, StorageNotFoundError
from hudilake.storage.redaction import redact

T = TypeVar("T")

# The client raises OSError and its subclasses for the network and for files that are missing or in the way,
# RuntimeError for all else the NameNode says.
CLIENT_ERRORS = (OSError, RuntimeError, NotImplementedError)

_ATTEMPTS = 6
_FIRST_PAUSE_S = 0.2

# The NameNode refused before it did anything: trying again can do no harm.
_PASSING = frozenset({"SafeModeException", "RetriableException", "StandbyException", "RetryStartFileException"})
_NO_DATA_NODES = "could only be written to 0"
_SECRET = re.compile("password|secret|key", re.IGNORECASE)
_NOT_A_DIRECTORY = "(is not a directory)"
_RPC = re.compile(r'^(?:Fatal)?R(?:PC|pc)Error\("(?P<type>[^"]*)", "(?P<text>.*)"\)$', re.DOTALL)


@dataclass(frozen=True, slots=True)
class HdfsFailure:
    """A client error.

    Attributes:
        kind: the Java class that the NameNode named, without its package; empty if it named none.
        text: the first line of the message.
        is_dropped: the connection ended before the answer came; the call may have been done.
    """

    kind: str
    text: str
    is_dropped: bool = False

    @property
    def passes(self) -> bool:
        """True if the same call may succeed a little later."""
        return self.is_dropped or self.kind in _PASSING or _NO_DATA_NODES in self.text

    @property
    def is_not_a_directory(self) -> bool:
        """True if a segment of the path is a file (the NameNode reports it as a refusal of access)."""
        return _NOT_A_DIRECTORY in self.text


def explain(error: Exception) -> HdfsFailure:
    """Parse a client error."""
    text = str(error)
    matched = _RPC.match(text)
    kind, text = (matched["type"], matched["text"]) if matched else ("", text)
    first_line = re.split(r"\n|\\n", text, maxsplit=1)[0]
    # The client has itself retried a refused connection for minutes by then.
    dropped = type(error) is OSError and "refused" not in text
    return HdfsFailure(re.split(r"[.$]", kind)[-1], first_line, dropped)


def retrying(call: Callable[[], T]) -> T:
    """Make a call; repeat it with growing pauses (about five seconds in all) while its errors are transient.

    The call must be safe to repeat: the first one may have been done and only its answer lost.
    """
    for attempt in range(_ATTEMPTS - 1):
        try:
            return call()
        except CLIENT_ERRORS as error:
            if not explain(error).passes:
                raise
            time.sleep(_FIRST_PAUSE_S * 2**attempt * random.uniform(0.5, 1.0))  # noqa: S311 - jitter
    return call()


def translate(error: Exception, operation: str, uri: str, options: Iterable[tuple[str, str]]) -> LakeError:
    """The LakeError for a client error.

    Args:
        error: one of ``CLIENT_ERRORS``.
        operation: the verb, for the message.
        uri: the file or directory.
        options: the storage's; its secrets are kept out of the message.
    """
    failure = explain(error)
    message = f"cannot {operation}: {redact(failure.text, (v for k, v in options if _SECRET.search(k)))}"
    missing = isinstance(error, (FileNotFoundError, IsADirectoryError)) or failure.is_not_a_directory
    if operation == "read" and missing:
        return StorageNotFoundError("no such file", do_next="list the directory", path=uri)
    if failure.kind == "AccessControlException" and not missing:
        return ConfigError(
            message, do_next="give this user rights on the path (HADOOP_USER_NAME or Kerberos)", path=uri
        )
    if failure.kind in ("InvalidPathException", "PathComponentTooLongException", "MaxDirectoryItemsExceededException"):
        return UnsupportedError(
            message, do_next="HDFS does not accept this name: look at the data that the name is made from", path=uri
        )
    if isinstance(error, NotImplementedError):
        return UnsupportedError(message, do_next="use a directory without this HDFS feature", path=uri)
    return StorageError(message, do_next="check the NameNode and the DataNodes, then start again", path=uri)
