"""Writes docs/schemas: the JSON schema of what commands print with ``--json``, from the types of the values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from binlake.cli.commands.reads.tables import TableSummary
from binlake.proof.verify.result import TableResult
from binlake.stream.monitoring.status import TableStatus

SCHEMAS = Path(__file__).parent / "schemas"
#: Name of the schema -> the type of a line, and the fields that the command adds.
LINES: dict[str, tuple[Any, dict[str, Any]]] = {
    "status-table": (TableStatus, {"table": {"type": "string"}}),
    "tables": (TableSummary, {}),
    "verify": (TableResult, {"different": {"type": "boolean"}}),
}


def schema(name: str) -> dict[str, Any]:
    """The schema of one line: all fields are there, and no others."""
    kind, more = LINES[name]
    described: dict[str, Any] = TypeAdapter(kind).json_schema(mode="serialization")
    described["properties"] |= more
    for one in (described, *described.get("$defs", {}).values()):
        if "properties" in one:
            one.pop("description", None)
            one["required"], one["additionalProperties"] = sorted(one["properties"]), False
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **described}


def text(name: str) -> str:
    """The schema as a file."""
    return json.dumps(schema(name), indent=1, sort_keys=True) + "\n"


def main() -> None:
    """Write all schemas."""
    SCHEMAS.mkdir(exist_ok=True)
    for name in LINES:
        (SCHEMAS / f"{name}.schema.json").write_text(text(name))


if __name__ == "__main__":
    main()
