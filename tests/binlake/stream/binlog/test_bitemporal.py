"""Bitemporal tables beside a server that keeps versions itself. Each transaction has a second of its own, so both have
one time of the source: MariaDB's ``FOR SYSTEM_TIME`` says what the table says, whatever the lake knew when."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from embedded.mariadb import EmbeddedMariaDB
from hudilake.clock import parse_instant
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.binlake.stream.binlog.followed import FollowedDatabase
from tests.hypothesis_profile import scaled
from tests.judges import hudi_rs

_COLUMNS = "id BIGINT PRIMARY KEY, name VARCHAR(40), amount DECIMAL(12,3)"
_BEGIN = datetime(2026, 3, 1, 12, tzinfo=UTC)
Cells = tuple[str, ...]


class Version(NamedTuple):
    """What a row was from one time on to another; ``end`` is None if it still is."""

    cells: Cells
    start: datetime
    end: datetime | None


def transaction(draw: random.Random) -> list[str]:
    """Statements of one transaction; ``{}`` stands for the table."""
    return [_statement(draw) for _ in range(draw.choice((1, 1, 2, 5)))]


def _statement(draw: random.Random) -> str:
    key, amount = draw.randint(1, 12), f"{draw.randint(-99, 99)}.{draw.randint(0, 999):03}"
    row = f"({key}, '{draw.choice(['ä', 'b', ''])}', {draw.choice([amount, 'NULL'])})"
    return draw.choice(
        (
            f"REPLACE INTO {{}} VALUES {row}",
            f"INSERT INTO {{}} VALUES {row} ON DUPLICATE KEY UPDATE amount = {amount}, name = NULL",
            f"UPDATE {{}} SET amount = {amount} WHERE id = {key}",
            f"UPDATE {{}} SET name = CONCAT(name, 'x') WHERE id % 3 = {key % 3} AND LENGTH(name) < 9",
            f"DELETE FROM {{}} WHERE id = {key}",
            f"DELETE FROM {{}} WHERE id = {key}; INSERT INTO {{}} VALUES {row}",
            f"UPDATE IGNORE {{}} SET id = id + 1 WHERE id = {key}",
            f"UPDATE {{}} SET id = id + 1 WHERE id >= {key} AND id < 400 ORDER BY id DESC",
            f"DELETE FROM {{}} WHERE id = {key + 8}; UPDATE {{}} SET id = id - 1 WHERE id > {key + 8} ORDER BY id",
        )
    )


def second(number: int) -> datetime:
    """When the transaction of a number happens."""
    return _BEGIN + timedelta(seconds=number)


class Twins:
    """A plain table that a stream follows, and a system-versioned one with the same transactions."""

    def __init__(self, server: EmbeddedMariaDB, place: Path, name: str) -> None:
        self._server, self._name, self._path = server, name, place / "lake" / name / "plain_known"
        self.transactions = 0
        self.followed = FollowedDatabase(server, place, name, compacts=True)
        self.followed.tables = {
            "include": [f"{name}.plain"],
            "history": [{"table": f"{name}.plain", "to": f"{name}.plain_known", "kind": "bitemporal"}],
        }
        tables = (f"CREATE TABLE plain ({_COLUMNS})", f"CREATE TABLE versioned ({_COLUMNS}) WITH SYSTEM VERSIONING")
        self.followed.execute(*tables)

    def play(self, statements: list[str]) -> None:
        """The next transaction, at its second."""
        self.transactions += 1
        for table in ("plain", "versioned"):
            now = f"SET timestamp = {second(self.transactions).timestamp():.0f}"
            self.followed.execute(now, "BEGIN", *(one.replace("{}", table) for one in statements), "COMMIT")

    def apply(self) -> datetime:
        """The stream takes all of it. Returns the time of the newest commit."""
        self.followed.apply()
        assert self._rows("SELECT * FROM `{}`.plain") == self._rows("SELECT * FROM `{}`.versioned")
        table = HudiTable.open(open_storage(str(self._path)))
        writes = [one.requested_time for one in table.timeline.completed() if one.action == "deltacommit"]
        return datetime.fromtimestamp(parse_instant(writes[-1]) / 1000, UTC)

    def at_server(self) -> list[Version]:
        """All versions that the server keeps, without those of no duration."""
        lines = self._rows(
            "SELECT CONCAT_WS('|', ROW_START, ROW_END, ROW_END > '2037-01-01', id, COALESCE(name, '-'),"
            " COALESCE(amount, '-')) FROM `{}`.versioned FOR SYSTEM_TIME ALL WHERE ROW_START < ROW_END"
        )
        return _joined(
            Version(tuple(cells), _time(start), None if current == "1" else _time(end))
            for start, end, current, *cells in (line.split("|") for line in lines)
        )

    def of(self, time: datetime) -> list[Cells]:
        """The rows that the server says there were at a time."""
        lines = self._rows(
            "SELECT CONCAT_WS('|', id, COALESCE(name, '-'), COALESCE(amount, '-')) FROM `{}`.versioned"
            f" FOR SYSTEM_TIME AS OF TIMESTAMP '{time:%Y-%m-%d %H:%M:%S.%f}'"
        )
        return sorted(tuple(line.split("|")) for line in lines)

    def in_lake(self, known: datetime | None = None) -> list[Version]:
        """The versions as the lake knew them at a time, or knows them now; through hudi-rs. Those that no time sees, of
        two statements of a transaction, the server does not keep."""
        rows = hudi_rs.snapshot(self._path).to_pylist()
        there = [row for row in rows if _is_known(row, known)]
        assert all(row["is_current"] == (row["end_at"] is None) for row in there)
        versions = (Version(_cells(row), row["valid_from"], row["valid_to"]) for row in there)
        return _joined(version for version in versions if version.start != version.end)

    def _rows(self, sql: str) -> list[str]:
        return sorted(self._server.execute(sql.format(self._name)))


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def _is_known(row: dict[str, Any], at: datetime | None) -> bool:
    if at is None:
        return row["known_to"] is None
    return bool(row["known_from"] <= at and (row["known_to"] is None or at < row["known_to"]))


def _cells(row: dict[str, Any]) -> Cells:
    return tuple("-" if (cell := row[name]) is None else str(cell) for name in ("id", "name", "amount"))


def _joined(versions: Iterable[Version]) -> list[Version]:
    """By key and time. A statement that changes nothing is a version of one of the two sides: it is part of the one
    before it."""
    joined: list[Version] = []
    for version in sorted(versions, key=lambda one: (int(one.cells[0]), one.start)):
        if joined and joined[-1].cells == version.cells and joined[-1].end == version.start:
            joined[-1] = joined[-1]._replace(end=version.end)
        else:
            joined.append(version)
    return joined


def there(versions: list[Version], time: datetime) -> list[Cells]:
    """The rows at a time of the source, as docs/history.md asks for them."""
    return sorted(one.cells for one in versions if one.start <= time and (one.end is None or one.end > time))


@pytest.mark.full
@pytest.mark.parametrize("seed", range(scaled(200)))
def test_both_times_are_those_of_the_server(server: EmbeddedMariaDB, tmp_path: Path, seed: int) -> None:
    """Of the source's time the server tells all; of the lake's time, what it told when the batch was applied."""
    draw, twins = random.Random(seed), Twins(server, tmp_path, f"known_{seed}")
    then: dict[datetime, list[Version]] = {}
    for _ in range(4):
        for _ in range(draw.randint(8, 16)):
            twins.play(transaction(draw))
        known = twins.apply()
        then[known] = twins.at_server()
        assert twins.in_lake() == then[known]
    for known, had in then.items():
        assert twins.in_lake(known) == had, known
    newest = twins.in_lake()
    assert len(newest) > 20
    assert len({version.cells[0] for version in newest}) < len(newest)
    for number in draw.sample(range(twins.transactions + 1), 10):
        for time in (second(number), second(number) + timedelta(milliseconds=500)):
            assert there(newest, time) == twins.of(time), time
    seconds = {version.start for version in newest} | {version.end for version in newest if version.end is not None}
    changed = max(seconds)  # the control: a second before the newest change there were other rows
    assert there(newest, changed - timedelta(seconds=1)) != twins.of(changed)
