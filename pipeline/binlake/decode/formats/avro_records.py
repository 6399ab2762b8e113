"""Avro records in Confluent's wire format -> JSON: a zero byte, the id of the writer's schema, and the record."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import fastavro
import msgspec

from binlake.decode.messages.format_detection import AVRO_HEAD_BYTES
from binlake.decode.options import DecodeOptions
from binlake.decode.quarantine import Fault, Reason

_DEEPEST = 16
#: What fastavro's errors say of the object that it reads: each attempt would tell the same fault in other words.
_ADDRESS = re.compile(r" from <_io\.BytesIO object at 0x[0-9a-f]+>")
_BAD = (ValueError, EOFError, IndexError, KeyError, TypeError, OverflowError, RecursionError, UnicodeDecodeError)


class ReadSchema(Protocol):
    """A schema that is ready for reading. ``floats``: whether any number in it is a float."""

    @property
    def parsed(self) -> Any:  # noqa: ANN401 - fastavro's
        """The schema as fastavro has parsed it, without logical types."""

    @property
    def floats(self) -> bool:
        """Tells whether any number in the schema is a float."""


S = TypeVar("S", bound=ReadSchema)


@dataclass
class RefusedRecordError(Exception):
    """A record that cannot be read."""

    fault: Fault


@dataclass
class Opener(Generic[S]):
    """Converts Avro values to JSON and caches the schemas.

    ``parse``: makes a schema of the registry's text; raises ValueError if it cannot be used.
    """

    options: DecodeOptions
    subject: str
    parse: Callable[[str], S]
    _known: dict[int, S | Fault] = field(default_factory=dict)

    def open(self, value: bytes) -> tuple[bytes, S]:
        """The JSON of a value and its schema. Raises Refused."""
        schema_id = int.from_bytes(value[1:AVRO_HEAD_BYTES], "big")
        schema = self.schema(schema_id)
        if isinstance(schema, Fault):
            raise RefusedRecordError(schema)
        return json_of(value, AVRO_HEAD_BYTES, schema, f"schema {schema_id}"), schema

    def schema(self, schema_id: int) -> S | Fault:
        """The schema of an id, or why there is none."""
        if schema_id not in self._known:
            self._known[schema_id] = self._schema(schema_id)
        return self._known[schema_id]

    def _schema(self, schema_id: int) -> S | Fault:
        registry = self.options.registry
        if registry is None:
            detail = f"the message is Avro with schema id {schema_id}, and no registry is set: set source.registry.url"
            return Fault(Reason.UNKNOWN_SCHEMA_ID, detail)
        text = registry.schema(schema_id, self.subject)
        where = f"schema id {schema_id} (subject {self.subject}) at {registry.describe()}"
        if text is None:
            return Fault(Reason.UNKNOWN_SCHEMA_ID, f"{where}: the registry does not have it")
        try:
            return self.parse(text)
        except ValueError as error:
            return Fault(Reason.UNSUPPORTED_TYPE, f"{where}: {error}"[:300])


def json_of(value: bytes, start: int, schema: ReadSchema, named: str) -> bytes:
    """The record from ``start`` to the end of a value as JSON. Raises Refused. ``named``: the schema, for messages."""
    source, size = io.BytesIO(value[start:]), len(value) - start
    try:
        record = fastavro.schemaless_reader(source, schema.parsed, None)
        if source.tell() != size:
            raise ValueError(f"{size - source.tell()} bytes are left over")
        if schema.floats and not _finite(record, _DEEPEST):
            raise RefusedRecordError(Fault(Reason.NAN, "a number that is not finite"))
        return msgspec.json.encode(record)
    except _BAD as error:
        detail = f"no record of {named}: {type(error).__name__} {_ADDRESS.sub('', str(error))}"
        raise RefusedRecordError(Fault(Reason.MALFORMED_AVRO, detail[:300])) from error


def _finite(value: Any, depth: int) -> bool:  # noqa: ANN401 - what Avro holds
    """Whether the value contains no NaN and no infinite float: JSON would turn them into null."""
    if isinstance(value, float):
        return math.isfinite(value)
    parts: Any
    if isinstance(value, dict):
        parts = value.values()
    elif isinstance(value, list):
        parts = value
    else:
        return True
    return not depth or all(_finite(part, depth - 1) for part in parts if isinstance(part, float | dict | list))
