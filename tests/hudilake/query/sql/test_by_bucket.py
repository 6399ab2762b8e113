"""Joins and groups by bucket keys, run bucket by bucket, are those over all rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hudilake.errors import ConfigError
from hudilake.query.sql import Limits, SqlTable, plan_sql, run_sql
from hudilake.query.sql.by_bucket import core
from hudilake.read import Snapshot, TableReader
from tests.hudilake.query.sql.lakes import answer, conditions, expected, open_tables, over_all_rows, sense
from tests.hudilake.read.lakes import random_table
from tests.hypothesis_profile import scaled


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TableReader]:
    return open_tables(tmp_path_factory.mktemp("lake"))


@pytest.fixture(scope="module")
def whole(readers: dict[str, TableReader]) -> Iterator[duckdb.DuckDBPyConnection]:
    with over_all_rows(readers) as connection:
        yield connection


#: Queries with one part, of so many tables.
QUERIES = {
    "SELECT * FROM a JOIN b ON a.id = b.id": 2,
    "SELECT a.id, b.n FROM a, b WHERE a.id = b.id AND a.flag AND b.n > 0": 2,
    "SELECT a.id, b.name FROM a LEFT JOIN b ON a.id = b.id AND b.flag WHERE a.n > 0": 2,
    "SELECT a.id, b.id FROM a RIGHT JOIN b ON a.id = b.id AND a.n > 0 AND b.n > 0": 2,
    "SELECT * FROM a FULL JOIN b USING (id) WHERE a.n > 0 OR b.n IS NULL": 2,
    "SELECT id, a.n FROM a FULL JOIN b USING (id) WHERE a.n > 0": 2,
    "SELECT n FROM a RIGHT JOIN (SELECT 1 AS one) o ON true SEMI JOIN b ON a.id = b.id": 0,
    "SELECT a.id FROM a SEMI JOIN b ON a.id = b.id AND b.flag WHERE n > 0": 2,
    "SELECT n, id FROM a ANTI JOIN b USING (id) WHERE n > 0": 2,
    "SELECT count(*) FROM a JOIN b USING (id) JOIN shop.c USING (id)": 3,
    "SELECT a.id, c.id FROM a LEFT JOIN b USING (id) RIGHT JOIN shop.c ON c.id = a.id AND a.n > 0": 3,
    "SELECT a.id, b.id, c.id FROM a LEFT JOIN b ON a.id = b.id AND b.n > 0 FULL JOIN shop.c ON c.id = a.id": 3,
    "SELECT count(*) FROM a JOIN a x ON a.id = x.id": 2,
    "SELECT shop.c.n, a.n FROM shop.c JOIN a USING (id) WHERE shop.c.flag ORDER BY a.n, c.n": 2,
    "SELECT a.*, b.n AS other FROM a JOIN b ON a.id = b.id ORDER BY a.id LIMIT 5": 2,
    "SELECT DISTINCT a.part, n FROM a SEMI JOIN b ON a.id = b.id ORDER BY n, a.part": 2,
    "SELECT b.part, sum(a.n), avg(b.double), count(*) FROM a JOIN b ON a.id = b.id GROUP BY b.part ORDER BY 2": 2,
    "SELECT a.id, row_number() OVER (PARTITION BY b.n ORDER BY a.id) r FROM a JOIN b ON a.id = b.id QUALIFY r < 3": 2,
    "SELECT o.id FROM a o JOIN b ON o.id = b.id WHERE EXISTS (FROM shop.c WHERE c.n = o.n AND c.id <> o.id)": 2,
    "SELECT x.* FROM (SELECT a.id, len(b.name) FROM a LEFT JOIN b ON a.id = b.id) x WHERE x.id > 3": 2,
    "WITH j AS (SELECT a.id, b.n FROM a JOIN b ON b.id = a.id) SELECT x.id, y.n FROM j x JOIN j y USING (id)": 2,
    "SELECT (SELECT count(*) FROM a JOIN b ON a.id = b.id WHERE a.n = c.n) AS k, c.id FROM shop.c": 2,
    "SELECT a.id, b.n, c.name FROM a JOIN b ON a.id = b.id LEFT JOIN shop.c ON c.n = b.n": 2,
    "SELECT a.id, m FROM a JOIN b ON b.id = a.id LEFT JOIN (SELECT max(n) m FROM shop.c GROUP BY part) ON m = a.n": 2,
    "SELECT id, m FROM a JOIN b USING (id) LEFT JOIN (SELECT max(n) m FROM shop.c GROUP BY part) ON m = a.n": 0,
    # groups
    "SELECT id, count(*), sum(n) AS s FROM a GROUP BY id ORDER BY s DESC, id LIMIT 5": 1,
    "SELECT a.id, count(*), sum(b.n), len(max(b.name)) FROM a JOIN b USING (id) GROUP BY a.id HAVING count(*) > 0": 2,
    "SELECT a.id, sum(b.n) FROM a JOIN b USING (id) GROUP BY a.id ORDER BY sum(b.n) DESC, a.id": 2,
    "SELECT a.id, count(b.id) FROM a FULL JOIN b USING (id) GROUP BY a.id": 2,
    "SELECT id, count(b.n) FROM a FULL JOIN b USING (id) GROUP BY 1": 2,
    "SELECT DISTINCT a.id FROM a JOIN b USING (id) GROUP BY a.id, b.n": 2,
    "SELECT sum(x.s) / 2 FROM (SELECT a.id, sum(a.n) AS s FROM a JOIN b USING (id) GROUP BY a.id) x": 2,
    "SELECT a.id, count(*) FROM a, b, shop.c WHERE a.id = b.id AND b.id = c.id AND a.n + b.n > 0 GROUP BY a.id": 3,
    "SELECT part, count(*) FROM a GROUP BY part": 0,
    "SELECT id, (SELECT count(*) FROM b WHERE b.id = a.id) FROM a GROUP BY id": 0,
    # not by the keys, or not certain
    "SELECT a.id FROM a JOIN b ON a.n = b.id": 0,
    "SELECT a.id FROM a JOIN b ON a.id = b.id + 1": 0,
    "SELECT a.id FROM a JOIN b ON a.id = b.id OR a.n = b.n": 0,
    "SELECT id, n FROM a NATURAL JOIN (SELECT id FROM b)": 0,
    "SELECT a FROM a JOIN b ON a.id = b.id": 0,
    "SELECT x.id FROM a x(id, p) JOIN b ON x.id = b.id": 0,
    "SELECT n.id FROM a n JOIN b ON n.id = b.id": 2,
    "SELECT max(n.id), max(b.n) FROM a n JOIN b ON n.id = b.id": 0,
    "SELECT COLUMNS('id') FROM a JOIN b ON a.id = b.id": 0,
    "SELECT a.id FROM a LEFT JOIN b ON a.flag JOIN shop.c ON c.id = b.id": 0,
}


@pytest.mark.first(4)
@pytest.mark.parametrize("sql", QUERIES)
def test_every_shape_of_query(readers: dict[str, TableReader], whole: duckdb.DuckDBPyConnection, sql: str) -> None:
    planned = plan_sql(sql, readers)
    assert [len(part.tables) for part in planned.split.parts] == [QUERIES[sql]] * bool(QUERIES[sql])
    assert answer(planned) == expected(whole, sql)


def test_several_parts_of_one_query(readers: dict[str, TableReader], whole: duckdb.DuckDBPyConnection) -> None:
    sql = (
        "SELECT a.id, b.n FROM a LEFT JOIN b USING (id) WHERE a.id NOT IN (SELECT a.id FROM a JOIN shop.c USING (id)) "
        "UNION ALL SELECT id, count(*) FROM shop.c GROUP BY id"
    )
    planned = plan_sql(sql, readers)
    assert sorted(len(part.tables) for part in planned.split.parts) == [1, 2, 2]
    assert answer(planned) == expected(whole, sql)


def test_only_buckets_that_may_give_rows_are_read(readers: dict[str, TableReader]) -> None:
    """With one key of one table, the bucket of the other table is known, too."""
    for how, pairs in (("JOIN", 1), ("LEFT JOIN", 2), ("SEMI JOIN", 1)):
        (part,) = plan_sql(f"SELECT a.id FROM a {how} b ON a.id = b.id AND a.id = 3", readers).split.parts
        assert str(part) == f"bucket by bucket: {pairs} pairs (a: 4 buckets; b: 2 buckets)"


@st.composite
def queries(draw: st.DrawFn) -> str:
    """Up to three tables, joined by their keys in any way, with conditions, groups and orders."""
    names = draw(st.permutations([("a", "a"), ("b", "b"), ("shop.c", "c"), ("a", "d")]))[: draw(st.integers(2, 3))]
    (table, first), *others = names
    sql, seen, merged = f"{table} {first}", [first], draw(st.booleans())
    for table, alias in others:
        how = draw(st.sampled_from(["", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI"]))
        more = draw(st.lists(st.one_of(*map(conditions, [*seen, alias])), max_size=2))
        on = " AND ".join([f"{draw(st.sampled_from(seen))}.id = {alias}.id", *more])
        sql += f" {how} JOIN {table} {alias} " + ("USING (id)" if merged else f"ON {on}")
        seen += [] if how in ("SEMI", "ANTI") else [alias]
    where = draw(st.lists(st.one_of(*map(conditions, seen)), max_size=2))
    sql += f" WHERE {draw(st.sampled_from([' AND ', ' OR '])).join(where)}" if where else ""
    if draw(st.booleans()):
        key = draw(st.sampled_from([f"{rows}.id" for rows in seen] + ["id"] * merged))
        other = draw(st.sampled_from(["", f", {seen[-1]}.flag"]))
        return f"SELECT {key}{other}, count(*), sum({seen[-1]}.n), max({first}.name) FROM {sql} GROUP BY {key}{other}"
    star = ["*"] if not merged else []
    items = draw(
        st.sampled_from([*star, ", ".join(f"{rows}.id, {rows}.n" for rows in seen), f"{seen[-1]}.*", "count(*)"])
    )
    return f"SELECT {items} FROM {sql}"


@settings(max_examples=scaled(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sql=queries())
def test_random_queries(readers: dict[str, TableReader], whole: duckdb.DuckDBPyConnection, sql: str) -> None:
    with sense():
        wanted = expected(whole, sql)
        planned = plan_sql(sql, readers)
        assert planned.split.parts
        assert answer(planned) == wanted


def test_control_joins_by_other_columns_would_lose_rows(
    readers: dict[str, TableReader], whole: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = "SELECT a.id, b.id FROM a JOIN b ON a.part = b.part"
    monkeypatch.setattr(core, "_require_keys", lambda *_: None)
    assert answer(plan_sql(sql, readers)) != expected(whole, sql)


def test_tables_whose_counts_do_not_divide_each_other(
    readers: dict[str, TableReader], whole: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    """A bucket is read by several steps if it is small enough; else all is joined at once."""
    random_table(tmp_path, 3, keys=40, commits=8, buckets=3)
    three = TableReader.open(str(tmp_path))
    planned = plan_sql("SELECT a.id FROM a JOIN three USING (id) WHERE a.id < 4", {**readers, "three": three})
    assert not planned.split.parts
    assert planned.split.why_not == ("the bucket counts of the tables have no common divisor",)
    planned = plan_sql(
        "SELECT a.id, three.n FROM a JOIN three USING (id) WHERE three.id = 3", {**readers, "three": three}
    )
    assert [part.steps for part in planned.split.parts] == [2]
    whole.register("rows", three.read().read_all())
    whole.execute("CREATE OR REPLACE TABLE three AS SELECT * FROM rows")
    assert answer(planned) == expected(whole, planned.sql)


def test_tables_at_other_moments(readers: dict[str, TableReader]) -> None:
    first = readers["a"].table.timeline.completed()[0].requested_time
    before: dict[str, TableReader | SqlTable] = {"a": readers["a"], "old": SqlTable(readers["a"], Snapshot(first))}
    sql = "SELECT a.id, old.n FROM a RIGHT JOIN old ON a.id = old.id"
    assert len(plan_sql(sql, before).split.parts) == 1
    assert answer(plan_sql(sql, before)) == answer(plan_sql(sql, before, buckets=False))


def test_errors_are_those_of_the_query(readers: dict[str, TableReader]) -> None:
    for sql, match in (
        ("SELECT id FROM a JOIN b ON a.id = b.id", "Ambiguous"),
        ("SELECT a.nope FROM a JOIN b ON a.id = b.id", "nope"),
        ("SELECT a.id FROM a JOIN b ON a.id = b.id WHERE a.name::INT > 0", "convert"),
    ):
        with pytest.raises(ConfigError, match=match), run_sql(plan_sql(sql, readers), Limits(10**8)) as rows:
            rows.read_all()


def test_a_result_need_not_be_read_to_its_end(readers: dict[str, TableReader], tmp_path: Path) -> None:
    with run_sql(plan_sql("SELECT a.id FROM a JOIN b USING (id)", readers), Limits(10**8, tmp_path)) as rows:
        assert next(iter(rows)).num_rows
    assert not list(tmp_path.iterdir())
