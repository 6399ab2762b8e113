"""Several sessions that change several tables of one server all the time, in transactions of one table and of many."""

from __future__ import annotations

import threading
import time
from random import Random
from typing import Any

import pymysql

from embedded.mariadb import EmbeddedMariaDB
from tests.programs.moments.replica import DATABASE, connect

SESSIONS = 3
_IDS = 60
TABLES = ("accounts", "orders", "notes")
_COLUMNS = "id INT PRIMARY KEY, n BIGINT, amount DECIMAL(12, 2), words VARCHAR(80), at DATETIME(6)"
#: The statements that come while the sessions write; a table is made late, and one is emptied.
DDL = (
    f"ALTER TABLE {DATABASE}.orders ADD COLUMN more INT",
    f"CREATE TABLE {DATABASE}.late ({_COLUMNS})",
    f"TRUNCATE TABLE {DATABASE}.notes",
    f"ALTER TABLE {DATABASE}.accounts ADD COLUMN flag VARCHAR(10) DEFAULT 'new'",
)


def create(server: EmbeddedMariaDB) -> None:
    """The tables; one of them belongs to no lake."""
    server.execute(f"CREATE DATABASE {DATABASE}; CREATE DATABASE beside; CREATE TABLE beside.t (id INT PRIMARY KEY)")
    for name in TABLES:
        server.execute(f"CREATE TABLE {DATABASE}.{name} ({_COLUMNS})")


class Load:
    """Sessions that write for the length of the ``with`` block, each by its own random numbers."""

    def __init__(self, server: EmbeddedMariaDB, seed: int, pause_s: float) -> None:
        self._server, self._pause_s = server, pause_s
        self._stop = threading.Event()
        self._late = False
        self.failed: list[BaseException] = []
        self.transactions = 0
        draws = [Random(f"{seed} {number}") for number in range(SESSIONS)]
        self._threads = [threading.Thread(target=self._session, args=(draw,), daemon=True) for draw in draws]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if self.failed:
            raise self.failed[0]

    def carry_out(self, statement: str) -> None:
        """A statement of DDL, in a session of its own."""
        session = connect(self._server)
        try:
            _run(session, "SET lock_wait_timeout = 20")
            _run(session, statement)
        finally:
            session.close()
        self._late |= "late" in statement

    def _session(self, draw: Random) -> None:
        session = connect(self._server)
        try:
            while not self._stop.is_set():
                self._transaction(session, draw)
                time.sleep(draw.expovariate(1 / self._pause_s))
        except BaseException as error:
            self.failed.append(error)
        finally:
            session.close()

    def _transaction(self, session: pymysql.Connection[Any], draw: Random) -> None:
        if draw.random() < 0.1:  # the lake does not have it
            _run(session, f"REPLACE INTO beside.t VALUES ({draw.randrange(9)})")
            return
        statements = [self._statement(draw) for _ in range(draw.choice((1, 1, 2, 4, 12)))]
        try:
            _run(session, "BEGIN")
            for statement in statements:
                _run(session, statement)
            _run(session, "ROLLBACK" if draw.random() < 0.05 else "COMMIT")
        except pymysql.err.MySQLError as error:
            if error.args[0] not in (1213, 1205, 1062, 1412):  # others hold the rows, the key is there, DDL came
                raise
            _run(session, "ROLLBACK")
        self.transactions += 1

    def _statement(self, draw: Random) -> str:
        name = draw.choice((*TABLES, "late") if self._late else TABLES)
        table, row, other = f"{DATABASE}.{name}", draw.randrange(_IDS), draw.randrange(_IDS)
        values = f"n = {draw.randrange(-9, 10**12)}, amount = {draw.randrange(10**6)} / 100, words = '{_words(draw)}'"
        changed = f"{values}, at = '2026-{draw.randrange(1, 13):02}-11 10:11:12.{draw.randrange(10**6):06}'"
        return draw.choice(
            (
                f"INSERT INTO {table} SET id = {row}, {changed}",
                f"INSERT INTO {table} SET id = {row}, {changed} ON DUPLICATE KEY UPDATE {changed}",
                f"UPDATE {table} SET {changed} WHERE id = {row}",
                f"UPDATE {table} SET n = NULL, words = NULL WHERE id % 7 = {row % 7}",
                f"DELETE FROM {table} WHERE id = {row}",
                f"UPDATE {table} SET id = {other} WHERE id = {row}",
            )
        )


def _words(draw: Random) -> str:
    return "".join(draw.choice("abcäß漢 ") for _ in range(draw.randrange(20)))


def _run(session: pymysql.Connection[Any], sql: str) -> None:
    with session.cursor() as cursor:
        cursor.execute(sql)
