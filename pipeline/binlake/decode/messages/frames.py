"""Splits ``{"schema": ..., "payload": ...}``; each schema is parsed once, not once for each message."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import repeat
from typing import cast

import msgspec

from binlake.decode.quarantine import Buffer
from binlake.decode.types.columns import ConnectField, parse_connect_schema

_START = b'{"schema":'
_NULL = b"null"


class _Frame(msgspec.Struct):
    schema: msgspec.Raw
    payload: msgspec.Raw


_FRAME = msgspec.json.Decoder(_Frame)


@dataclass
class Frames:
    """Splits messages, with a cache of the byte prefixes (schema and all bytes up to the payload)."""

    _known: dict[bytes, ConnectField | None] = field(default_factory=dict)
    _last: bytes = _START + b"\0"

    def open(self, text: bytes) -> tuple[Buffer, ConnectField | None]:
        """The payload and its schema; the text itself and None where there is no frame.

        The payload may have trailing text when the frame is malformed; its decoder then refuses it.
        """
        if not text.startswith(_START):
            return text, None
        prefix = self._last
        if not text.startswith(prefix):
            known_prefix = next((known for known in self._known if text.startswith(known)), None)
            if known_prefix is None:
                return self._first(text)
            prefix = self._last = known_prefix
        return text[len(prefix) : -1], self._known[prefix]

    def _first(self, text: bytes) -> tuple[Buffer, ConnectField | None]:
        try:
            frame = _FRAME.decode(text)
            raw = bytes(frame.schema)
            schema = None if raw == _NULL else parse_connect_schema(raw)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            return text, None
        payload = bytes(frame.payload)
        if text.endswith(payload + b"}"):
            self._last = text[: len(text) - len(payload) - 1]
            self._known[self._last] = schema
        return payload, schema

    def open_all(self, texts: list[bytes]) -> tuple[list[Buffer], list[ConnectField | None] | None]:
        """Payloads and schemas of many messages.

        The schemas are None where the first message has no frame: then either no message has one, or the sorting of
        messages finds those that have.
        """
        if not texts or not texts[0].startswith(_START):
            return cast("list[Buffer]", texts), None  # no copy: a copy would read each of them
        schema = self.open(texts[0])[1]
        prefix = self._last
        if all(map(bytes.startswith, texts, repeat(prefix))):
            return [text[len(prefix) : -1] for text in texts], [schema] * len(texts)
        opened = [self.open(text) for text in texts]
        return [payload for payload, _ in opened], [schema for _, schema in opened]


def open_loose(text: bytes) -> tuple[Buffer, ConnectField | None]:
    """Returns payload and schema of a message in any JSON layout; a text that is no frame comes back without schema."""
    try:
        frame = _FRAME.decode(text)
        raw = bytes(frame.schema)
        return bytes(frame.payload), None if raw == _NULL else parse_connect_schema(raw)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return text, None
