"""A recording: what Debezium wrote for a script, in its own order over all topics, and the server's final rows."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo.truth import Cell, TruthColumn, TruthTable
from tests.programs.oracle.script import Script, parse


@dataclass(frozen=True)
class Record:
    """A Kafka record as Connect's JsonConverter writes it with ``schemas.enable``. ``topic`` is None for DDL."""

    topic: str | None
    key: str | None
    value: str | None


@dataclass(frozen=True)
class Recording:
    """``database``: of the script at the server. ``created``: SHOW CREATE TABLE by table."""

    script: Script
    database: str
    records: tuple[Record, ...]
    truth: tuple[TruthTable, ...]
    created: Mapping[str, str]

    @property
    def name(self) -> str:
        """The script's name."""
        return self.script.name

    def columns_ever(self) -> frozenset[str]:
        """The names of all columns that rows or definitions of this recording have had."""
        found: set[str] = set()
        for record in self.records:
            payload = json.loads(record.value)["payload"] if record.value is not None else {}
            for image in (payload.get("before"), payload.get("after")):
                found |= (image or {}).keys()
            for change in payload.get("tableChanges") or ():
                found |= {column["name"] for column in (change.get("table") or {}).get("columns", ())}
        return frozenset(found)

    def save(self, path: Path) -> None:
        """Write it as compressed JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        document = {
            "name": self.name,
            "script": self.script.text(),
            "database": self.database,
            "records": [[r.topic, r.key, r.value] for r in self.records],
            "truth": [_table_json(table) for table in self.truth],
            "created": dict(self.created),
        }
        path.write_bytes(gzip.compress(json.dumps(document, ensure_ascii=False).encode(), mtime=0))

    @staticmethod
    def load(path: Path) -> Recording:
        """Read what ``save`` wrote."""
        document = json.loads(gzip.decompress(path.read_bytes()))
        return Recording(
            parse(document["name"], document["script"]),
            document["database"],
            tuple(Record(*record) for record in document["records"]),
            tuple(map(_table, document["truth"])),
            document["created"],
        )


def _table_json(table: TruthTable) -> dict[str, Any]:
    return {
        "database": table.database,
        "table": table.table,
        "columns": [[c.name, c.type, c.nullable] for c in table.columns],
        "key": list(table.key),
        "rows": [[_cell_json(cell) for cell in row] for row in table.rows],
        "floats": dict(table.exact_floats),
    }


def _cell_json(cell: Cell) -> object:
    return {"bytes": base64.b64encode(cell).decode()} if isinstance(cell, bytes) else cell


def _table(document: Mapping[str, Any]) -> TruthTable:
    rows = [tuple(_cell(cell) for cell in row) for row in document["rows"]]
    columns = tuple(TruthColumn(*column) for column in document["columns"])
    return TruthTable(
        document["database"], document["table"], columns, tuple(document["key"]), rows, document["floats"]
    )


def _cell(value: str | dict[str, str] | None) -> Cell:
    return base64.b64decode(value["bytes"]) if isinstance(value, dict) else value
