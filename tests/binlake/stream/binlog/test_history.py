"""History tables beside a server that keeps versions itself: what MariaDB says of a system-versioned table, the lake
says of a plain one with the same statements."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from embedded.mariadb import EmbeddedMariaDB
from tests.binlake.stream.binlog.followed import FollowedDatabase
from tests.hypothesis_profile import scaled
from tests.judges import hudi_rs

_COLUMNS = "id BIGINT PRIMARY KEY, name VARCHAR(40), amount DECIMAL(12,3), at DATETIME(6)"
#: Cells of a version, whether the row has them now, and whether the version before it ended where it began.
Version = tuple[tuple[str, ...], bool, bool]


def statements(rng: random.Random, count: int) -> Iterator[list[str]]:
    """Transactions, each with one statement a row, as both tables get them; ``{}`` stands for the table."""
    for _ in range(count):
        key, amount = rng.randint(1, 12), f"{rng.randint(-999, 999)}.{rng.randint(0, 999):03}"
        row = f"({key}, '{rng.choice(['ä', 'b', ''])}', {rng.choice([amount, 'NULL'])}, '2026-01-01 00:00:00.000001')"
        yield rng.choice(
            [
                [f"REPLACE INTO {{}} VALUES {row}"],
                [f"INSERT INTO {{}} VALUES {row} ON DUPLICATE KEY UPDATE amount = {amount}"],
                [f"UPDATE {{}} SET amount = {amount} WHERE id = {key}"],
                [f"DELETE FROM {{}} WHERE id = {key}"],
                [f"UPDATE IGNORE {{}} SET id = id + 1 WHERE id = {key}"],
                [f"UPDATE {{}} SET name = CONCAT(name, 'x') WHERE id % 3 = {key % 3} AND LENGTH(name) < 9"],
            ]
        )


def by_server(server: EmbeddedMariaDB, database: str) -> list[Version]:
    """The versions of the system-versioned table. Those of no duration nobody could see."""
    lines = server.execute(
        "SELECT CONCAT_WS('|', ROW_START, ROW_END, ROW_END>NOW(6), id, COALESCE(name, '-'), COALESCE(amount, '-'), at)"
        f" FROM `{database}`.versioned FOR SYSTEM_TIME ALL WHERE ROW_START < ROW_END ORDER BY id, ROW_START"
    )
    parts = [line.split("|") for line in lines]
    return _told((start, end, current == "1", tuple(cells)) for start, end, current, *cells in parts)


def by_lake(path: Path) -> list[Version]:
    """The same of the history table, through hudi-rs."""
    rows = hudi_rs.snapshot(path).to_pylist()
    rows.sort(key=lambda row: (row["id"], row["start_at"]))
    return _told((row["start_at"], row["end_at"], row["is_current"], _cells(row)) for row in rows)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    amount, name = row["amount"], row["name"]
    said = ("-" if name is None else name, "-" if amount is None else str(amount))
    return (str(row["id"]), *said, row["at"].strftime("%Y-%m-%d %H:%M:%S.%f"))


def _told(versions: Iterable[tuple[Any, Any, bool, tuple[str, ...]]]) -> list[Version]:
    """Versions (begin, end, whether current, cells) without the places, which differ. A statement that changes nothing
    is an event in one of the two tables alone, where the server deletes and inserts: such versions are one."""
    told: list[Version] = []
    ended = None
    for start, end, current, cells in versions:
        follows = bool(told) and told[-1][0][0] == cells[0] and ended == start
        if follows and told[-1][0] == cells:
            told[-1] = cells, current, told[-1][2]
        else:
            told.append((cells, current, follows))
        ended = end
    return told


def test_changes_name_the_transactions_of_the_server(server: EmbeddedMariaDB, tmp_path: Path) -> None:
    """By their GTIDs, also several rows and tables of one transaction."""
    followed = FollowedDatabase(server, tmp_path, "named")
    history = [{"table": f"named.{table}", "to": f"named.{table}_changes", "kind": "changes"} for table in "ab"]
    followed.tables = {"history": history}
    followed.execute(*(f"CREATE TABLE {table} (id INT PRIMARY KEY, n INT)" for table in "ab"))
    transactions = [
        ["INSERT INTO a VALUES (1, 1), (2, 2)"],
        [
            "BEGIN",
            "UPDATE a SET n = 5 WHERE id = 1",
            "INSERT INTO b VALUES (7, 7)",
            "DELETE FROM a WHERE id = 2",
            "COMMIT",
        ],
        ["UPDATE a SET id = 3 WHERE id = 1"],
    ]
    told = []
    for statements in transactions:
        followed.execute(*statements)
        told.append(server.execute("SELECT @@gtid_binlog_pos")[0])
    assert len(set(told)) == 3
    followed.apply()
    rows = {table: hudi_rs.snapshot(tmp_path / f"lake/named/{table}_changes").to_pylist() for table in "ab"}
    found = {
        table: sorted((told.index(row["source_transaction"]), row["id"], row["change_type"]) for row in some)
        for table, some in rows.items()
    }
    assert found["b"] == [(1, 7, "insert")]
    assert found["a"] == [
        (0, 1, "insert"),
        (0, 2, "insert"),
        (1, 1, "update_postimage"),
        (1, 1, "update_preimage"),
        (1, 2, "delete"),
        (2, 1, "delete"),
        (2, 3, "insert"),
    ]


@pytest.mark.full
@pytest.mark.parametrize("seed", range(scaled(20)))
def test_the_versions_are_those_of_the_server(server: EmbeddedMariaDB, tmp_path: Path, seed: int) -> None:
    """The server writes each statement twice: into a plain table that the stream follows, and into a system-versioned
    one. Batches are cut at random, tables compacted."""
    rng, name = random.Random(seed), f"versions_{seed}"
    followed = FollowedDatabase(server, tmp_path, name, compacts=True)
    followed.tables = {
        "include": [f"{name}.plain"],
        "history": [{"table": f"{name}.plain", "to": f"{name}.plain_history"}],
    }
    followed.execute(f"CREATE TABLE plain ({_COLUMNS})", f"CREATE TABLE versioned ({_COLUMNS}) WITH SYSTEM VERSIONING")
    for _ in range(4):
        transactions = list(statements(rng, rng.randint(5, 25)))
        for parts in transactions:
            followed.execute(*(part.format(table) for table in ("plain", "versioned") for part in parts))
        followed.apply()
        assert server.execute(f"SELECT * FROM `{name}`.plain") == server.execute(f"SELECT * FROM `{name}`.versioned")
        lake, wanted = by_lake(tmp_path / "lake" / name / "plain_history"), by_server(server, name)
        assert lake == wanted
    assert len(wanted) > 20
