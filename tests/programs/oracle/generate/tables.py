"""Whole tables: created, copied, emptied, dropped, renamed.

CREATE OR REPLACE of a table that exists is left out: Debezium keeps the old definition and ends at the next row.
"""

from __future__ import annotations

from tests.programs.oracle.catalog import Table
from tests.programs.oracle.generate.draw import Draw, Kind
from tests.programs.oracle.generate.rows import insert
from tests.programs.oracle.generate.types import KEY_TYPES, drawn_definition

_MOST = 7


def create(draw: Draw, database: str, name: str, *, word: str = "CREATE TABLE", partitions: str = "") -> str:
    """CREATE TABLE with a key mostly."""
    columns = [f"{draw.name('id')} {'INT' if draw.chance(0.7) else draw.of(KEY_TYPES)} NOT NULL"]
    keys = ["id"]
    if draw.chance(0.2):
        columns.append(f"part {draw.of(KEY_TYPES)} NOT NULL")
        keys.append("part")
    columns += [
        f"{draw.name(draw.fresh('c'))} {drawn_definition(draw.random)}" for _ in range(draw.random.randint(1, 5))
    ]
    end = f", PRIMARY KEY ({', '.join(keys)})" if draw.chance(0.88) or partitions else ""
    if not end and draw.chance(0.5):
        end = ", UNIQUE KEY u (id)"
    charset = draw.of(("", "", "", " DEFAULT CHARSET=utf8mb4", " CHARACTER SET latin1", " COMMENT='x; y'"))
    return f"{word} {draw.place(database, name)} ({', '.join(columns)}{end}){charset}{partitions}"


def _create(draw: Draw) -> list[str] | None:
    if len(draw.tables) >= _MOST:
        return None
    word = draw.of(("CREATE TABLE", "CREATE TABLE IF NOT EXISTS", "create table"))
    return [create(draw, draw.database(), draw.fresh("t"), word=word)]


def _create_again(draw: Draw) -> list[str] | None:
    """DROP and CREATE of another table under the name."""
    table = draw.table()
    if table is None:
        return None
    word = draw.of(("CREATE TABLE", "CREATE OR REPLACE TABLE"))
    return [f"DROP TABLE {draw.ref(table)}", create(draw, table.database, table.name, word=word)]


def _like(draw: Draw) -> list[str] | None:
    table = draw.table()
    if table is None or len(draw.tables) >= _MOST:
        return None
    new = draw.place(draw.database(), draw.fresh("l"))
    made = draw.of((f"CREATE TABLE {new} LIKE {draw.ref(table)}", f"CREATE TABLE {new} (LIKE {draw.ref(table)})"))
    return [made, f"INSERT INTO {new} SELECT * FROM {draw.ref(table)}"][: draw.of((1, 2, 2))]


def _select(draw: Draw) -> list[str] | None:
    table = draw.table()
    if table is None or len(draw.tables) >= _MOST:
        return None
    new = draw.place(draw.database(), draw.fresh("s"))
    key = f"(PRIMARY KEY ({', '.join(map(draw.name, table.key))})) " if table.key and draw.chance(0.6) else ""
    return [f"CREATE TABLE {new} {key}{draw.of(('AS ', ''))}SELECT * FROM {draw.ref(table)}"]


def _drop(draw: Draw) -> list[str] | None:
    table = draw.table()
    if table is None or len(draw.tables) < 2:
        return None
    return [f"DROP TABLE {draw.of(('', 'IF EXISTS '))}{draw.ref(table)}{draw.of(('', '', ' CASCADE'))}"]


def _truncate(draw: Draw) -> list[str] | None:
    table = draw.table()
    return [f"TRUNCATE {draw.of(('', 'TABLE '))}{draw.ref(table)}"] if table is not None else None


def _rename(draw: Draw) -> list[str] | None:
    table = draw.table()
    if table is None:
        return None
    new = draw.place(table.database, draw.fresh("n"))
    return [draw.of((f"RENAME TABLE {draw.ref(table)} TO {new}", f"ALTER TABLE {draw.ref(table)} RENAME TO {new}"))]


def _move(draw: Draw) -> list[str] | None:
    """RENAME to the other database."""
    table = draw.table()
    if table is None:
        return None
    other = "oracle_db" if table.database != "oracle_db" else "oracle_db_2"
    return [f"RENAME TABLE {draw.ref(table)} TO {other}.{draw.name(draw.fresh('m'))}"]


def _two(draw: Draw) -> tuple[Table, Table] | None:
    if len(draw.tables) < 2:
        return None
    one, other = draw.random.sample(draw.tables, 2)
    return one, other


def _swap(draw: Draw) -> list[str] | None:
    """Two tables get each other's name, by way of a third."""
    chosen = _two(draw)
    if chosen is None:
        return None
    one, other = (draw.ref(t) for t in chosen)
    away = draw.place(chosen[0].database, draw.fresh("away"))
    return [f"RENAME TABLE {one} TO {away}, {other} TO {one}, {away} TO {other}"]


def _chain(draw: Draw) -> list[str] | None:
    """The first goes away, the second takes its name."""
    chosen = _two(draw)
    if chosen is None:
        return None
    one, other = (draw.ref(t) for t in chosen)
    away = draw.place(chosen[0].database, draw.fresh("old"))
    return [f"RENAME TABLE {one} TO {away}, {other} TO {one}"]


def _rename_and_back(draw: Draw) -> list[str] | None:
    table = draw.table()
    if table is None:
        return None
    new = draw.place(table.database, draw.fresh("b"))
    return [f"RENAME TABLE {draw.ref(table)} TO {new}", f"RENAME TABLE {new} TO {draw.ref(table)}"]


def _name_again(draw: Draw) -> list[str] | None:
    """A table is renamed, and another one is created under its old name and filled."""
    table = draw.table()
    if table is None:
        return None
    away = draw.place(table.database, draw.fresh("old"))
    like = f"CREATE TABLE {draw.ref(table)} LIKE {away}"
    made = like if draw.chance(0.5) else create(draw, table.database, table.name)
    fill = [insert(draw, table, 2)] if made == like else []
    return [f"RENAME TABLE {draw.ref(table)} TO {away}", made, *fill]


KINDS = (
    Kind("create table", 1.5, _create),
    Kind("create again", 1.5, _create_again),
    Kind("create like", 1.5, _like),
    Kind("create select", 1.5, _select),
    Kind("drop table", 0.8, _drop),
    Kind("truncate", 1, _truncate),
    Kind("rename table", 1.2, _rename),
    Kind("move table", 0.6, _move),
    Kind("swap tables", 1, _swap),
    Kind("rename chain", 1, _chain),
    Kind("rename and back", 0.5, _rename_and_back),
    Kind("name used again", 1, _name_again),
)
