"""The tables of the live database, with their current rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from demo import live_columns as c
from demo.truth import TruthTable

DATABASE = "live"
PREFIX = "live"

Row = dict[str, Any]
Key = tuple[Any, ...]


@dataclass
class LiveTable:
    """A table: its columns, its key, its rows by key. ``prefix`` begins its topic's name."""

    name: str
    columns: tuple[c.LiveColumn, ...]
    key: tuple[str, ...]
    rows: dict[Key, Row] = field(default_factory=dict)
    prefix: str = PREFIX

    @property
    def topic(self) -> str:
        """The Kafka topic of the table's changes."""
        return f"{self.prefix}.{DATABASE}.{self.name}"

    def key_of(self, row: Row) -> Key:
        """The values of the key columns."""
        return tuple(row[k] for k in self.key)

    def wire(self, row: Row, names: tuple[str, ...] | None = None) -> dict[str, Any]:
        """The row (or some columns of it) in Debezium's JSON form."""
        chosen = [col for col in self.columns if names is None or col.name in names]
        return {col.name: None if row[col.name] is None else col.wire(row[col.name]) for col in chosen}

    def truth(self) -> TruthTable:
        """The rows as ``SELECT *`` would now return them."""
        cells = [
            tuple(None if r[col.name] is None else col.text(r[col.name]) for col in self.columns)
            for r in self.rows.values()
        ]
        return TruthTable(DATABASE, self.name, tuple(col.truth() for col in self.columns), self.key, cells)

    def schema(self) -> dict[str, Any]:
        """The table in the form of the settings' ``source.schemas``."""
        return {"columns": {col.name: col.type for col in self.columns}, "key": list(self.key)}


def accounts() -> LiveTable:
    """Accounts that are updated often, sometimes change their id, and move between tiers."""
    columns = (
        c.bigint_unsigned("id"),
        c.text("owner", "varchar(60)"),
        c.decimal("balance", 15, 2),
        c.decimal("rate", 30, 12),
        c.text("tier", "enum('basic','silver','gold')"),
        c.bit("vip"),
        c.day("opened"),
        c.timestamp6("updated"),
    )
    return LiveTable("accounts", columns, ("id",))


def events() -> LiveTable:
    """Readings of devices, mostly inserted, some updated or deleted later."""
    columns = (
        c.text("device", "varchar(16)"),
        c.integer("seq"),
        c.datetime6("at"),
        c.text("kind", "varchar(20)"),
        c.document("payload"),
        c.double("reading"),
        c.time3("shift"),
        c.blob("raw"),
    )
    return LiveTable("events", columns, ("device", "seq"))
