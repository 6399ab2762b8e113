"""The structs of messages as values, and whole replies as bytes."""

from __future__ import annotations

import struct
from io import BytesIO

from thrift.protocol import fastbinary
from thrift.Thrift import TApplicationException

from lakemetastore.hive.generated import Struct
from lakemetastore.hive.wire import EXCEPTION, REPLY

_VERSION_1 = 0x80010000
_WORD = struct.Struct("!I")
_APPLICATION_EXCEPTION_SPEC = (None, (1, 11, "message", "UTF8", None), (2, 8, "type", None, None))


class _Bytes:
    """A struct's bytes as the C decoder asks for them. The bytes were read over once, so that limits hold."""

    string_length_limit = None
    container_length_limit = None

    def __init__(self, data: bytes) -> None:
        self.trans = self
        self.cstringio_buf = BytesIO(data)

    def cstringio_refill(self, partial: bytes, wanted: int) -> BytesIO:
        raise EOFError(f"{wanted} bytes are asked for where {len(partial)} are")


def decode(body: bytes, kind: type) -> Struct:
    """The value of a generated class out of a struct's bytes. Unknown fields are left out, missing ones have defaults.

    Raises:
        TypeError, ValueError, EOFError: a field has another type than the class says.
    """
    value = kind()
    fastbinary.decode_binary(value, _Bytes(body), [kind, kind.thrift_spec])  # type: ignore[attr-defined]
    return value


def encode(value: object) -> bytes:
    """The bytes of a value of a generated class."""
    kind = type(value)
    encoded: bytes = fastbinary.encode_binary(value, [kind, kind.thrift_spec])  # type: ignore[attr-defined]
    return encoded


def head(name: str, kind: int, sequence: int) -> bytes:
    """What stands before the struct of a message."""
    text = name.encode()
    return b"".join(
        (_WORD.pack(_VERSION_1 | kind), _WORD.pack(len(text)), text, _WORD.pack(sequence & 0xFFFFFFFF)),
    )


def reply_head(name: str, sequence: int) -> bytes:
    """What stands before the result struct of a reply."""
    return head(name, REPLY, sequence)


def reply(name: str, sequence: int, result: bytes) -> bytes:
    """A reply with the bytes of its result struct."""
    return reply_head(name, sequence) + result


def unknown_method(name: str, sequence: int) -> bytes:
    """What Thrift's servers answer to a method that they do not have (the text is that of Java's TBaseProcessor)."""
    return application_exception(name, sequence, TApplicationException.UNKNOWN_METHOD, f"Invalid method name: '{name}'")


def internal_error(name: str, sequence: int) -> bytes:
    """What Thrift's servers answer when a handler fails with something that the method does not declare."""
    return application_exception(
        name, sequence, TApplicationException.INTERNAL_ERROR, f"Internal error processing {name}"
    )


def protocol_error(name: str, sequence: int, text: str) -> bytes:
    """The answer to arguments that are a struct, but not the method's."""
    return application_exception(name, sequence, TApplicationException.PROTOCOL_ERROR, text)


def application_exception(name: str, sequence: int, kind: int, text: str) -> bytes:
    """A reply that is Thrift's own exception. ``kind``: a constant of TApplicationException."""
    value = TApplicationException(kind, text)
    body: bytes = fastbinary.encode_binary(value, [TApplicationException, _APPLICATION_EXCEPTION_SPEC])
    return head(name, EXCEPTION, sequence) + body
