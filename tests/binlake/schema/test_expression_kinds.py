"""Expressions over columns of every MySQL type: each is either not determined, or has the server's values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from sqlglot import exp

from binlake.decode.changes import SourceTable
from binlake.decode.ddl.statements import parse_ddl
from binlake.decode.types.mysql_types import MysqlType, parse_type
from binlake.schema.rules.conversion.session import Session
from binlake.schema.rules.expression_kinds import Kind, Kinds
from binlake.schema.rules.generated import check_expression, computed, why_open
from binlake.schema.rules.generated_columns import GeneratedHistory, columns_of
from binlake.schema.rules.judged import Judgement, TableSchemaState
from binlake.schema.rules.stepping import stepped
from binlake.schema.rules.verdicts import judge_clauses
from binlake.settings import TablesSettings
from embedded.mariadb import EmbeddedMariaDB
from hudilake.errors import UnsupportedError
from tests.binlake.schema.conversion_oracle import read

#: Types, and values of which each tells the meanings of the type apart.
VALUES = {
    "tinyint(1)": "1, 0, 7",
    "int": "5, 0, -7",
    "int unsigned": "5, 0, 4000000000",
    "int(6) zerofill": "5, 0, 70",
    "bigint": "5, 0, -7000000000",
    "bigint unsigned": "5, 0, 7000000000",
    "decimal(10,2)": "1.50, 0, -0.40",
    "decimal(6,1) zerofill": "1.5, 0, 0.4",
    "decimal(50,4)": "1.5, 0, -0.4",
    "float": "0.1, 0, -0.4",
    "double": "0.1, 0, -0.4",
    "bit(1)": "1, 0, 1",
    "bit(12)": "65, 0, 1000",
    "year": "2024, 0, 1999",
    "date": "'2024-02-29', '1999-12-31', '0000-00-00', '2000-00-10'",
    "datetime(3)": "'2024-02-29 12:00:00.5', '1999-12-31', '0000-00-00'",
    "timestamp(3) null": "'2024-02-29 23:30:00.5', '1999-12-31 00:30:00', '2000-01-01'",
    "time(3)": "'00:00:01', '-01:02:03.5', '00:00:00'",
    "varchar(8)": "'true', '12', 'A'",
    "text": "'true', '12', 'A'",
    "enum('b','a','2')": "'a', '2', 'b'",
    "set('b','a')": "'a', 'b', ''",
    "json": "'[1]', '{}', '5'",
    "inet6": "'::1', '::', '::2'",
    "binary(4)": "'A', '1', ''",
    "varbinary(4)": "'A', '1', ''",
    "blob": "'A', '1', ''",
}
#: Expressions over a column ``c``, and below them the types of the columns that take their values.
EXPRESSIONS = (
    "c",
    "c + 1",
    "c * 2 + 1",
    "c - 0.5",
    "-c",
    "ABS(c)",
    "c DIV 2",
    "c > 5",
    "c = 99",
    "c BETWEEN 1 AND 9",
    "c IN (1, 5)",
    "c = 'a'",
    "IF(c, 1, 2)",
    "IF(c IS NULL, 1, 2)",
    "c AND 1",
    "NOT c",
    "c IS TRUE",
    "COALESCE(c, 0)",
    "COALESCE(c, 'x')",
    "COALESCE(c, 0) + 1",
    "COALESCE(c, 1.5)",
    "IFNULL(c, c)",
    "IF(1, c, NULL)",
    "IF(c IS NULL, 'none', 'some')",
    "NULLIF(c, 0)",
    "NULLIF(c, 'a')",
    "CASE c WHEN 1 THEN 10 WHEN 'a' THEN 20 ELSE 30 END",
    "CASE c WHEN 1 THEN 10 ELSE 30 END",
    "CASE WHEN c THEN 10 ELSE 30 END",
    "CONCAT(c, '|')",
    "CONCAT(c IS NULL, '|')",
    "CONCAT(COALESCE(c, 0), '|')",
    "UPPER(c)",
    "LOWER(c)",
    "YEAR(c)",
    "MONTH(c) + DAY(c)",
    "DATE(c)",
)
TARGETS = ("bigint", "varchar(40)", "date")


@pytest.mark.full
@pytest.mark.database
@pytest.mark.parametrize("kind", VALUES)
def test_what_is_computed_is_what_the_server_computes(server: EmbeddedMariaDB, kind: str) -> None:
    column = parse_type(kind)
    rows = ", ".join(f"({at}, {value})" for at, value in enumerate([*VALUES[kind].split(", "), "NULL"]))
    server.execute(
        f"SET sql_mode=''; DROP TABLE IF EXISTS x.t; CREATE TABLE x.t (c0 INT, c {kind}); INSERT INTO x.t VALUES {rows}"
    )
    server.execute("CREATE OR REPLACE VIEW x.v AS SELECT c0, c AS c1 FROM x.t")
    numbers, values = read(server, "x.v", [parse_type("int"), column], order="c0")  # a zero date is null
    table = pa.table({"c0": numbers, "c": values})
    wrong: list[object] = []
    cases = [(text, target) for text in EXPRESSIONS for target in TARGETS if _is_listed(text, target, column)]
    added = ", ".join(f"ADD g{at} {target} AS ({text}) STORED" for at, (text, target) in enumerate(cases))
    server.execute(f"SET sql_mode=''; ALTER TABLE x.t {added}")
    renamed = "".join(f", g{at} AS c{at + 1}" for at in range(len(cases)))
    server.execute(f"CREATE OR REPLACE VIEW x.v AS SELECT c0{renamed} FROM x.t")
    _, *theirs = read(server, "x.v", [parse_type("int"), *(parse_type(target) for _, target in cases)], order="c0")
    for (text, target), expected in zip(cases, theirs, strict=True):
        found = computed(text, parse_type(target), table, Session(mariadb=True))
        if why_open(text, parse_type(target), {"c": column}) is not None:
            some = values.is_valid()
            found, expected = found.filter(some), expected.filter(some)
        wrong += [(text, target, found.to_pylist(), expected.to_pylist())] if found != expected else []
    assert wrong == []


def _is_listed(text: str, target: str, column: MysqlType) -> bool:
    try:
        check_expression(text, parse_type(target), pa.schema([("c", column.lake_type)]), {"c": column})
    except UnsupportedError:
        return False
    return True


def test_control_numbers_texts_and_dates_are_computed() -> None:
    counts = {kind: sum(_is_listed(text, "varchar(40)", parse_type(kind)) for text in EXPRESSIONS) for kind in VALUES}
    assert counts["int"] > 20
    assert min(counts["varchar(8)"], counts["date"], counts["decimal(10,2)"]) > 3
    assert counts["time(3)"] == 2  # IS NULL


@pytest.mark.parametrize("text", ["c", "c + 1", "COALESCE(c, 0)", "IF(c, 1, 0)", "c > 5", "CONCAT(c)", "c IS NULL"])
@pytest.mark.parametrize("lake", [pa.int64(), pa.int32(), pa.string(), pa.date32()])
def test_a_column_of_an_unknown_type_is_not_guessed(text: str, lake: pa.DataType) -> None:
    with pytest.raises(UnsupportedError, match="the type of c at the source is not known"):
        check_expression(text, parse_type("int"), pa.schema([("c", lake)]), {})


def test_a_column_that_the_lake_has_in_another_form_is_not_computed() -> None:
    with pytest.raises(UnsupportedError, match="c is int at the source and string in the lake"):
        check_expression("c > 5", parse_type("int"), pa.schema([("c", pa.string())]), {"c": parse_type("int")})
    check_expression("c > 5", parse_type("int"), pa.schema([("c", pa.int64())]), {"c": parse_type("int")})


def judged(types: dict[str, str], statement: str, generated: str = "") -> Judgement:
    """The verdict on a statement about a table with these columns. ``generated``: the CREATE TABLE with some."""
    kinds = {name: parse_type(kind) for name, kind in types.items()}
    schema = pa.schema([(name, kind.lake_type) for name, kind in kinds.items()])
    rules = TablesSettings.model_validate({}).rules(SourceTable("d", "t"))
    made = GeneratedHistory(lambda order: (0, {}))
    state = TableSchemaState(
        schema, ("id",), None, rules, generated=made, types_before=lambda order: kinds if order == 9 else {}
    )
    if generated:
        columns = columns_of(parse_ddl(generated, "d")[0].clauses)
        state.generated = GeneratedHistory(lambda _: (1, columns))
    (effect,) = parse_ddl(statement, "d")
    return judge_clauses(effect.clauses, 9, state)


@pytest.mark.parametrize("text", ["t + 1", "COALESCE(t, 0)", "IF(t, 1, 0)", "t"])
@pytest.mark.parametrize("word", ["ADD g BIGINT AS ({}) STORED", "ADD g BIGINT DEFAULT ({})"])
def test_an_expression_over_a_time_is_not_determined(word: str, text: str) -> None:
    verdict = judged({"id": "int", "t": "time(3)"}, f"ALTER TABLE t {word.format(text)}")
    assert [one.column for one in verdict.undetermined] == ["g"]
    assert not verdict.steps


def test_a_number_that_becomes_a_time_leaves_what_reads_it_open() -> None:
    made = "CREATE TABLE t (id INT PRIMARY KEY, n INT, g DECIMAL(40,4) AS (n * 2 + 1) STORED)"
    types = {"id": "int", "n": "int", "g": "decimal(30,4)"}
    verdict = judged(types, "ALTER TABLE t MODIFY n TIME(3)", made)
    assert [one.column for one in verdict.undetermined] == ["g"]
    rows = pa.table({"id": pa.array([1, 2], pa.int32()), "n": pa.array([1, 0], pa.int32())})
    rows = rows.append_column("g", pa.array([3, 1]).cast(pa.decimal128(30, 4)))
    every = np.array([True, True])
    after = stepped(rows, verdict.steps, every, ~every)
    assert after.column("n").to_pylist() == [1_000_000, 0]
    assert after.column("g").to_pylist() == [None, None]


def test_equal_text_of_another_type_is_another_value_to_an_expression() -> None:
    made = "CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(5), g INT AS (s + 1) STORED)"
    verdict = judged({"id": "int", "s": "varchar(5)", "g": "int"}, "ALTER TABLE t MODIFY s ENUM('a', 'b')", made)
    assert [one.column for one in verdict.undetermined] == ["g"]
    rows = pa.table({"id": pa.array([1], pa.int32()), "s": ["b"], "g": pa.array([1], pa.int32())})
    after = stepped(rows, verdict.steps, np.array([True]), np.array([False]))
    assert (after.column("s").to_pylist(), after.column("g").to_pylist()) == (["b"], [None])


def test_an_expression_reads_the_columns_as_they_are_after_the_statement() -> None:
    types = {"id": "int", "n": "int"}
    verdict = judged(types, "ALTER TABLE t ADD g INT AS (n + 1) STORED, MODIFY n TIME")
    assert [one.column for one in verdict.undetermined] == ["g"]
    later = judged(types, "ALTER TABLE t ADD g INT AS (m + 1) STORED, ADD m INT NOT NULL DEFAULT 5")
    assert not later.undetermined


@pytest.mark.parametrize(
    "clauses", ["RENAME COLUMN n TO t, RENAME COLUMN t TO n", "CHANGE n t BIGINT, CHANGE t n TIME"]
)
def test_columns_that_swap_their_names_swap_their_types(clauses: str) -> None:
    kinds = {"id": "int", "n": "bigint", "t": "time"}
    named = {name: parse_type(kind) for name, kind in kinds.items()}
    schema = pa.schema([(name, kind.lake_type) for name, kind in named.items()])
    rules = TablesSettings.model_validate({}).rules(SourceTable("d", "t"))
    made = GeneratedHistory(lambda order: (0, {}))
    state = TableSchemaState(
        schema, ("id",), None, rules, generated=made, types_before=lambda order: named if order == 9 else {}
    )
    for order, statement in (
        (9, f"ALTER TABLE t {clauses}"),
        (10, "ALTER TABLE t ADD a INT AS (t + 1), ADD b INT AS (n + 1)"),
    ):
        (effect,) = parse_ddl(statement, "d")
        verdict = judge_clauses(effect.clauses, order, state)
    assert [one.column for one in verdict.undetermined] == ["b"]


@pytest.mark.parametrize(
    ("text", "named"), [("YEAR(d)", ["g"]), ("d", ["g"]), ("n + 1", []), ("IF(n > 1, DAY(d), 0)", ["g"])]
)
@pytest.mark.parametrize("word", ["ADD g BIGINT AS ({}) STORED", "ADD g BIGINT DEFAULT ({})"])
def test_a_zero_date_in_an_expression_is_named(word: str, text: str, named: list[str]) -> None:
    verdict = judged({"id": "int", "n": "int", "d": "date"}, f"ALTER TABLE t {word.format(text)}")
    assert [one.column for one in verdict.undetermined] == named
    assert len(verdict.steps) == 1


def test_a_zero_date_that_stays_a_date_is_null() -> None:
    verdict = judged({"id": "int", "d": "date"}, "ALTER TABLE t ADD g DATE AS (DATE(d)) STORED")
    assert not verdict.undetermined


@pytest.mark.parametrize("text", ["UPPER(c)", "LOWER(c)", "CONCAT(LOWER(c), 'x')"])
def test_the_case_of_letters_is_the_servers(text: str) -> None:
    """DuckDB gives hundreds of letters another one than MariaDB does, as for a sharp s."""
    assert not _is_listed(text, "varchar(40)", parse_type("varchar(8)"))


@pytest.mark.parametrize("text", ["COALESCE({}, 1)", "IF(c, {}, 1)", "CASE WHEN c THEN {} ELSE 1 END", "NULLIF({}, 1)"])
def test_each_part_of_a_nested_expression_is_looked_at_once(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, of = [0], Kinds.of

    def counted(self: Kinds, node: exp.Expression) -> Kind:
        looks[0] += 1
        return of(self, node)

    monkeypatch.setattr(Kinds, "of", counted)
    nested = "c"
    for _ in range(12):
        nested = text.format(nested)
    assert _is_listed(nested, "bigint", parse_type("int"))
    assert looks[0] < 12 * 4
