"""Tables at a real server that change all the time: each change is in a topic too, as Debezium sends it.

Events have the place at which their transaction begins. MariaDB gives all events of a transaction this one (since
11.4), so a change right after a snapshot has the snapshot's own place: the hardest case for what a load leaves out.
"""

from __future__ import annotations

import base64
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pymysql

from binlake.load.first.run import FirstLoad, LoadOptions, LoadResult
from binlake.settings.database import LoadSettings
from embedded.mariadb import EmbeddedMariaDB
from tests.binlake.proof.verify.source import SentTable, verified
from tests.judges import hudi_rs

WRITER, PASSWORD = "changer", "c-" + "5!xT"
WRITER_SQL = f"CREATE USER '{WRITER}'@'%' IDENTIFIED BY '{PASSWORD}'; GRANT ALL ON *.* TO '{WRITER}'@'%';"
#: Table -> column -> type. ``bare`` has no key; rows of ``log`` are only added.
COLUMNS = {
    "items": {"id": "int", "name": "varchar(20)", "region": "varchar(4)", "amount": "decimal(10,2)"},
    "named": {"code": "varchar(20)", "note": "varchar(20)"},
    "bare": {"a": "int", "b": "varchar(10)"},
    "log": {"id": "bigint", "what": "varchar(10)"},
    "quiet": {"id": "int", "b": "varchar(10)"},
}
KEYS = {"items": ["id"], "named": ["code"], "log": ["id"], "quiet": ["id"]}
_DDL = {
    "items": "id INT PRIMARY KEY, name VARCHAR(20), region VARCHAR(4), amount DECIMAL(10,2)",
    "named": "code VARCHAR(20) PRIMARY KEY, note VARCHAR(20)",
    "bare": "a INT, b VARCHAR(10)",
    "log": "id BIGINT PRIMARY KEY, what VARCHAR(10)",
    "quiet": "id INT PRIMARY KEY, b VARCHAR(10)",
}
Row = dict[str, Any]
LIMITS = LoadSettings(connections=2, chunk_rows=7, commit_rows=20)


