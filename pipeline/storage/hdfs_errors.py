"""What the HDFS client's errors mean, and which of them pass if one waits a little."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from pipeline.errors import BinlakeError, ConfigError, UnsupportedError
from pipeline.storage.base import StorageError, StorageNotFoundError
from pipeline.storage.redaction import redact

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
class Explained:
    """A client error.

    Attributes:
        kind: the Java class that the NameNode named, without its package; empty if it named none.
        text: the first line of what was said.
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
        """True if the path leads through a file (the NameNode words it as a refusal of access)."""
        return _NOT_A_DIRECTORY in self.text


def explain(error: Exception) -> Explained:
    """Take a client error apart."""
    said = str(error)
    matched = _RPC.match(said)
    kind, said = (matched["type"], matched["text"]) if matched else ("", said)
    first_line = re.split(r"\n|\\n", said, maxsplit=1)[0]
    # A refused connection the client has by then tried again for minutes itself.
    dropped = type(error) is OSError and "refused" not in said
    return Explained(re.split(r"[.$]", kind)[-1], first_line, dropped)


def retrying(call: Callable[[], T]) -> T:
    """Make a call, and again with growing pauses (about five seconds in all) while its errors are such as pass.

    The call must bear to be done twice: the answer to the first may be what was lost.
    """
    for attempt in range(_ATTEMPTS - 1):
        try:
            return call()
        except CLIENT_ERRORS as error:
            if not explain(error).passes:
                raise
            time.sleep(_FIRST_PAUSE_S * 2**attempt * random.uniform(0.5, 1.0))  # noqa: S311 - jitter
    return call()


def translate(error: Exception, operation: str, uri: str, options: Iterable[tuple[str, str]]) -> BinlakeError:
    """A client error in binlake's words.

    Args:
        error: one of ``CLIENT_ERRORS``.
        operation: the verb, for the message.
        uri: the file or directory.
        options: the storage's; its secrets are kept out of the message.
    """
    found = explain(error)
    what = f"cannot {operation}: {redact(found.text, (v for k, v in options if _SECRET.search(k)))}"
    missing = isinstance(error, (FileNotFoundError, IsADirectoryError)) or found.is_not_a_directory
    if operation == "read" and missing:
        return StorageNotFoundError("no such file", do_next="list the directory", path=uri)
    if found.kind == "AccessControlException" and not missing:
        return ConfigError(what, do_next="give this user rights there (HADOOP_USER_NAME or Kerberos)", path=uri)
    if found.kind in ("InvalidPathException", "PathComponentTooLongException", "MaxDirectoryItemsExceededException"):
        return UnsupportedError(what, do_next="HDFS takes no such name: look at the data it is made from", path=uri)
    if isinstance(error, NotImplementedError):
        return UnsupportedError(what, do_next="use a directory without this HDFS feature", path=uri)
    return StorageError(what, do_next="look at the NameNode and the DataNodes, then start again", path=uri)
