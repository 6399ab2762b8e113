"""Whole messages out of a stream of bytes in Thrift's unframed binary protocol.

The protocol says no length, so the end of a message is found by reading over its struct. The C decoder does that:
given a class without fields it skips every field.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO

from thrift.protocol import fastbinary
from thrift.protocol.TProtocol import TProtocolException

from hudilake.errors import BadInputError
from lakemetastore.hive.limits import Limits

CALL, REPLY, EXCEPTION, ONEWAY = 1, 2, 3, 4
_VERSION = 0x8001
_LONGEST_NAME = 256
_INT = struct.Struct("!i")


class MalformedMessageError(BadInputError):
    """Bytes that are no message of the binary protocol, or a message over a limit. The connection is of no more use."""


@dataclass(frozen=True, slots=True)
class ThriftMessage:
    """A message: ``raw`` is all of it, ``body`` its struct (the arguments of a call, the result of a reply)."""

    name: str
    kind: int
    sequence: int
    raw: bytes
    start: int

    @property
    def body(self) -> bytes:
        """The bytes of the struct."""
        return self.raw[self.start :]


_ADVICE = "speak Thrift's binary protocol without frames (no HTTP, no SASL; TLS only if the server has it)"


class _EmptyStruct:
    """A struct of which every field is skipped."""


_SKIP_ALL = [_EmptyStruct, ()]


class MessageReader:
    """Reads messages one after another.

    Args:
        receive: gives some bytes that arrived, at least one; ``b""`` at the end of the stream. Its argument says
            whether the bytes begin a message.
        limits: see `Limits`.

    The public names besides ``read`` are what Thrift's C decoder asks its protocol and its transport for.
    """

    def __init__(self, receive: Callable[[bool], bytes], limits: Limits) -> None:
        self._receive = receive
        self._limits = limits
        self._rest = b""
        self.trans = self
        self.string_length_limit = limits.string
        self.container_length_limit = limits.container
        self.cstringio_buf = BytesIO()

    def read(self) -> ThriftMessage | None:
        """The next message; None at the end of the stream.

        Raises:
            MalformedMessageError: the bytes are no message, end within one, or exceed a limit.
        """
        data = self._rest or self._receive(True)
        if not data:
            return None
        self.cstringio_buf = BytesIO(data)
        try:
            name, kind, sequence = self._header()
            start = self.cstringio_buf.tell()
            fastbinary.decode_binary(_EmptyStruct(), self, _SKIP_ALL)
        except (EOFError, ValueError, TypeError, OverflowError, TProtocolException) as error:
            raise MalformedMessageError(f"A message cannot be read: {error}", do_next=_ADVICE) from error
        end = self.cstringio_buf.tell()
        view = self.cstringio_buf.getbuffer()
        raw, self._rest = bytes(view[:end]), bytes(view[end:])
        return ThriftMessage(name, kind, sequence, raw, start)

    def cstringio_refill(self, partial: bytes, wanted: int) -> BytesIO:
        """Called by the C decoder: the buffer with at least ``wanted`` bytes from where ``partial`` begins."""
        offset = self.cstringio_buf.tell() - len(partial)
        have = len(self.cstringio_buf.getbuffer())
        if offset + wanted > self._limits.message:
            raise ValueError(f"it has more than {self._limits.message} bytes")
        self.cstringio_buf.seek(0, 2)
        while have < offset + wanted:
            piece = self._receive(False)
            if not piece:
                raise EOFError(f"the stream ends after {have} bytes of it")
            have += self.cstringio_buf.write(piece)
        self.cstringio_buf.seek(offset)
        return self.cstringio_buf

    def _header(self) -> tuple[str, int, int]:
        first = self._int()
        if first >= 0:  # the older form without a version: name, type, sequence
            name = self._name(first)
            return name, self._take(1)[0], self._int()
        if first >> 16 & 0xFFFF != _VERSION:
            raise ValueError("it does not begin with the version of the binary protocol")
        return self._name(self._int()), first & 0xFF, self._int()

    def _name(self, length: int) -> str:
        if not 0 <= length <= _LONGEST_NAME:
            raise ValueError(f"its name has {length} bytes")
        return self._take(length).decode()

    def _int(self) -> int:
        value: int = _INT.unpack(self._take(4))[0]
        return value

    def _take(self, count: int) -> bytes:
        taken = self.cstringio_buf.read(count)
        return taken if len(taken) == count else self.cstringio_refill(taken, count).read(count)
