"""The tables of a store in a SQL database. Large values are cut into pieces: servers limit the size of a packet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

from sqlalchemy import BigInteger, Column, Engine, Integer, LargeBinary, MetaData, String, Table
from sqlalchemy.dialects.mysql import LONGBLOB

from lakemetastore.log.stores.base import Entry

#: MySQL 5.7 takes packets of 4 MB by default, and quotes bytes of them.
PIECE_BYTES: Final = 1 << 20

_metadata: Final = MetaData()
_BYTES: Final = LargeBinary().with_variant(LONGBLOB(), "mysql", "mariadb")


def _pieces(name: str) -> Table:
    return Table(
        name,
        _metadata,
        Column("log", String(255), primary_key=True),
        Column("version", BigInteger, primary_key=True, autoincrement=False),
        Column("piece", Integer, primary_key=True, autoincrement=False),
        Column("data", _BYTES, nullable=False),
    )


#: The last version of each log.
HEADS: Final = Table(
    "binlake_log_heads",
    _metadata,
    Column("log", String(255), primary_key=True),
    Column("last", BigInteger, nullable=False),
)
ENTRIES: Final = _pieces("binlake_log_entries")
SNAPSHOTS: Final = _pieces("binlake_log_snapshots")


def rows_of(log: str, version: int, data: bytes) -> list[dict[str, object]]:
    """The rows that hold a value, at least one."""
    starts = range(0, max(len(data), 1), PIECE_BYTES)
    return [
        {"log": log, "version": version, "piece": piece, "data": data[start : start + PIECE_BYTES]}
        for piece, start in enumerate(starts)
    ]


def entries_of(rows: Iterable[tuple[int, bytes]]) -> Iterator[Entry]:
    """Rows (version, data), by version and piece -> the values."""
    for version, pieces in groupby(rows, key=lambda row: row[0]):
        yield Entry(version, b"".join(bytes(data) for _, data in pieces))


def make_tables(bind: Engine) -> None:
    """Make the tables that are missing."""
    _metadata.create_all(bind)
