"""Writes docs/schemas: the JSON schema of what each command prints with ``--json``, from the types of the values.

A line has one of the kinds of its command. All fields of a kind are there, and no others; those whose names end with ?
may be missing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import TypeAdapter

from docs.json_lines import ANY_OBJECT, LINES, LineKind

SCHEMAS = Path(__file__).parent / "schemas"
_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def _described(kind: Any, shared: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401 - a type
    """The schema of a type, of a list of one, or of a kind of line. ``shared``: takes the definitions it refers to."""
    if isinstance(kind, list):
        return {"type": "array", "items": _described(kind[0], shared)}
    if isinstance(kind, LineKind):
        return _object(kind, shared)
    if isinstance(kind, Mapping):
        return _object(LineKind(more=kind), shared)
    described: dict[str, Any] = TypeAdapter(kind).json_schema(mode="serialization")
    shared |= {name: _closed(one) for name, one in described.pop("$defs", {}).items()}
    return _closed(described)


def _closed(described: dict[str, Any]) -> dict[str, Any]:
    """An object with all fields and no others."""
    if "properties" in described:
        described.pop("description", None)
        described["required"], described["additionalProperties"] = sorted(described["properties"]), False
    return described


def _object(line: LineKind, shared: dict[str, Any]) -> dict[str, Any]:
    own = {} if line.of is None else {one.name: get_type_hints(line.of)[one.name] for one in fields(line.of)}
    types = {name: kind for name, kind in own.items() if name not in line.without} | dict(line.more)
    properties = {name.rstrip("?"): _described(kind, shared) for name, kind in types.items()}
    required = sorted(name for name in types if not name.endswith("?"))
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def schema(command: str) -> dict[str, Any]:
    """The schema of a line of a command."""
    kinds: Sequence[LineKind] = LINES[command]
    shared: dict[str, Any] = {}
    lines = [ANY_OBJECT if kind.rows else _object(kind, shared) for kind in kinds]
    described = lines[0] if len(lines) == 1 else {"anyOf": lines}
    return {"$schema": _DRAFT, "title": f"binlake {command}", **({"$defs": shared} if shared else {}), **described}


def path(command: str) -> Path:
    """The file of the schema of a command."""
    return SCHEMAS / f"{command.replace(' ', '-')}.schema.json"


def text(command: str) -> str:
    """The schema as a file."""
    return json.dumps(schema(command), indent=1, sort_keys=True) + "\n"


def main() -> None:
    """Write all schemas."""
    SCHEMAS.mkdir(exist_ok=True)
    for stale in set(SCHEMAS.iterdir()) - set(map(path, LINES)):
        stale.unlink()
    for command in LINES:
        path(command).write_text(text(command))


if __name__ == "__main__":
    main()
