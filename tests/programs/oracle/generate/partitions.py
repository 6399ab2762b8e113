"""Partitioned tables, and the statements about their partitions.

ADD PARTITION PARTITIONS n is left out: Debezium cannot parse it and ends.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.programs.oracle.catalog import Table
from tests.programs.oracle.generate.columns import alter
from tests.programs.oracle.generate.draw import Draw, Kind

_RANGE = "PARTITION p0 VALUES LESS THAN (4), PARTITION p1 VALUES LESS THAN (8), PARTITION p2 VALUES LESS THAN MAXVALUE"
_RANGE_COLUMNS = _RANGE.replace("MAXVALUE", "(MAXVALUE)")
_LIST = "PARTITION p0 VALUES IN (1,2,3), PARTITION p1 VALUES IN (4,5,6,7), PARTITION p2 VALUES IN (8,9,10,11,12)"


def _by(draw: Draw) -> str:
    """PARTITION BY over an integer column ``id``."""
    count = draw.of((2, 3, 4))
    choices = (
        f"RANGE (id) ({_RANGE})",
        f"RANGE COLUMNS (id) ({_RANGE_COLUMNS})",
        f"LIST (id) ({_LIST})",
        f"LIST COLUMNS (id) ({_LIST})",
        f"HASH (id) PARTITIONS {count}",
        f"LINEAR HASH (id) PARTITIONS {count}",
        f"HASH (id + 1) PARTITIONS {count}",
        f"KEY (id) PARTITIONS {count}",
        f"LINEAR KEY (id) PARTITIONS {count}",
        f"KEY () PARTITIONS {count}",
        f"RANGE (id) SUBPARTITION BY HASH (id) SUBPARTITIONS 2 ({_RANGE})",
    )
    return f" PARTITION BY {draw.of(choices)}"


def _create(draw: Draw) -> list[str] | None:
    if len(draw.tables) >= 6:
        return None
    name = draw.fresh("p")
    made = f"CREATE TABLE {draw.name(name)} (id INT NOT NULL, a VARCHAR(20), b INT, PRIMARY KEY (id)){_by(draw)}"
    rows = ", ".join(f"({number}, 'r{number}', {number * 10})" for number in range(1, 13))
    return [made, f"INSERT INTO {name} VALUES {rows}"]


def _repartition(draw: Draw) -> list[str] | None:
    table = draw.table(lambda t: t.key == ["id"] and t.column("id").data_type == "int")
    if table is None:
        return None
    return [alter(draw, table, _by(draw).strip())]


def _about(
    fits: Callable[[Table], bool], clause: Callable[[Draw, Table], str | None]
) -> Callable[[Draw], list[str] | None]:
    def made(draw: Draw) -> list[str] | None:
        table = draw.table(lambda t: t.method is not None and fits(t))
        text = clause(draw, table) if table is not None else None
        return [alter(draw, table, text)] if table is not None and text is not None else None

    return made


def _ranged(table: Table) -> bool:
    return (table.method or "").startswith(("RANGE", "LIST")) and len(table.partitions) > 1


def _hashed(table: Table) -> bool:
    return "HASH" in (table.method or "") or "KEY" in (table.method or "")


def _names(draw: Draw, table: Table) -> str:
    return ", ".join(draw.random.sample(table.partitions, draw.of((1, 1, min(2, len(table.partitions) - 1)))))


def _add(draw: Draw, table: Table) -> str | None:
    if (table.method or "").startswith("LIST"):
        return f"ADD PARTITION (PARTITION {draw.fresh('p')} VALUES IN ({draw.random.randint(13, 40)}))"
    return None if "MAXVALUE" in table.limits else f"ADD PARTITION (PARTITION {draw.fresh('p')} VALUES LESS THAN (99))"


def _reorganize(draw: Draw, table: Table) -> str | None:
    if not (table.method or "").startswith("RANGE") or not table.limits[0].isdigit() or int(table.limits[0]) < 3:
        return None
    low, high = draw.fresh("p"), draw.fresh("p")
    return (
        f"REORGANIZE PARTITION {table.partitions[0]} INTO (PARTITION {low} VALUES LESS THAN (2),"
        f" PARTITION {high} VALUES LESS THAN ({table.limits[0]}))"
    )


def _exchange(draw: Draw) -> list[str] | None:
    """Rows of a partition change places with those of another table."""
    table = draw.table(lambda t: t.method is not None and _ranged(t) and "SUB" not in t.expression)
    if table is None:
        return None
    other = draw.place(table.database, draw.fresh("x"))
    made = [f"CREATE TABLE {other} LIKE {draw.ref(table)}", f"ALTER TABLE {other} REMOVE PARTITIONING"]
    fill = f"INSERT INTO {other} SELECT * FROM {draw.ref(table)} PARTITION ({table.partitions[0]}) LIMIT 2"
    empty = f"DELETE FROM {draw.ref(table)} LIMIT 1"
    change = alter(draw, table, f"EXCHANGE PARTITION {table.partitions[0]} WITH TABLE {other}")
    return [*made, *([fill] if draw.chance(0.5) else []), empty, change]


KINDS = (
    Kind("create partitioned", 2, _create),
    Kind("partition by", 1, _repartition),
    Kind(
        "truncate partition",
        1.2,
        _about(lambda t: True, lambda d, t: f"TRUNCATE PARTITION {d.of([*t.partitions, 'ALL'])}"),
    ),
    Kind("drop partition", 1.2, _about(_ranged, lambda d, t: f"DROP PARTITION {_names(d, t)}")),
    Kind("add partition", 0.8, _about(_ranged, _add)),
    Kind("reorganize partition", 0.6, _about(_ranged, _reorganize)),
    Kind(
        "coalesce partition",
        0.6,
        _about(_hashed, lambda d, t: "COALESCE PARTITION 1" if len(t.partitions) > 1 else None),
    ),
    Kind("remove partitioning", 0.5, _about(lambda t: True, lambda d, t: "REMOVE PARTITIONING")),
    Kind("exchange partition", 0.8, _exchange),
)
