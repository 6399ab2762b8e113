"""Avro records in Confluent's wire format -> JSON: a zero byte, the id of the writer's schema, and the record."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import fastavro
import msgspec

from binlake.decode.messages.format_detection import AVRO_HEAD_BYTES
from binlake.decode.options import DecodeOptions
from binlake.decode.quarantine import Fault, Reason
from binlake.decode.templates.avro_check import AvroCheck


class ReadSchema(Protocol):
    """A schema that is ready for reading."""

    @property
    def parsed(self) -> Any:  # noqa: ANN401 - fastavro's
        """The schema as fastavro has parsed it, without logical types."""

    @property
    def check(self) -> AvroCheck:
        """What tells whether a record is valid."""


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
    fault = schema.check.fault(value, start, named)
    if fault is not None:
        raise RefusedRecordError(fault)
    return msgspec.json.encode(fastavro.schemaless_reader(io.BytesIO(value[start:]), schema.parsed, None))
