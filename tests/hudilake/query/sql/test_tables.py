"""SQL over several tables: each is read by a plan of its own, and the answer is that over all rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hudilake
from hudilake.errors import ConfigError, CorruptDataError
from hudilake.query.sql import Limits, SqlTable, plan_sql, read_sql
from hudilake.query.sql.joins import Joins
from hudilake.read import Snapshot, TableReader
from tests.hudilake.query.sql.lakes import answer, conditions, expected, open_tables, over_all_rows, sense
from tests.hudilake.read.lakes import SCHEMA, random_table
from tests.hypothesis_profile import scaled


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TableReader]:
    return open_tables(tmp_path_factory.mktemp("lake"))


@pytest.fixture(scope="module")
def whole(readers: dict[str, TableReader]) -> Iterator[duckdb.DuckDBPyConnection]:
    with over_all_rows(readers) as connection:
        yield connection


QUERIES = [
    "SELECT * FROM a JOIN b ON a.id = b.id",
    "SELECT a.id, b.n FROM a, b WHERE a.id = b.id AND a.flag AND b.n > 0",
    "SELECT a.id, b.name FROM a LEFT JOIN b ON a.id = b.id AND b.flag WHERE a.n > 0",
    "SELECT a.id, b.name FROM a LEFT JOIN b ON a.id = b.id AND a.flag",
    "SELECT a.id, b.id FROM a RIGHT JOIN b ON a.id = b.id AND a.n > 0 AND b.n > 0",
    "SELECT * FROM a FULL JOIN b USING (id) WHERE a.n > 0 OR b.n IS NULL",
    "SELECT id, a.n FROM a FULL JOIN b USING (id) WHERE a.n > 0",
    "SELECT a.id FROM a SEMI JOIN b ON a.id = b.id AND b.flag WHERE n > 0",
    "SELECT a.id FROM a ANTI JOIN b ON a.id = b.id AND a.flag AND b.n > 0 WHERE n > 0",
    "SELECT count(*) FROM a JOIN b USING (id) JOIN shop.c USING (id)",
    "SELECT id, a.n, b.n FROM a FULL JOIN b USING (id) WHERE id > 20",
    "SELECT id, a.n, b.n FROM a RIGHT JOIN b USING (id) WHERE id IN (1, 2, 3, 30, 35)",
    "SELECT id, n FROM a ANTI JOIN b USING (id) WHERE id > 3 AND n > 0",
    "SELECT id FROM a LEFT JOIN b USING (id, part) WHERE part = 'p1' AND id > 2",
    "SELECT a.id, c.id FROM a LEFT JOIN b USING (id) RIGHT JOIN shop.c ON c.id = a.id AND a.n > 0 AND b.n < 0",
    "SELECT a.part, count(DISTINCT b.id) FROM a JOIN b ON a.part = b.part GROUP BY 1 HAVING count(*) > 3",
    "WITH x AS (SELECT * FROM a WHERE n > 0), y AS (SELECT id FROM b) SELECT x.name FROM x JOIN y USING (id)",
    "SELECT id FROM a WHERE n > 1 UNION ALL SELECT id FROM b WHERE n > 2 EXCEPT SELECT id FROM shop.c WHERE flag",
    "SELECT id FROM a WHERE id IN (SELECT id FROM b WHERE flag) AND NOT EXISTS (FROM shop.c WHERE c.id = a.id)",
    "SELECT a.id, (SELECT max(b.n) FROM b WHERE b.part = a.part) AS m FROM a WHERE a.id < 9",
    "SELECT c.id, shop.c.n FROM shop.c JOIN a ON shop.c.id = a.id",
    "SELECT x.id FROM a x JOIN (SELECT id, n FROM b WHERE n > 0) y ON x.id = y.id WHERE y.n < 4 AND x.n < 4",
    "SELECT a.id FROM a JOIN (b JOIN shop.c ON b.id = c.id) ON a.id = b.id WHERE a.n > 0",
    "SELECT id, n FROM a NATURAL JOIN (SELECT id FROM b)",
    "SELECT a.id, b.id FROM a POSITIONAL JOIN b WHERE a.id = -1",
    "SELECT a.*, b.n AS other FROM a JOIN b ON a.id = b.id ORDER BY a.id LIMIT 5",
]


@pytest.mark.first(3)
@pytest.mark.parametrize("sql", QUERIES)
def test_every_shape_of_query(readers: dict[str, TableReader], whole: duckdb.DuckDBPyConnection, sql: str) -> None:
    assert answer(plan_sql(sql, readers, buckets=False)) == expected(whole, sql)


@st.composite
def joins(draw: st.DrawFn) -> str:
    """Three tables, joined in any way, with conditions in ON and WHERE."""
    sides = ["", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI"]
    first, second = draw(st.sampled_from(sides)), draw(st.sampled_from(sides))
    seen = ["a"] if first in ("SEMI", "ANTI") else ["a", "b"]
    one = draw(st.lists(st.one_of(conditions("a"), conditions("b")), max_size=2))
    two = draw(st.lists(st.one_of(*map(conditions, [*seen, "c"])), max_size=2))
    out = seen if second in ("SEMI", "ANTI") else [*seen, "c"]
    where = draw(st.lists(st.one_of(*map(conditions, out)), max_size=3))
    glue = draw(st.sampled_from([" AND ", " OR "]))
    key = draw(st.sampled_from(seen))
    sql = f"SELECT {', '.join(f'{rows}.id, {rows}.n' for rows in out)} FROM a"
    sql += f" {first} JOIN b ON {' AND '.join(['a.id = b.id', *one])}"
    sql += f" {second} JOIN shop.c ON {' AND '.join([f'{key}.id = c.id', *two])}"
    return sql + (f" WHERE {glue.join(where)}" if where else "")


@settings(max_examples=scaled(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sql=joins())
def test_random_joins(readers: dict[str, TableReader], whole: duckdb.DuckDBPyConnection, sql: str) -> None:
    with sense():
        assert answer(plan_sql(sql, readers, buckets=False)) == expected(whole, sql)


def test_control_conditions_beside_outer_joins_would_lose_rows(
    readers: dict[str, TableReader], whole: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = "SELECT a.id, b.id FROM a LEFT JOIN b ON a.id = b.id WHERE b.id IS NULL"
    monkeypatch.setattr(Joins, "nullable", lambda *_: False)
    assert answer(plan_sql(sql, readers, buckets=False)) != expected(whole, sql)


@pytest.mark.parametrize(
    ("sql", "wanted", "columns"),
    [
        ("a JOIN b ON a.id = b.id AND a.n = 1 WHERE b.n = 2", ["n = 1", "n = 2"], ["id,n", "id,n"]),
        ("a LEFT JOIN b ON a.id = b.id AND a.n = 1 AND b.n = 2", ["true", "n = 2"], ["id,n", "id,n"]),
        ("a LEFT JOIN b ON a.id = b.id WHERE a.n = 1 AND b.n IS NULL", ["n = 1", "true"], ["id,n", "id,n"]),
        ("a LEFT JOIN b ON a.id = b.id WHERE b.n = 1", ["true", "n = 1"], ["id", "id,n"]),
        ("a RIGHT JOIN b ON a.id = b.id AND a.n = 1 AND b.n = 2 WHERE b.id = 3", ["n = 1", "id = 3"], ["id,n", "id,n"]),
        ("a FULL JOIN b ON a.id = b.id AND a.n = 1 WHERE b.n = 2", ["true", "n = 2"], ["id,n", "id,n"]),
        ("a SEMI JOIN b ON a.id = b.id AND a.n = 1 AND b.n = 2", ["n = 1", "n = 2"], ["id,n", "id,n"]),
        ("a ANTI JOIN b ON a.id = b.id AND a.n = 1 AND b.n = 2", ["true", "n = 2"], ["id,n", "id,n"]),
        ("a JOIN b USING (id) WHERE id = 3", ["id = 3", "id = 3"], ["id", "id"]),
        ("a LEFT JOIN b USING (id) WHERE id = 3 AND n = 1", ["id = 3", "id = 3"], ["id,n", "id,n"]),
        ("a FULL JOIN b USING (id) WHERE id = 3 OR id IS NULL", ["true", "true"], ["id", "id"]),
        ("a ANTI JOIN b USING (id) WHERE id = 3 AND n = 1", ["(id = 3 and n = 1)", "true"], ["id,n", "id,n"]),
        ("a JOIN b ON a.id = b.id WHERE id = 3", ["true", "true"], ["id", "id"]),
        ("a JOIN b ON a.id = b.id LEFT JOIN b x ON x.id = a.id AND x.n = 3", ["true", "true"], ["id", "id,n"]),
        ("a, b LEFT JOIN b x ON x.id = b.id WHERE a.n = 1 AND b.n = 2", ["true", "true"], ["id,n", "id,n"]),
        ("a JOIN (SELECT b.id FROM b WHERE n = 1) y ON a.id = y.id AND a.n = 2", ["n = 2", "n = 1"], ["id,n", "id,n"]),
    ],
)
def test_what_is_read_of_each_table(
    readers: dict[str, TableReader], sql: str, wanted: list[str], columns: list[str]
) -> None:
    planned = plan_sql(f"SELECT a.id FROM {sql}", readers)
    plans = {table.names[0][1]: table.plan for table in planned.tables}
    assert [str(plans[name].condition) for name in "ab"] == wanted
    assert [",".join(plans[name].columns) for name in "ab"] == columns


def test_a_star_takes_the_columns_of_its_own_tables(readers: dict[str, TableReader]) -> None:
    for sql in (
        "SELECT a.*, b.n FROM a JOIN b ON a.id = b.id",
        "SELECT * FROM a SEMI JOIN (SELECT id, n FROM b) USING (id)",
    ):
        plans = [table.plan for table in plan_sql(sql, readers).tables]
        assert [plan.columns for plan in plans] == [tuple(SCHEMA.names), ("id", "n")]


def test_names_that_differ_in_case_alone(readers: dict[str, TableReader]) -> None:
    """Only one of them would be read, in silence. Letters beyond ASCII differ from their capitals, for DuckDB too."""
    first, second = (SqlTable(readers[name]) for name in ("a", "b"))
    cases = {("Shop", "É"): first, ("shop", "É"): first, ("shop", "é"): second, ("", "x"): first, ("", "X"): second}
    for sql in ("SELECT 1 FROM x, X", "SELECT 1 FROM x JOIN (SELECT id FROM X) USING (id)"):
        with pytest.raises(ConfigError, match="two tables whose names differ in upper and lower case alone"):
            plan_sql(sql, cases.get)
    assert len(plan_sql('SELECT 1 FROM Shop."É" u, shop."É" v', cases.get).tables) == 1
    counts = {"SELECT count(*) FROM x": {"x": first}, "SELECT count(*) FROM y": {"y": second}}
    alone = [answer(plan_sql(sql, tables))[1][0] for sql, tables in counts.items()]
    both = 'SELECT count(*) FROM shop."É" UNION ALL SELECT count(*) FROM shop."é"'
    assert sorted(answer(plan_sql(both, cases.get))[1]) == sorted(alone)


def test_names_of_tables_are_known_one_by_one(readers: dict[str, TableReader]) -> None:
    """One of two names was left out, and so was a moment of a name that no table has."""
    with pytest.raises(ConfigError, match="differ in upper and lower case alone: A, a"):
        plan_sql("SELECT 1 FROM a", {"A": readers["a"], "a": readers["b"]})
    plan_sql("SELECT 1 FROM a", {"a": readers["a"], "É": readers["a"], "é": readers["b"]})
    table = hudilake.open_table(readers["a"].table.storage.uri)
    first = table.history()[-1]
    counts = [hudilake.sql("SELECT count(*) FROM a", {"a": table}, as_of={name: first}) for name in ("a", "A")]
    assert counts[0] == counts[1]
    with pytest.raises(ConfigError, match="no name of a table: b"):
        hudilake.sql("SELECT count(*) FROM a", {"a": table}, as_of={"b": first})


def test_each_table_at_its_moment(readers: dict[str, TableReader]) -> None:
    now = readers["a"]
    before = SqlTable(now, Snapshot(now.table.timeline.completed()[0].requested_time))
    sql = "SELECT (SELECT count(*) FROM now), (SELECT count(*) FROM before), count(*) FROM before JOIN now USING (id)"
    with read_sql(sql, {"now": now, "before": before}) as rows:
        (counts,) = rows.read_all().to_pylist()
    then = len({row for batch in now.read(before.query, columns=["id"]) for row in batch.column(0).to_pylist()})
    assert list(counts.values())[:2] == [now.count(), then]
    assert 0 < then < now.count()


def test_the_error_of_the_table_that_fails(readers: dict[str, TableReader], tmp_path: Path) -> None:
    random_table(tmp_path, 1, commits=2)
    for file in tmp_path.glob("part=*/.*.log.*"):
        file.write_bytes(file.read_bytes().replace(b"PAR1", b"PAR2"))
    tables = {"a": readers["a"], "d": TableReader.open(str(tmp_path))}
    with (
        pytest.raises(CorruptDataError, match="Parquet"),
        read_sql("SELECT * FROM a JOIN d USING (id)", tables) as rows,
    ):
        rows.read_all()


def test_files_beside_the_spilled_rows_cannot_be_read(readers: dict[str, TableReader], tmp_path: Path) -> None:
    """DuckDB opens the directory for spilled rows to queries, so it is one that holds nothing else."""
    (tmp_path / "secret.csv").write_text("secret")
    refused = f"SELECT a.id FROM a, read_text('{tmp_path}/secret.csv')"
    with pytest.raises(ConfigError, match="Permission"), read_sql(refused, readers, Limits(directory=tmp_path)) as rows:
        rows.read_all()
    own = "SELECT s.file FROM (SELECT 1 FROM a LIMIT 1), glob(current_setting('temp_directory') || '/*') s"
    with read_sql(own, readers, Limits(directory=tmp_path)) as rows:
        assert rows.read_all().num_rows == 0


def test_what_does_not_fit_is_spilled(readers: dict[str, TableReader], tmp_path: Path) -> None:
    """A sort of more rows than the limit holds; the control may not spill."""
    sql = "SELECT md5(CAST(x * 1000 + a.id AS VARCHAR)) AS h FROM a, range({}) r(x) ORDER BY h"
    limits = Limits(60_000_000, tmp_path)
    with read_sql(sql.format(60_000), readers, limits) as rows:
        assert sum(batch.num_rows for batch in rows) == readers["a"].count() * 60_000
    assert not list(tmp_path.iterdir())
    with (
        pytest.raises(ConfigError, match="directory for spilled rows"),
        read_sql(sql, readers, Limits(1, tmp_path / "x")),
    ):
        pass
