"""The forms in which a recording can be delivered: plain JSON, JSON with schemas, and Avro with a registry.

The recording holds JSON with schemas. Plain JSON is its payload; Avro is what Connect's AvroConverter would write.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from tests.binlake.decode.formats.avro_recordings import Writer
from tests.binlake.decode.formats.registry_server import Registry, serving
from tests.programs.oracle.recording import Record


class Form(StrEnum):
    """How Connect's converter writes records."""

    PLAIN = "plain"
    SCHEMA = "schema"
    AVRO = "avro"


class Encoder(Protocol):
    """Writes the records of one stream."""

    def encoded(self, record: Record) -> tuple[bytes | None, bytes | None]:
        """The record's key and value as they are in the topic."""

    def settings(self) -> dict[str, Any]:
        """What the stream's settings say of it."""


@contextlib.contextmanager
def encoding(form: Form) -> Iterator[Encoder]:
    """The encoder of a form; its registry answers for the length of the block."""
    if form is Form.AVRO:
        with serving(Registry()) as registry:
            yield _Avro(registry, Writer())
    else:
        yield _Plain() if form is Form.PLAIN else _Schema()


class _Plain:
    def encoded(self, record: Record) -> tuple[bytes | None, bytes | None]:
        return _payload(record.key), _payload(record.value)

    def settings(self) -> dict[str, Any]:
        return {}


class _Schema:
    def encoded(self, record: Record) -> tuple[bytes | None, bytes | None]:
        return _bytes(record.key), _bytes(record.value)

    def settings(self) -> dict[str, Any]:
        return {}


@dataclass(frozen=True)
class _Avro:
    registry: Registry
    writer: Writer

    def encoded(self, record: Record) -> tuple[bytes | None, bytes | None]:
        key, value = self.writer.encode(_bytes(record.key)), self.writer.encode(_bytes(record.value))
        self.registry.register(self.writer.ids)
        return key, value

    def settings(self) -> dict[str, Any]:
        return {"source": {"format": "debezium_avro", "registry": {"url": self.registry.url}}}


def _payload(text: str | None) -> bytes | None:
    if text is None:
        return None
    return json.dumps(json.loads(text)["payload"], ensure_ascii=False, separators=(",", ":")).encode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
