"""A bank on a real server: transfers that keep the sum of balances, under changing DDL, and its final rows."""

from __future__ import annotations

import json
import random
import threading
from decimal import Decimal

from demo.truth import TruthColumn, TruthTable
from demo.values import BINARIES
from embedded.mariadb import EmbeddedMariaDB

ACCOUNTS = 60
START = Decimal("1000.00")
TOTAL = ACCOUNTS * START
USER, PASSWORD = "dbz", "dbz-" + "x7!Kq"

_SETUP = f"""
SET sql_log_bin = 0;
CREATE USER '{USER}'@'%' IDENTIFIED BY '{PASSWORD}';
GRANT SELECT, RELOAD, SHOW DATABASES, REPLICATION SLAVE, BINLOG MONITOR ON *.* TO '{USER}'@'%';
SET sql_log_bin = 1;
CREATE DATABASE bank;
CREATE TABLE bank.accounts (id INT PRIMARY KEY, owner VARCHAR(20) NOT NULL, balance DECIMAL(12,2) NOT NULL,
  rate DOUBLE, opened DATE, updated DATETIME(6), photo VARBINARY(40), moves INT NOT NULL DEFAULT 0);
CREATE TABLE bank.transfers (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, source INT NOT NULL, target INT NOT NULL,
  amount DECIMAL(12,2) NOT NULL, note VARCHAR(60), at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3));
"""


def prepare(database: EmbeddedMariaDB) -> None:
    """The connector's user, the tables, and accounts that hold TOTAL together."""
    rows = ", ".join(
        f"({i}, 'owner {i} é', {START}, {i / 7}, '2020-01-{1 + i % 28:02}', '2026-01-02 03:04:05.{i:06}',"
        f" x'00ff{i:02x}', 0)"
        for i in range(ACCOUNTS)
    )
    database.execute(f"{_SETUP} INSERT INTO bank.accounts VALUES {rows};")


class Workload(threading.Thread):
    """Transfers until stopped: a twentieth is rolled back, now and then an account is closed or gets another number.

    ``done``: how many transactions were asked for. ``extra``: a column to be set as well, once DDL has added it.
    ``error``: what ended it.
    """

    def __init__(self, database: EmbeddedMariaDB, seed: int = 7) -> None:
        super().__init__(name="workload", daemon=True)
        self._database, self._random = database, random.Random(seed)
        self._ids = list(range(ACCOUNTS))
        self._unused = ACCOUNTS
        self._over = threading.Event()
        self.done, self.extra, self.long_names = 0, "", False
        self.error: Exception | None = None

    def run(self) -> None:
        """Go on until asked to stop."""
        try:
            while not self._over.wait(0.02):
                self._database.execute("USE bank; " + " ".join(self._transaction() for _ in range(8)))
        except Exception as error:
            self.error = error

    def finish(self) -> None:
        """End it, and see that it came to its end in order."""
        self._over.set()
        self.join(60)
        assert self.error is None, self.error
        assert not self.is_alive()

    def _transaction(self) -> str:
        self.done += 1
        if self.done % 37 == 0:
            return self._close_one()
        if self.done % 23 == 0:
            return self._renumber_one()
        source, target = self._random.sample(self._ids, 2)
        amount = Decimal(self._random.randrange(1, 20_000)) / 100
        end = "ROLLBACK" if self._random.random() < 0.05 else "COMMIT"
        return f"START TRANSACTION; {self._move(source, target, str(amount))} {end};"

    def _move(self, source: int, target: int, amount: str) -> str:
        extra = f", {self.extra} = CONCAT('set ', {self.done})" if self.extra else ""
        name = f", owner = '{'long ' * 10}{self.done}'" if self.long_names else ""
        touched = "moves = moves + 1, updated = NOW(6)"
        return (
            f"SET @amount = {amount};"
            f" UPDATE accounts SET balance = balance - @amount, {touched}{extra} WHERE id = {source};"
            f" UPDATE accounts SET balance = balance + @amount, {touched}{name} WHERE id = {target};"
            " INSERT INTO transfers(source, target, amount, note)"
            f" VALUES ({source}, {target}, @amount, 'n° {self.done}');"
        )

    def _close_one(self) -> str:
        """All an account holds goes to another; it is deleted, and a new one is opened with nothing."""
        gone, heir = self._random.sample(self._ids, 2)
        self._ids.remove(gone)
        opened = self._number()
        everything = f"(SELECT balance FROM accounts WHERE id = {gone})"
        return (
            f"START TRANSACTION; {self._move(gone, heir, everything)} DELETE FROM accounts WHERE id = {gone};"
            f" INSERT INTO accounts(id, owner, balance) VALUES ({opened}, 'new', 0); COMMIT;"
        )

    def _renumber_one(self) -> str:
        old = self._random.choice(self._ids)
        self._ids.remove(old)
        return f"UPDATE accounts SET id = {self._number()} WHERE id = {old};"

    def _number(self) -> int:
        self._unused += 1
        self._ids.append(self._unused)
        return self._unused


def truth(database: EmbeddedMariaDB, table: str) -> TruthTable:
    """``SELECT *`` of a table of the bank, with its columns' types and its key."""
    described = database.execute(
        "SELECT JSON_ARRAY(column_name, column_type, is_nullable, column_key) FROM information_schema.columns"
        f" WHERE table_schema = 'bank' AND table_name = '{table}' ORDER BY ordinal_position"
    )
    found = [json.loads(line) for line in described]
    columns = tuple(TruthColumn(name, kind, nullable == "YES") for name, kind, nullable, _ in found)
    binary = {c.name for c in columns if c.data_type in BINARIES}
    cells = [f"HEX({c.name})" if c.name in binary else f"CAST({c.name} AS CHAR)" for c in columns]
    rows = [json.loads(line) for line in database.execute(f"SELECT JSON_ARRAY({', '.join(cells)}) FROM bank.{table}")]
    cell_rows = [
        tuple(bytes.fromhex(v) if c.name in binary and v is not None else v for c, v in zip(columns, row, strict=True))
        for row in rows
    ]
    return TruthTable("bank", table, columns, tuple(name for name, _, _, key in found if key == "PRI"), cell_rows)
