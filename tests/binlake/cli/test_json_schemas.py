"""What commands print with ``--json`` has the schemas of docs/schemas, which are those of the values' types."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from binlake.proof.verify.result import Cell, DifferenceKind, RowDifference, TableResult
from docs.json_schemas import LINES, SCHEMAS, text
from tests.binlake.cli.fed_lake import FedLake


def stored(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    return schema


def test_the_schemas_are_those_of_the_types() -> None:
    assert {path.name for path in SCHEMAS.iterdir()} == {f"{name}.schema.json" for name in LINES}
    for name in LINES:
        assert (SCHEMAS / f"{name}.schema.json").read_text() == text(name), "run make docs"
        jsonschema.Draft202012Validator.check_schema(stored(name))


def test_commands_print_what_the_schemas_say(tmp_path: Path) -> None:
    lake = FedLake(tmp_path)
    lake.feed(3)
    lines = {"status-table": lake.json("status", "--no-kafka")[1:], "tables": lake.json("tables")}
    for name, printed in lines.items():
        assert len(printed) == 2
        for line in printed:
            jsonschema.validate(line, stored(name))
        for wrong in ({**printed[0], "more": 1}, {**printed[0], "table": 1}):  # the control
            with pytest.raises(jsonschema.ValidationError):
                jsonschema.validate(wrong, stored(name))


def test_what_verify_writes_has_its_schema() -> None:
    row = RowDifference(DifferenceKind.DIFFERS, {"id": "1"}, (Cell("v", "1", "2"),), "f:4")
    result = TableResult("shop.a", differences=[row])
    line = json.loads(json.dumps({**result.to_json(), "different": result.different}))
    jsonschema.validate(line, stored("verify"))
