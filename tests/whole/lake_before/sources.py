"""The sources of the lake: a shop and a bank that write what connectors write, and know their rows."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from tests.binlake.schema.ddl_source import EPOCH_S, DdlSource, Row, Table
from tests.whole.lake_before.log import TimedLog

SALT = "salt-of-the-lake"
ORDERS = {"id": "bigint", "owner": "varchar(40)", "price": "decimal(12,2)", "day": "date"}
PARTS = {"id": "int", "region": "varchar(10)", "stock": "int"}
#: Tables whose columns the settings declare; all others are known by DDL.
DECLARED: dict[str, dict[str, str]] = {
    "orders": ORDERS,
    "parts": PARTS,
    "visits": {"id": "int", "page": "varchar(20)"},
    "items_00": {"id": "int", "title": "varchar(20)"},
    "items_01": {"id": "int", "title": "varchar(20)"},
    "people": {"id": "int", "name": "varchar(20)", "town": "varchar(20)"},
    "slow": {"id": "int", "note": "varchar(20)"},
}
KEYLESS = "visits"
MAXWELL_TOPIC = "maxwell"


@dataclass
class Shop(DdlSource):
    """Debezium's topics ``s.shop.<table>``, and table ``notes`` as Maxwell writes it."""

    log: TimedLog = field(default_factory=TimedLog)
    notes: dict[int, Row] = field(default_factory=dict)
    note_columns: list[str] = field(default_factory=lambda: ["id", "text"])
    name = "shop"

    def __post_init__(self) -> None:
        for table, columns in DECLARED.items():
            self.tables[table] = Table(dict(columns))

    def visit(self, key: int, page: str, *, partition: int | None = None) -> None:
        """A row of ``visits``; many of them are equal. ``key``: what ``leave`` knows it by."""
        self.tables[KEYLESS].rows[key] = {"id": key % 3, "page": page}
        self._visit("c", self.tables[KEYLESS].rows[key], None, partition)

    def leave(self, key: int, *, partition: int | None = None) -> None:
        """A row of ``visits`` goes."""
        self._visit("d", None, self.tables[KEYLESS].rows.pop(key), partition)

    def _visit(self, op: str, after: Row | None, before: Row | None, partition: int | None) -> None:
        if partition is not None and (self.pos // 10 + 1) % 2 != partition:
            self.pos += 10
        self.event(KEYLESS, op, after, before, 0)

    def stray(self, table: str, key: int, **values: Any) -> None:  # noqa: ANN401 - any JSON
        """An insert that has a column of which the lake does not know yet."""
        held = self.tables[table]
        held.rows[key] = dict.fromkeys(held.columns) | values | {"id": key}
        self.event(table, "c", held.rows[key], None, key)

    def widen(self, table: str, name: str) -> None:
        """From now on all events of a table have such a column."""
        self.tables[table].columns[name] = "varchar(10)"

    def event(self, table: str, op: str, after: Row | None, before: Row | None, key: int, kind: str = "") -> None:
        """A row event; one of ``visits`` has no key, and its position decides on the partition."""
        value = self._value(table, op, after, before)
        keyed = table != KEYLESS and op != "t"
        partition = self.pos // 10 % 2 if table == KEYLESS else key % 2
        self.log.add(f"s.shop.{table}", value, {"id": key} if keyed else None, partition)

    def _value(self, table: str, op: str, after: Row | None, before: Row | None) -> dict[str, Any]:
        return {"before": before, "after": after, "source": self._source(table), "op": op, "ts_ms": 0}

    def note(self, key: int, text: str | None, **more: str) -> None:
        """Write a row of ``notes``, or take it away where there is no text."""
        old = self.notes.pop(key, None)
        row = {"id": key, "text": text} | more if text is not None else old
        if text is not None and row is not None:
            self.notes[key] = row
        what = "delete" if text is None else "insert" if old is None else "update"
        changed = {n: v for n, v in (old or {}).items() if row is not None and row.get(n) != v}
        self._maxwell(what, {"data": row} | ({"old": changed} if what == "update" else {}))

    def define_notes(self, *more: str) -> None:
        """CREATE TABLE, or ALTER TABLE that adds columns."""
        self.note_columns += more
        columns = [{"name": n, "type": "varchar", "charset": "utf8mb4"} for n in self.note_columns if n != "id"]
        listed = [{"name": "id", "type": "int", "signed": True}, *columns]
        definition = {"database": "shop", "table": "notes", "columns": listed, "primary-key": ["id"]}
        adds = ", ".join(f"ADD COLUMN {name} varchar(20)" for name in more)
        sql = f"ALTER TABLE notes {adds}" if more else "CREATE TABLE notes (id int PRIMARY KEY, text varchar(20))"
        self._maxwell("table-alter" if more else "table-create", {"sql": sql, "def": definition, "old": definition})

    def _maxwell(self, what: str, body: dict[str, Any]) -> None:
        self.pos += 10
        seconds = EPOCH_S + self.pos
        head: dict[str, Any] = {
            "database": "shop",
            "table": "notes",
            "type": what,
            "position": f"{self.file}:{self.pos}",
        }
        row = what in ("insert", "update", "delete")
        head |= {"ts": seconds, "xid": self.pos, "commit": True} if row else {"ts": seconds * 1000}
        self.log.add(MAXWELL_TOPIC, json.dumps(head | body).encode(), None)

    def expected(self) -> dict[str, tuple[list[str], list[Row]]]:
        """Of each lake table, by its path: the columns to look at and the rows, in canonical values."""
        found = {f"shop/{name}": shown(table) for name, table in self.tables.items() if not name.startswith("items")}
        shards = {name[-2:]: table for name, table in self.tables.items() if name.startswith("items")}
        items = [row | {"shard": shard} for shard, table in shards.items() for row in table.rows.values()]
        found["shop/items"] = (["shard", "id", "title"], items)
        _, people = found["shop/people"]
        for row in people:
            row |= {"name": masked(row["name"]), "town": "***"}
        found["shop/notes"] = (
            self.note_columns,
            [{n: row.get(n) for n in self.note_columns} for row in self.notes.values()],
        )
        return found


def masked(text: str) -> str:
    """What is stored of a masked text."""
    return hmac.new(SALT.encode(), text.encode(), hashlib.sha256).hexdigest()


def shown(table: Table) -> tuple[list[str], list[Row]]:
    """A table's columns, and its rows in the values that ``tests.judges.rows`` gives."""
    rows = [{n: _value(kind, row.get(n)) for n, kind in table.columns.items()} for row in table.rows.values()]
    return list(table.columns), rows


def _value(kind: str, value: Any) -> Any:  # noqa: ANN401 - any JSON
    if value is None or kind not in ("date", "decimal(12,2)"):
        return value
    return (date(1970, 1, 1) + timedelta(days=value)).isoformat() if kind == "date" else f"decimal {value}"


@dataclass
class Bank(Shop):
    """Topics ``b.shop.<table>`` with Debezium's transaction metadata."""

    name = "bank"
    _transaction: str | None = None
    _counts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        columns = {"id": "int", "balance": "decimal(12,2)"}
        self.tables = {"accounts": Table(columns), "transfers": Table({"id": "int", "amount": "decimal(12,2)"})}

    @contextmanager
    def transaction(self, *, ended: bool = True) -> Iterator[None]:
        """All changes inside are one transaction; its END is written unless that shall come later."""
        self._transaction, self._counts = f"file={self.file},pos={self.pos}", {}
        self.begin()
        yield
        if ended:
            self.end()

    def begin(self) -> None:
        """Write a BEGIN; a second one where the connector has died after the first."""
        self._mark("BEGIN", None, None)

    def end(self) -> None:
        """Write the END of the newest transaction."""
        counts = [{"data_collection": f"shop.{t}", "event_count": n} for t, n in self._counts.items()]
        self._mark("END", sum(self._counts.values()), counts)

    def _mark(self, status: str, count: int | None, counts: list[dict[str, Any]] | None) -> None:
        said = {"status": status, "id": self._transaction, "event_count": count, "data_collections": counts}
        self.log.add("b.transaction", said | {"ts_ms": 0}, {"id": self._transaction})

    def event(self, table: str, op: str, after: Row | None, before: Row | None, key: int, kind: str = "") -> None:
        self._counts[table] = self._counts.get(table, 0) + 1
        value = self._value(table, op, after, before)
        value["transaction"] = {"id": self._transaction, "data_collection_order": self._counts[table]}
        self.log.add(f"b.shop.{table}", value, {"id": key}, key % 2)

    def expected(self) -> dict[str, tuple[list[str], list[Row]]]:
        """Of each lake table, by its path: the columns to look at and the rows, in canonical values."""
        return {f"shop/{name}": shown(table) for name, table in self.tables.items()}
