"""Replies that the router makes itself, and names that it puts into messages in place of others."""

from __future__ import annotations

from collections.abc import Sequence

from thrift.Thrift import TApplicationException, TType

from lakemetastore.hive.generated import declared_exceptions, result_class
from lakemetastore.hive.message import application_exception, encode, reply
from lakemetastore.hive.wire import EXCEPTION, ThriftMessage
from lakemetastore.router.errors import RefusedCallError

#: Among the kinds of a refusal: an empty list, if the method answers with names.
EMPTY_LISTING = "no names"
#: A result struct whose list of names has no elements.
_NO_NAMES = b"\x0f\x00\x00\x0b\x00\x00\x00\x00\x00"


def refusal(request: ThriftMessage, error: RefusedCallError) -> bytes:
    """The reply that says why a call is refused: by an exception that the method declares, or by Thrift's own."""
    declared = {kind.__name__: (kind, field) for kind, field in declared_exceptions(request.name).items()}
    text = str(error).encode(errors="replace").decode()  # a name in it may be no text
    for kind in error.kinds:
        if kind == EMPTY_LISTING and _lists_names(request.name):
            return reply(request.name, request.sequence, _NO_NAMES)
        if kind in declared:
            raised, field = declared[kind]
            result = result_class(request.name)(**{field: raised(text)})
            return reply(request.name, request.sequence, encode(result))
    return application_exception(request.name, request.sequence, TApplicationException.INTERNAL_ERROR, text)


def _lists_names(method: str) -> bool:
    specs = getattr(result_class(method), "thrift_spec", None) or (None,)
    return bool(specs[0] and specs[0][1] == TType.LIST and specs[0][3][0] == TType.STRING)


def is_exception(message: bytes) -> bool:
    """Whether a reply is Thrift's own exception, such as for an unknown method."""
    return message[3] == EXCEPTION


def body_start(message: bytes) -> int:
    """Where the struct of a whole reply begins: behind version and kind, name, sequence number."""
    return 12 + int.from_bytes(message[4:8], "big")


def body_of(message: bytes) -> bytes:
    """The struct of a whole reply."""
    return message[body_start(message) :]


def spliced(message: bytes, start: int, changes: Sequence[tuple[int, int, bytes]]) -> bytes:
    """A message with other strings in it.

    Args:
        message: all its bytes.
        start: where its struct begins.
        changes: position of a string's text within the struct, its length, the new text; ascending.
    """
    parts: list[bytes | memoryview] = []
    view, done = memoryview(message), 0
    for position, length, text in changes:
        offset = start + position
        parts += (view[done : offset - 4], len(text).to_bytes(4, "big"), text)
        done = offset + length
    parts.append(view[done:])
    return b"".join(parts)
