"""Generated columns and defaults that are expressions or the statement's time: beside MariaDB, and through a stream."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from binlake.decode.ddl.clauses import AddColumn
from binlake.decode.ddl.statements import parse_ddl
from binlake.decode.types.mysql_types import parse_type
from binlake.schema.rules.conversion.session import Session
from binlake.schema.rules.generated import check_expression, computed
from embedded.mariadb import EmbeddedMariaDB
from hudilake.errors import UnsupportedError
from tests.binlake.schema.conversion_oracle import read
from tests.binlake.schema.ddl_source import EPOCH_S, DdlSource, Follower

COLUMNS = {"id": "int", "n": "int", "p": "decimal(10,2)", "d": "date", "m": "datetime(3)", "s": "varchar(12)"}
ROWS = """(0, 5, 1.25, '2024-02-29', '2024-02-29 12:34:56.789', 'abc'), (1, NULL, NULL, NULL, NULL, NULL),
    (2, -7, -0.05, '1999-12-31', '1999-12-31 23:59:59', 'Öß é'), (3, 2000000000, 99999999.99, '2000-01-01',
    '2000-01-01', ''), (4, 0, 0, '2038-01-19', '2038-01-19 03:14:07.001', 'x y')"""
EXPRESSIONS = (
    ("int", "n + 1"),
    ("bigint", "n * 3 - id"),
    ("bigint", "-n"),
    ("decimal(12,1)", "p + n"),
    ("int", "p - 1"),
    ("varchar(40)", "CONCAT(s, '-', id, '-', p)"),
    ("varchar(3)", "CONCAT(s, 'zzz')"),
    ("int", "IF(n > 0, 1, 0)"),
    ("int", "n >= 0 AND p < 5"),
    ("int", "n IS NULL OR n BETWEEN 1 AND 5"),
    ("varchar(9)", "CASE WHEN n IS NULL THEN 'none' WHEN n < 0 THEN 'minus' ELSE 'some' END"),
    ("int", "COALESCE(n, id, 7)"),
    ("int", "IFNULL(n, 0) + ABS(id)"),
    ("varchar(12)", "IFNULL(s, 'none')"),
    ("int", "NULLIF(n, 0)"),
    ("int", "YEAR(d) * 100 + MONTH(d)"),
    ("int", "DAY(m)"),
    ("int", "n IN (5, 0)"),
    ("bigint", "n DIV 3"),
    ("int", "-n DIV (id + 2) * 3 + 1"),
    ("int", "id - n DIV 2 DIV 2"),
)


@pytest.mark.full
@pytest.mark.database
def test_expressions_have_the_values_that_the_server_computes(server: EmbeddedMariaDB) -> None:
    body = ", ".join(f"{name} {kind} NULL" for name, kind in COLUMNS.items())
    added = ", ".join(f"ADD g{at} {kind} AS ({text}) STORED" for at, (kind, text) in enumerate(EXPRESSIONS))
    server.execute(
        f"SET sql_mode=''; CREATE TABLE x.t ({body}); INSERT INTO x.t VALUES {ROWS}; ALTER TABLE x.t {added}"
    )
    kinds = [parse_type(kind) for kind in (*COLUMNS.values(), *(kind for kind, _ in EXPRESSIONS))]
    names = [*COLUMNS, *(f"g{at}" for at in range(len(EXPRESSIONS)))]
    renamed = ", ".join(f"{name} AS c{at}" for at, name in enumerate(names))
    server.execute(f"CREATE VIEW x.v AS SELECT {renamed} FROM x.t")
    arrays = read(server, "x.v", kinds, order="c0")
    rows = pa.table(arrays[: len(COLUMNS)], names=list(COLUMNS))
    types = dict(zip(COLUMNS, kinds, strict=False))
    for (kind, text), expected in zip(EXPRESSIONS, arrays[len(COLUMNS) :], strict=True):
        check_expression(text, parse_type(kind), rows.schema, types)
        found = computed(text, parse_type(kind), rows, Session(mariadb=True))
        assert (text, found.to_pylist()) == (text, expected.to_pylist())


@pytest.mark.parametrize(
    "text",
    [
        "n / 2",
        "p DIV 2",
        "n DIV 1.5",
        "p * 2",
        "RAND()",
        "UUID()",
        "s = 'X'",
        "f * 2",
        "n + s",
        "CONCAT(d, 'x')",
        "gone + 1",
        "(SELECT 1)",
        "n +",
    ],
)
def test_what_may_have_another_result_is_not_computed(text: str) -> None:
    kinds = {name: parse_type(kind) for name, kind in (COLUMNS | {"f": "double"}).items()}
    fields = pa.schema([(name, kind.lake_type) for name, kind in kinds.items()])
    with pytest.raises(UnsupportedError, match="is not known to be computed as in MySQL"):
        check_expression(text, parse_type("varchar(40)"), fields, kinds)


@pytest.mark.parametrize(
    ("clause", "text", "generated"),
    [
        ("INT AS (a+1) STORED", "a + 1", True),
        ("INT GENERATED ALWAYS AS (if((`a` >= 1),2,3)) VIRTUAL NOT NULL", "if(( `a` >= 1 ), 2 , 3 )", True),
        ("INT DEFAULT (a * 2)", "a * 2", False),
        ("DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3)", "CURRENT_TIMESTAMP(3)", False),
        ("INT DEFAULT 5", "", False),
    ],
)
def test_definitions_keep_their_expression(clause: str, text: str, generated: bool) -> None:
    (ddl,) = parse_ddl(f"ALTER TABLE t ADD c {clause}", "db")
    (added,) = ddl.clauses
    assert isinstance(added, AddColumn)
    assert (added.column.expression, added.column.generated) == (text, generated)


def begun(place: Path) -> tuple[DdlSource, Follower]:
    source = DdlSource()
    source.create("t", {"id": "int", "n": "int"})
    for key in range(5):
        source.put("t", key, n=key * 10)
    return source, Follower(source, place)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_rows_from_before_hold_what_the_new_column_computes(tmp_path: Path, share: float) -> None:
    source, follower = begun(tmp_path)
    follower.run(share=share)
    for row in source.tables["t"].rows.values():
        row["g"] = row["n"] + 1
    columns = {"id": "int", "n": "int", "g": "int"}
    source.execute("ALTER TABLE t ADD g INT AS (n + 1) STORED", "t", columns)
    source.put("t", 9, n=1, g=2)
    follower.run()
    follower.check("t")
    for row in source.tables["t"].rows.values():
        row["g"] = row["n"] * 2
    source.execute("ALTER TABLE t MODIFY g INT AS (n * 2) STORED", "t", columns)
    follower.restart()
    source.put("t", 8, n=1, g=2)
    follower.run()
    follower.check("t")


def test_an_expression_reads_a_column_that_was_added_without_a_value(tmp_path: Path) -> None:
    """Rows that come before the table is made lack the column, and it is null."""
    source = DdlSource()
    source.create("t", {"id": "int"})
    source.put("t", 1)
    follower = Follower(source, tmp_path)
    source.execute("ALTER TABLE t ADD b INT", "t", {"id": "int", "b": "int"})
    columns = {"id": "int", "b": "int", "v": "int", "w": "int"}
    source.execute("ALTER TABLE t ADD v INT AS (b), ADD w INT AS (IFNULL(b, id) + 1)", "t", columns)
    source.tables["t"].rows[1] |= {"b": None, "v": None, "w": 2}
    source.put("t", 2, b=5, v=5, w=6)
    follower.run()
    follower.check("t")


@pytest.mark.parametrize(
    ("definition", "shown"),
    [
        ("timestamp NULL DEFAULT CURRENT_TIMESTAMP", "{:%Y-%m-%d %H:%M:%S}"),
        ("datetime DEFAULT NOW()", "{:%Y-%m-%d %H:%M:%S}"),
        ("date DEFAULT (CURRENT_DATE)", "{:%Y-%m-%d}"),
    ],
)
def test_a_default_that_is_the_time_of_the_statement(tmp_path: Path, definition: str, shown: str) -> None:
    source, follower = begun(tmp_path)
    follower.run()
    kind = definition.split(" ")[0]
    source.execute(f"ALTER TABLE t ADD x {definition}", "t", {"id": "int", "n": "int", "x": kind})
    seconds = EPOCH_S + source.pos
    source.put("t", 1, n=1)
    follower.run()
    moment = pa.scalar(seconds, pa.timestamp("s", tz="UTC")).as_py()
    assert {shown.format(row["x"]) for key, row in follower.stored("t").items() if key != 1} == {shown.format(moment)}


@pytest.mark.parametrize(
    ("zone", "kind", "text", "utc"),
    [
        ("Europe/Berlin", "timestamp", "2020-07-01 12:00:00", "2020-07-01 10:00:00.000"),
        ("+08:00", "timestamp(3)", "2020-01-01 00:00:00.25", "2019-12-31 16:00:00.250"),
        ("+08:00", "timestamp", "2020-01-01 00:00:00+02:00", "2019-12-31 22:00:00.000"),
    ],
)
def test_the_text_of_a_timestamp_is_in_the_sources_time_zone(
    tmp_path: Path, zone: str, kind: str, text: str, utc: str
) -> None:
    source, follower = begun(tmp_path)
    follower.more["source"] = {"time_zone": zone}
    follower.run()
    source.execute(f"ALTER TABLE t ADD x {kind} NOT NULL DEFAULT '{text}'", "t", {"id": "int", "n": "int", "x": kind})
    follower.run()
    assert {f"{row['x']:%F %T.%f}"[:-3] for row in follower.stored("t").values()} == {utc}


@pytest.mark.parametrize("text", ["0000-00-00 00:00:00", "1900-01-01 00:00:00", "noon"])
def test_a_timestamp_that_is_no_moment_is_not_determined(tmp_path: Path, text: str) -> None:
    source, follower = begun(tmp_path)
    follower.run()
    columns = {"id": "int", "n": "int", "x": "timestamp"}
    source.execute(f"ALTER TABLE t ADD x TIMESTAMP DEFAULT '{text}'", "t", columns)
    follower.run()
    assert {row["x"] for row in follower.stored("t").values()} == {None}
    [told] = [str(u) for event in follower.told for ddl in event.ddl for u in ddl.undetermined]
    assert told.startswith(f"not determined: x: '{text}'")


def test_fractions_of_the_statements_time_are_not_determined(tmp_path: Path) -> None:
    source, follower = begun(tmp_path)
    follower.run()
    source.execute("ALTER TABLE t ADD x DATETIME(3) DEFAULT NOW(3)", "t", {"id": "int", "n": "int", "x": "datetime(3)"})
    follower.run()
    why = "DEFAULT NOW(3) has fractions of a second, and the log has whole seconds"
    assert follower.verdicts() == [f"add: x is null in rows before, as {why}"]
    assert [u for event in follower.told for ddl in event.ddl for u in ddl.undetermined] == [
        f"not determined: x: {why}"
    ]


def test_a_value_that_the_source_computes_otherwise_is_said(tmp_path: Path) -> None:
    source, follower = begun(tmp_path)
    follower.run()
    source.execute("ALTER TABLE t ADD g INT AS (n + 1) STORED", "t", {"id": "int", "n": "int", "g": "int"})
    source.put("t", 8, n=1, g=2)
    assert [t.warning for t in follower.run().tables] == [None]
    source.put("t", 9, n=1, g=3)
    (warning,) = [t.warning for t in follower.run().tables]
    assert warning is not None
    assert warning.startswith("column g = n + 1: the source sent 3 where 2 was computed")
    assert follower.stored("t")[9]["g"] == 3
