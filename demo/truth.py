"""The final content of the source's tables, as the MySQL server's own text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: A cell of ``SELECT *``: NULL, the server's text (UTC session), or bytes.
Cell = str | bytes | None

_LENGTH = re.compile(r"\((\d+)")


@dataclass(frozen=True, slots=True)
class TruthColumn:
    """A column: its name and its MySQL type as ``information_schema`` spells it (``decimal(12,2)``)."""

    name: str
    type: str
    nullable: bool = True

    @property
    def data_type(self) -> str:
        """The type's bare name, in lower case."""
        return re.split(r"[\s(]", self.type.lower(), maxsplit=1)[0]

    @property
    def length(self) -> int:
        """The first number in brackets, 1 without brackets (as for BIT)."""
        match = _LENGTH.search(self.type)
        return int(match[1]) if match else 1

    @property
    def unsigned(self) -> bool:
        """Whether the type is UNSIGNED."""
        return "unsigned" in self.type.lower()


@dataclass(frozen=True)
class TruthTable:
    """A table's final rows. ``key`` is empty for a table without a key.

    ``exact_floats`` has, for FLOAT columns, each row's value as an exact double besides the rounded text in ``rows``.
    """

    database: str
    table: str
    columns: tuple[TruthColumn, ...]
    key: tuple[str, ...]
    rows: list[tuple[Cell, ...]]
    exact_floats: Mapping[str, list[str | None]] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"


def load_truth(directory: Path, database: str) -> Iterator[TruthTable]:
    """The tables of a ``truth`` directory: ``tables.json`` and a ``<table>.jsonl`` each."""
    described = json.loads((directory / "tables.json").read_text(encoding="utf-8"))
    for name, table in described.items():
        lines = (directory / table["file"]).read_text(encoding="utf-8").splitlines()
        yield _table(database, name, table, [json.loads(line) for line in lines])


def _table(database: str, name: str, described: Mapping[str, Any], rows: list[dict[str, Any]]) -> TruthTable:
    columns = tuple(TruthColumn(c["name"], c["type"], c["nullable"] == "YES") for c in described["columns"])
    exact = {c.name: [r.get(f"{c.name}@double") for r in rows] for c in columns if c.data_type == "float"}
    cells = [tuple(_cell(r[c.name]) for c in columns) for r in rows]
    return TruthTable(database, name, columns, tuple(described["primary_key"]), cells, exact)


def _cell(value: str | dict[str, str] | None) -> Cell:
    return bytes.fromhex(value["hex"]) if isinstance(value, dict) else value
