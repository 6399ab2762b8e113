"""The recorded events with embedded schemas, as Connect's AvroConverter would have written them."""

from __future__ import annotations

import base64
import dataclasses
import io
import json
from typing import Any

import fastavro

from binlake.decode.changes import RawRecords

_AVRO = {
    "int8": "int",
    "int16": "int",
    "int32": "int",
    "int64": "long",
    "float": "float",
    "double": "double",
    "boolean": "boolean",
    "string": "string",
    "bytes": "bytes",
}
_LOGICAL = {
    "org.apache.kafka.connect.data.Decimal": "decimal",
    "org.apache.kafka.connect.data.Date": "date",
    "org.apache.kafka.connect.data.Time": "time-millis",
    "org.apache.kafka.connect.data.Timestamp": "timestamp-millis",
}
Fields = dict[str, Any]


class Writer:
    """Encodes values, and registers their schemas: text -> id from 1 on."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}
        self._parsed: dict[str, Any] = {}

    def encode(self, text: bytes | None) -> bytes | None:
        """A JSON record ``{schema, payload}`` in Confluent's wire format."""
        if text is None:
            return None
        frame = json.loads(text)
        return self.message(avro_of(frame["schema"]), _value(frame["schema"], frame["payload"]))

    def message(self, schema: Any, value: Any) -> bytes:  # noqa: ANN401 - Avro
        name = json.dumps(schema)
        if name not in self._parsed:
            self._parsed[name] = fastavro.parse_schema(_plain(schema))
        schema_id = self.ids.setdefault(name, len(self.ids) + 1)
        out = io.BytesIO(b"\0" + schema_id.to_bytes(4, "big"))
        out.seek(5)
        fastavro.schemaless_writer(out, self._parsed[name], value)
        return out.getvalue()

    def records(self, whole: RawRecords) -> RawRecords:
        return dataclasses.replace(
            whole, keys=[self.encode(key) for key in whole.keys], values=[self.encode(value) for value in whole.values]
        )


def avro_of(node: Fields, met: set[str] | None = None) -> Any:  # noqa: ANN401 - Avro
    """A Connect schema as AvroConverter writes it: names, parameters, references to records met before."""
    met = set() if met is None else met
    if node["type"] == "struct":
        found = _record(node, met)
    else:
        found = {"type": _AVRO[node["type"]]} if node["type"] in _AVRO else _several(node, met)
        if node["type"] in ("int8", "int16"):
            found["connect.type"] = node["type"]
        if node.get("name"):
            found |= {"connect.version": node.get("version", 1), "connect.name": node["name"]}
            if node.get("parameters"):
                found["connect.parameters"] = node["parameters"]
            if node["name"] in _LOGICAL:
                found["logicalType"] = _LOGICAL[node["name"]]
            if found.get("logicalType") == "decimal":
                parameters = node["parameters"]
                precision = int(parameters.get("connect.decimal.precision", 64))
                found |= {"scale": int(parameters["scale"]), "precision": precision}
        if found.keys() == {"type"}:
            found = found["type"]
    return ["null", found] if node.get("optional") else found


def _several(node: Fields, met: set[str]) -> Fields:
    if node["type"] == "map":
        return {"type": "map", "values": avro_of(node["values"], met)}
    return {"type": "array", "items": avro_of(node["items"], met)}


def _record(node: Fields, met: set[str]) -> Any:  # noqa: ANN401 - Avro
    name = node.get("name") or "ConnectDefault"
    if name in met:
        return name
    met.add(name)
    fields = [{"name": field["field"], "type": avro_of(field, met)} for field in node["fields"]]
    space, _, short = name.rpartition(".")
    return {"type": "record", "name": short, "namespace": space, "fields": fields, "connect.name": name}


def _plain(node: Any) -> Any:  # noqa: ANN401 - Avro
    """Without logical types: values are given as they are on the wire."""
    if isinstance(node, dict):
        return {k: _plain(v) for k, v in node.items() if k != "logicalType"}
    return [_plain(part) for part in node] if isinstance(node, list) else node


def _value(node: Fields, value: Any) -> Any:  # noqa: ANN401 - JSON
    if value is None:
        return None
    if node["type"] == "struct":
        return {field["field"]: _value(field, value.get(field["field"])) for field in node["fields"]}
    if node["type"] == "array":
        return [_value(node["items"], part) for part in value]
    if node["type"] == "map":
        return {name: _value(node["values"], part) for name, part in value.items()}
    return base64.b64decode(value) if node["type"] == "bytes" else value
