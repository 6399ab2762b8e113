"""Generated columns of which a statement converts a column that they read.

The suite's script ``derived`` has them with what a server and Debezium made of them.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from binlake.decode.changes import SourceTable
from binlake.decode.ddl.clauses import Action, AddColumn, Clause, in_charset
from binlake.decode.ddl.statements import parse_ddl
from binlake.decode.types.mysql_types import parse_type
from binlake.schema.rules.generated_columns import GeneratedHistory, changed, columns_of, reading
from binlake.schema.rules.judged import Judgement, TableSchemaState
from binlake.schema.rules.stepping import stepped
from binlake.schema.rules.steps import Compute, Convert, Follow, step_from_json, step_to_json, stored_step
from binlake.schema.rules.undetermined import WHOLE_ROWS
from binlake.schema.rules.verdicts import judge_clauses
from binlake.settings import TablesSettings

CREATED = """CREATE TABLE t (id INT PRIMARY KEY, n INT, twice INT AS (`n` * 2) STORED, more INT AS (TWICE + 1),
    half DOUBLE AS (n / 2) STORED, `od``d` INT AS (id), plain INT DEFAULT (n))"""


def generated(*statements: str) -> GeneratedHistory:
    known = GeneratedHistory()
    for order, statement in enumerate((CREATED, *statements), 1):
        (effect,) = parse_ddl(statement, "d")
        known.note(order, Action(effect.action), effect.clauses)
    return known


def judged(statement: str, columns: list[str], partition: str | None = None) -> Judgement:
    """The verdict on a statement about the table, whose lake table has these columns, all INT but ``half``."""
    schema = pa.schema([(name, pa.float64() if name == "half" else pa.int32()) for name in columns])
    rules = TablesSettings.model_validate({}).rules(SourceTable("d", "t"))
    types = {name: parse_type("double" if name == "half" else "int") for name in columns}
    state = TableSchemaState(schema, ("id",), partition, rules, generated=generated(), types_before=lambda _: types)
    (effect,) = parse_ddl(statement, "d")
    return judge_clauses(effect.clauses, 9, state)


def test_columns_are_followed_through_statements() -> None:
    assert sorted(generated().before(9)) == ["half", "more", "od`d", "twice"]
    assert sorted(generated("ALTER TABLE t DROP half, MODIFY more INT").before(9)) == ["od`d", "twice"]
    assert sorted(generated("ALTER TABLE t RENAME COLUMN half TO h, ADD g INT AS (1)").before(9))[:2] == ["g", "h"]
    assert sorted(generated("ALTER TABLE t CHANGE twice double2 INT AS (n) STORED").before(9))[0] == "double2"
    known = generated("CREATE TABLE t (a INT)")
    assert known.before(9) == {}
    known.created = lambda order: (8, changed({}, parse_ddl(CREATED, "d")[0].clauses))
    assert "half" in known.before(9)


def test_a_column_that_reads_another_generated_one_comes_after_it() -> None:
    columns = columns_of(parse_ddl(CREATED, "d")[0].clauses)
    assert [(c.name, sorted(bases)) for c, bases in reading(columns, ["n"])] == [
        ("twice", ["n"]),
        ("half", ["n"]),
        ("more", ["n"]),
    ]
    assert [c.name for c, _ in reading(columns, ["id"])] == ["od`d"]


@pytest.mark.parametrize("statement", ["ALTER TABLE t MODIFY n INT NOT NULL", "ALTER TABLE t CHANGE n n INT NOT NULL"])
def test_they_are_computed_anew_or_null_where_their_columns_change(statement: str) -> None:
    verdict = judged(statement, ["id", "n", "twice", "more", "half"])
    assert [one.column for one in verdict.undetermined] == ["half"]
    values: dict[str, list[float | None]] = {"twice": [None, 8], "more": [None, 9], "half": [None, 2.0]}
    numbers = {"id": [1, 2], "n": [None, 4], **values}
    rows = pa.table(
        {name: pa.array(of, pa.float64() if name == "half" else pa.int32()) for name, of in numbers.items()}
    )
    every = rows.column("id").to_numpy() > 0
    after = stepped(rows, [step_from_json(step_to_json(stored_step(step))) for step in verdict.steps], every, ~every)
    assert after.column("n").to_pylist() == [0, 4]
    assert after.column("twice").to_pylist() == [0, 8]
    assert after.column("more").to_pylist() == [1, 9]
    assert after.column("half").to_pylist() == [None, 2.0]
    again = stepped(after, verdict.steps, every, ~every)
    assert again.equals(after)


def test_a_value_that_changes_takes_the_followers_along() -> None:
    rows = pa.table({"n": pa.array([1, 2, None], pa.int32()), "half": [0.5, 1.0, 7.0]})
    (follow,) = [s for s in judged("ALTER TABLE t MODIFY n INT NOT NULL", ["n", "half"]).steps if isinstance(s, Follow)]
    every = rows.column("half").to_numpy() > 0
    assert stepped(rows, [follow], every, ~every).equals(rows)


def test_nothing_follows_a_column_whose_values_stay() -> None:
    assert judged("ALTER TABLE t MODIFY n BIGINT", ["n", "twice", "half"]).undetermined == []
    assert judged("ALTER TABLE t MODIFY n INT NOT NULL", ["n"]).undetermined == []


def test_a_generated_column_that_places_rows_stays_and_is_named() -> None:
    verdict = judged("ALTER TABLE t MODIFY n INT NOT NULL", ["n", "twice"], partition="twice")
    assert [str(one) for one in verdict.undetermined] == [
        "not determined: twice: rows before keep the values that place them"
    ]


READ = """CREATE TABLE t (id INT PRIMARY KEY, p DECIMAL(8,2), s VARCHAR(9), z INT, d DATETIME,
    g VARCHAR(40) AS (CONCAT(p)), half DECIMAL(20,6) AS (p / 2) STORED, l INT AS (LENGTH(s)) STORED,
    c VARCHAR(50) AS (CONCAT(s, 'x')), k VARCHAR(20) AS (CONCAT(z)), n INT AS (z + 1), twice INT AS (n * 2),
    at VARCHAR(40) AS (CONCAT(d)))"""


def judged_read(*statements: str, columns: dict[str, Any] | None = None) -> Judgement:
    """The verdict on the last of some statements about a table whose columns are read by others."""
    (made,) = parse_ddl(READ, "d")
    defined = [clause.column for clause in made.clauses if isinstance(clause, AddColumn)]
    types = {one.name: one.type for one in defined if one.type is not None}
    rules = TablesSettings.model_validate({"defaults": {"columns": columns or {}}}).rules(SourceTable("d", "t"))
    excluded = (columns or {}).get("exclude", ())
    schema = pa.schema([(name, kind.lake_type) for name, kind in types.items() if name not in excluded])
    state = TableSchemaState(schema, ("id",), None, rules, types_before=lambda _: types)
    state.generated.note(1, Action.CREATE, made.clauses)
    for order, statement in enumerate(statements, 2):
        (effect,) = parse_ddl(statement, "d")
        found = judge_clauses(effect.clauses, order, state)
        state.generated.note(order, Action.ALTER, effect.clauses)
        state.note_open(found.undetermined)
    return found


@pytest.mark.parametrize(
    ("change", "computed", "null"),
    [
        ("MODIFY p DECIMAL(12,4)", {"g"}, {"half"}),
        ("MODIFY p DECIMAL(12,2)", set(), set()),
        ("MODIFY s VARCHAR(20)", set(), set()),
        ("MODIFY s VARCHAR(20) NULL COLLATE utf8mb4_bin", set(), {"l"}),
        ("MODIFY s VARCHAR(9) CHARACTER SET ucs2", {"c"}, {"l"}),
        ("CONVERT TO CHARACTER SET utf8mb4", set(), {"l"}),
        ("MODIFY z INT(8) ZEROFILL", {"n", "twice"}, {"k"}),
        ("MODIFY d DATETIME(3)", set(), {"at"}),
        ("MODIFY n INT AS (z + 2)", {"n", "twice"}, set()),
        ("CHANGE n m INT AS (z + 2)", {"m", "twice"}, set()),
        ("CHANGE n m INT AS (SQRT(z))", set(), {"m", "twice"}),
        ("CHANGE n m INT AS (z + 2), CHANGE twice twice BIGINT AS (m * 3)", {"m", "twice"}, set()),
    ],
)
def test_what_a_change_of_meaning_does_to_the_columns_that_read(
    change: str, computed: set[str], null: set[str]
) -> None:
    found = judged_read(f"ALTER TABLE t {change}")
    expressions = {step.column.name for step in found.steps if isinstance(step, Compute)}
    nulls = {step.column.name for step in found.steps if isinstance(step, Convert) and step.old is None}
    assert (expressions, nulls) == (computed, null)
    assert {one.column for one in found.undetermined} == null


def test_a_column_is_read_under_its_new_name() -> None:
    found = judged_read(
        "ALTER TABLE t RENAME COLUMN p TO `q``1`, RENAME COLUMN s TO concat", "ALTER TABLE t MODIFY `q``1` DECIMAL(9,3)"
    )
    assert [step.expression for step in found.steps if isinstance(step, Compute)] == ["CONCAT( `q``1` )"]


def test_what_is_not_determined_is_not_computed_with() -> None:
    found = judged_read("ALTER TABLE t CHANGE n m INT AS (SQRT(z))", "ALTER TABLE t ADD w INT DEFAULT (COALESCE(m, 5))")
    assert (found.steps, [one.column for one in found.undetermined]) == ([], ["w"])
    again = judged_read("ALTER TABLE t CHANGE n m INT AS (SQRT(z))", "ALTER TABLE t ADD w INT DEFAULT (COALESCE(z, 5))")
    assert [step.column.name for step in again.steps if isinstance(step, Compute)] == ["w"]


COMPARED = """CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(9), b VARCHAR(9) COLLATE utf8mb4_bin,
    l VARCHAR(9) CHARACTER SET latin1, e ENUM('x','y'), is_s BOOL AS (s = 'x'), is_b BOOL AS (b = 'x') STORED,
    in_l BOOL AS (l LIKE 'x%'), of_e INT AS (IF(e = 'x', 1, 2)), c VARCHAR(20) AS (CONCAT(s, b)), n INT AS (LENGTH(s)),
    after INT AS (is_s + 1), is_c BOOL AS (c = 'xx')) DEFAULT CHARSET=utf8mb4"""


def clauses_in(statement: str) -> tuple[Clause, ...]:
    (effect,) = parse_ddl(statement, "d")
    return in_charset(effect.clauses, lambda name: "utf8mb4")


def named_after(*statements: str, created: str = COMPARED) -> set[str]:
    """The columns that the last of some statements about the table leaves open."""
    made = clauses_in(created)
    columns = [clause.column for clause in made if isinstance(clause, AddColumn)]
    types = {one.name: one.type for one in columns if one.type is not None}
    schema = pa.schema([(name, kind.lake_type) for name, kind in types.items()])
    rules = TablesSettings.model_validate({}).rules(SourceTable("d", "t"))
    state = TableSchemaState(schema, ("id",), None, rules, types_before=lambda _: types)
    state.generated.note(1, Action.CREATE, made)
    state.collations.note(1, Action.CREATE, made)
    for order, statement in enumerate(statements, 2):
        clauses = clauses_in(f"ALTER TABLE t {statement}")
        found = judge_clauses(clauses, order, state)
        state.generated.note(order, Action.ALTER, clauses)
        state.collations.note(order, Action.ALTER, clauses)
    nulls = {step.column.name for step in found.steps if isinstance(step, Convert) and step.old is None}
    assert nulls == {one.column for one in found.undetermined}
    return nulls


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("MODIFY s VARCHAR(20)", set()),
        ("MODIFY s VARCHAR(20) COLLATE utf8mb4_bin", {"is_s", "after"}),
        ("MODIFY b VARCHAR(20)", {"is_b"}),
        ("MODIFY b VARCHAR(20) COLLATE utf8mb4_bin", set()),
        ("MODIFY b VARCHAR(20) COLLATE = UTF8MB4_BIN", set()),
        ("CHANGE b b2 VARCHAR(20)", {"is_b"}),
        ("CHANGE b b2 VARCHAR(20) COLLATE utf8mb4_bin", set()),
        ("RENAME COLUMN b TO b2", set()),
        ("MODIFY l VARCHAR(20) CHARACTER SET latin1", {"in_l"}),
        ("MODIFY e ENUM('x','y','z')", set()),
        ("MODIFY e ENUM('x','y') COLLATE utf8mb4_bin", {"of_e"}),
        ("MODIFY s VARCHAR(20), DEFAULT COLLATE utf8mb4_bin", {"is_s", "after"}),
        ("DEFAULT COLLATE utf8mb4_bin", set()),
        ("MODIFY c VARCHAR(30) COLLATE utf8mb4_bin AS (CONCAT(s, b))", {"is_c"}),
        ("MODIFY id BIGINT", set()),
    ],
)
def test_text_of_another_collation_is_compared_otherwise(change: str, named: set[str]) -> None:
    assert named_after(change) == named


@pytest.mark.parametrize(
    ("before", "change", "named"),
    [
        ("DEFAULT COLLATE utf8mb4_bin", "MODIFY s VARCHAR(20)", {"is_s", "after"}),
        ("DEFAULT COLLATE utf8mb4_bin", "MODIFY b VARCHAR(20)", set()),
        ("DEFAULT CHARSET utf8mb4", "MODIFY s VARCHAR(20)", {"is_s", "after"}),
        ("MODIFY b VARCHAR(20)", "MODIFY b VARCHAR(30)", set()),
        ("RENAME COLUMN b TO b2", "MODIFY b2 VARCHAR(20)", {"is_b"}),
        ("RENAME COLUMN b TO b2", "MODIFY b2 VARCHAR(20) COLLATE utf8mb4_bin", set()),
        ("ADD g VARCHAR(9), ADD is_g BOOL AS (g = 'x')", "MODIFY g VARCHAR(20)", set()),
        ("ADD g VARCHAR(9), ADD is_g BOOL AS (g = 'x')", "MODIFY g VARCHAR(20) COLLATE utf8mb4_bin", {"is_g"}),
    ],
)
def test_the_collation_before_is_that_of_the_statements(before: str, change: str, named: set[str]) -> None:
    assert named_after(before, change) == named


def test_all_text_has_another_collation_after_convert_to() -> None:
    created = COMPARED.replace("CHARACTER SET latin1", "COLLATE utf8mb4_general_ci")
    every = {"is_s", "is_b", "in_l", "of_e", "after", "is_c"}
    assert named_after("CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", created=created) == every - {"is_b"}
    assert named_after("CONVERT TO CHARACTER SET utf8mb4", created=created) == every


def test_values_and_collation_may_change_at_once() -> None:
    """Also where a value stays, the comparison may have another result: it is no follower."""
    created = COMPARED.replace("is_c BOOL AS (c = 'xx')", "is_x BOOL AS (s = 'x') STORED")
    found = named_after("MODIFY s VARCHAR(20) NOT NULL COLLATE utf8mb4_bin", created=created)
    assert found >= {"is_s", "is_x", "after"}


def test_what_reads_a_column_that_is_computed_anew_goes_with_it() -> None:
    added = "ADD deep VARCHAR(30) AS (CONCAT(k, 'x'))"
    found = judged_read(f"ALTER TABLE t MODIFY z INT(8) ZEROFILL, {added}")
    assert {one.column for one in found.undetermined} == {"k", "deep"}
    found = judged_read(f"ALTER TABLE t {added}", "ALTER TABLE t MODIFY z INT(8) ZEROFILL")
    assert {one.column for one in found.undetermined} == {"k", "deep"}


def test_columns_are_computed_after_those_that_they_read() -> None:
    found = judged_read("ALTER TABLE t ADD next INT AS (twice + 1), MODIFY z INT NOT NULL")
    assert [step.column.name for step in found.steps if isinstance(step, Compute)] == ["k", "n", "twice", "next"]


def test_a_column_that_the_lake_does_not_hold_may_change_too() -> None:
    columns = {"exclude": ["s"], "mask": {"p": {"how": "redact"}}}
    assert judged_read("ALTER TABLE t MODIFY s VARCHAR(20)", columns=columns).undetermined == []
    found = judged_read("ALTER TABLE t MODIFY s VARCHAR(5)", columns=columns)
    assert {one.column for one in found.undetermined} == {"l", "c"}
    found = judged_read("ALTER TABLE t MODIFY p DECIMAL(12,4), ADD e DECIMAL(9,2) AS (p + 1)", columns=columns)
    assert {one.column for one in found.undetermined} == {"g", "half", "e"}


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("MODIFY n SMALLINT", "n"),
        ("MODIFY n INT NOT NULL, ADD m INT AS (n)", "n"),
        ("MODIFY n BIGINT", None),
        ("ADD g INT AS (n + 1)", None),
        ("MODIFY s VARCHAR(20)", None),  # users make texts longer all the time
    ],
)
def test_a_table_of_which_no_log_tells_how_it_was_made_may_have_generated_columns(
    statement: str, named: str | None
) -> None:
    types = {"id": parse_type("int"), "n": parse_type("int"), "s": parse_type("varchar(9)")}
    schema = pa.schema([(name, kind.lake_type) for name, kind in types.items()])
    rules = TablesSettings.model_validate({}).rules(SourceTable("d", "t"))
    for is_told in (False, True):
        state = TableSchemaState(schema, ("id",), None, rules, types_before=lambda _: types)
        if is_told:
            state.generated.note(
                1, Action.CREATE, clauses_in("CREATE TABLE t (id INT PRIMARY KEY, n INT, s VARCHAR(9))")
            )
        state.generated.note(2, Action.ALTER, clauses_in("ALTER TABLE t ADD z INT"))
        found = judge_clauses(clauses_in(f"ALTER TABLE t {statement}"), 3, state)
        whys = [one.why for one in found.undetermined if one.column == WHOLE_ROWS]
        why = f"no log tells how the table was made: columns may be generated from {named}"
        assert whys == ([why] if named and not is_told else [])
