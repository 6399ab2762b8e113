"""Calls of the Hive Metastore's interface as values, and their outcomes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from thrift.Thrift import TApplicationException, TException
from thrift.transport.TTransport import TTransportException

from embedded.hive_client import hive_client
from tests.lakemetastore.judged.plain import Plain, to_plain, to_thrift

#: The error of a call after which the server closed the connection without an answer.
CLOSED = "connection closed"


class Call(msgspec.Struct, frozen=True):
    """A method and its arguments; structures are dictionaries that name their class (``plain``)."""

    method: str
    arguments: list[Plain]

    def __str__(self) -> str:
        return f"{self.method}({', '.join(map(_short, self.arguments))})"


class Outcome(msgspec.Struct, frozen=True):
    """What came of a call: the answer, or the exception's class and text."""

    answer: Plain = None
    error: str | None = None
    text: str | None = None

    def __str__(self) -> str:
        return _short(self.answer) if self.error is None else f"{self.error}: {self.text}"


def call(method: str, *arguments: object) -> Call:
    """A call; arguments are values of the generated classes or plain ones."""
    return Call(method, [to_plain(one) for one in arguments])


def outcomes(host: str, port: int, calls: Iterable[Call]) -> Iterator[Outcome]:
    """Make calls, one after the other, over one connection; over a new one when the server closes it."""
    left = list(calls)
    while left:
        with hive_client(host, port) as client:
            while left:
                made = _outcome(client, left.pop(0))
                yield made
                if made.error == CLOSED:
                    break


def _outcome(client: Any, made: Call) -> Outcome:  # noqa: ANN401 - the generated client has no types
    try:
        return Outcome(to_plain(getattr(client, made.method)(*map(to_thrift, made.arguments))))
    except TApplicationException as error:
        return Outcome(None, "TApplicationException", error.message)
    except TTransportException as error:
        if error.type == TTransportException.TIMED_OUT:
            raise
        return Outcome(None, CLOSED)
    except TException as error:
        if type(error).__module__.startswith("thrift."):
            raise
        return Outcome(None, type(error).__name__, getattr(error, "message", None))


def _short(value: Plain) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) < 400 else f"{text[:400]}..."