@dataclass
class ChangingTables:
    """The tables of one database, and a topic with all their changes.

    Args:
        server: where they are.
        place: of the lake and the settings.
        database: its name.
        rules: ``tables`` of the settings.
        seed: of the changes.
    """

    server: EmbeddedMariaDB
    place: Path
    database: str
    rules: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    rows: dict[str, list[Row]] = field(default_factory=dict)
    changes: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        overrides = [{"match": f"{self.database}.log", "kind": "append"}, *self.rules.pop("overrides", [])]
        rules = {"include": [f"{self.database}.*"], **self.rules, "overrides": overrides}
        self.sent = SentTable(
            self.server, self.place, self.database, COLUMNS, KEYS, rules, more={"locking": {"lock": "process"}}
        )
        self._connection = pymysql.connect(
            host=self.server.host, port=self.server.port, user=WRITER, password=PASSWORD, autocommit=True
        )
        self._cursor = self._connection.cursor()
        for table, columns in _DDL.items():
            self._cursor.execute(f"CREATE TABLE {self.database}.{table} ({columns}) CHARACTER SET utf8mb4")
            self.rows[table] = []

    def close(self) -> None:
        """End the session."""
        self._connection.close()

    # -- changes -------------------------------------------------------------------------------------------------------

    def fill(self, count: int) -> None:
        """So many rows in each table but ``quiet``, in the topic too."""
        for _ in range(count):
            for table in ("items", "named", "bare", "log"):
                self._insert(table)

    def change(self, count: int) -> None:
        """So many random changes, each a transaction."""
        for _ in range(count):
            table = self._random.choice(["items", "items", "named", "bare", "log"])
            op = "c" if table == "log" or not self.rows[table] else self._random.choice("cuud")
            if op == "c":
                self._insert(table)
            elif op == "u":
                self._update(table)
            else:
                self._delete(table)

    def _insert(self, table: str) -> None:
        row = self._row(table)
        if self._known(table, row):
            return
        names, marks = ", ".join(row), ", ".join(["%s"] * len(row))
        self._run(f"INSERT INTO {self.database}.{table} ({names}) VALUES ({marks})", list(row.values()))
        self.rows[table].append(row)
        self._send(table, "c", row)

    def _update(self, table: str) -> None:
        before = self._random.choice(self.rows[table])
        after = self._row(table)
        if self._random.random() < 0.8:  # the others get another key
            after |= {name: before[name] for name in KEYS.get(table, ())}
        if self._known(table, after) and any(before[k] != after[k] for k in KEYS.get(table, ())):
            return
        changed = ", ".join(f"{name} = %s" for name in after)
        where, values = self._where(before)
        sql = f"UPDATE {self.database}.{table} SET {changed} WHERE {where} LIMIT 1"
        if before == after:
            return
        self._run(sql, [*after.values(), *values])
        self.rows[table].remove(before)
        self.rows[table].append(after)
        if any(before[k] != after[k] for k in KEYS.get(table, ())):  # Debezium sends two events
            self._send(table, "d", before)
            self._send(table, "c", after)
        else:
            self._send(table, "u", after, before)

    def _delete(self, table: str) -> None:
        row = self._random.choice(self.rows[table])
        where, values = self._where(row)
        self._run(f"DELETE FROM {self.database}.{table} WHERE {where} LIMIT 1", values)
        self.rows[table].remove(row)
        self._send(table, "d", row)

    def _row(self, table: str) -> Row:
        number = self._random.randrange
        self.changes += 1
        if table == "items":
            region = self._random.choice(["eu", "us", "ap"])
            return {"id": number(400) - 50, "name": f"n{number(1000)}", "region": region, "amount": f"{number(999)}.50"}
        if table == "named":
            return {"code": self._random.choice("abÄz'") + str(number(200)), "note": f"x{number(50)}"}
        if table == "bare":
            return {"a": number(6), "b": self._random.choice(["p", "q"])}
        return {"id": self.changes, "what": f"w{number(9)}"}

    def _known(self, table: str, row: Row) -> bool:
        key = KEYS.get(table)
        return key is not None and any(self._key(one, key) == self._key(row, key) for one in self.rows[table])

    @staticmethod
    def _key(row: Row, key: list[str]) -> list[Any]:
        """As the server's collation compares it: without case and accents."""
        return [str(row[name]).lower().replace("ä", "a") for name in key]

    def _where(self, row: Row) -> tuple[str, list[Any]]:
        return " AND ".join(f"{name} = %s" for name in row), list(row.values())

    def _run(self, sql: str, values: list[Any]) -> None:
        self._cursor.execute("SHOW MASTER STATUS")
        file, position = self._cursor.fetchone()[:2]
        self.sent.stands = str(file), int(position)
        assert self._cursor.execute(sql, values) == 1, sql

    def _send(self, table: str, op: str, row: Row, before: Row | None = None) -> None:
        self.sent.send(table, op, _json(row), _json(before) if before is not None else None)

    # -- load and compare ----------------------------------------------------------------------------------------------

    def load(self, *names: str, changes: int = 0, **fields: Any) -> dict[str, LoadResult]:  # noqa: ANN401
        """Load the tables; so many changes come after each chunk that was read. Raises the error of a table.

        ``fields``: of ``FirstLoad``.
        """
        options = fields.pop("options", LoadOptions(connector_check=False, limits=LIMITS))
        load = FirstLoad(self.sent.settings(), options, lambda progress: self.change(changes), **fields)
        results = {}
        for result in load.run([f"{self.database}.{name}" for name in names]):
            if result.error is not None:
                raise result.error
            results[result.table.partition(".")[2]] = result
        return results

    def check(self) -> None:
        """Compare every table with the source, by verify and by hudi-rs. ``log`` has the rows that were added."""
        results = verified(self.sent.settings())
        for table in ("items", "named", "bare"):
            result = results[f"{self.database}.{table}"]
            assert not result.different, (table, self.seed, result.differences[:3])
            assert result.source_rows == len(self.rows[table])
        for table, columns in COLUMNS.items():
            rows = hudi_rs.snapshot(self.place / "lake" / self.database / table)
            shown = Counter(_texts(row, columns) for row in rows.select(list(columns)).to_pylist()) if len(rows) else {}
            self._cursor.execute(f"SELECT {', '.join(columns)} FROM {self.database}.{table}")
            expected = Counter(tuple(map(str, row)) for row in self._cursor.fetchall())
            assert shown == expected, (table, self.seed)


def _texts(row: Mapping[str, Any], columns: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in columns)


def _json(row: Row) -> Row:
    """As a message without a schema carries it: Debezium's bytes of a decimal, in base64."""
    if "amount" not in row:
        return row
    unscaled = int(row["amount"].replace(".", ""))
    size = unscaled.bit_length() // 8 + 1
    return {**row, "amount": base64.b64encode(unscaled.to_bytes(size, "big", signed=True)).decode()}
