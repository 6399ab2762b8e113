"""CREATE TABLE ... LIKE defines what its model has by then: ``like_generated.sql`` and ``like_unique_index.sql`` of the
oracle's cases have it with a server."""

from __future__ import annotations

from itertools import count

import pyarrow as pa
import pytest

from binlake.decode.changes import SourceTable
from binlake.decode.ddl.clauses import Action, AddColumn, AddUnique, ChangeKey, Clause, UntoldModel
from binlake.decode.ddl.partitions import ChangePartitions
from binlake.decode.ddl.statements import parse_ddl
from binlake.decode.schemas.schemas import Defined, SchemaVersion
from binlake.decode.types.mysql_types import parse_type
from binlake.schema.rules.ddl_effects import DdlEvent
from binlake.schema.rules.ddl_log import DdlLog
from binlake.schema.rules.generated_columns import GeneratedHistory
from binlake.schema.rules.judged import TableSchemaState
from binlake.schema.rules.key_indexes import KeyIndexHistory
from binlake.schema.rules.undetermined import WHOLE_ROWS
from binlake.schema.rules.verdicts import judge_clauses
from binlake.settings import TablesSettings

MODEL, TABLE = SourceTable("d", "m"), SourceTable("d", "t")
COLUMNS = tuple((name, parse_type("int")) for name in ("id", "x", "g"))
CREATED = (
    "CREATE TABLE m (id INT NOT NULL, x INT, g INT AS (x * 2) STORED, UNIQUE KEY u (id)) "
    "PARTITION BY HASH (id) PARTITIONS 3"
)


def clauses_of(statement: str) -> tuple[Clause, ...]:
    (effect,) = parse_ddl(statement, "d")
    return effect.clauses


def defined(*statements: str, known: bool = True) -> tuple[Clause, ...]:
    """The clauses of CREATE TABLE t LIKE m behind statements about m; ``known``: whether a definition tells its CREATE
    TABLE."""
    told = tuple(c for c in clauses_of(CREATED) if isinstance(c, Defined))
    told = tuple(c for c in told if not isinstance(c, AddColumn) or c.column.generated)
    version = SchemaVersion(1, COLUMNS, ("id",), created=known, defined=told if known else ())
    log, orders = DdlLog(), count(1 << 40, 100)
    for statement in (*statements, "CREATE TABLE t LIKE m"):
        log.add(DdlEvent(next(orders), 1, "place", statement, "d", exact=True))
    policy = TablesSettings().rules(MODEL).schema_changes
    history = log.history(lambda _: policy, [MODEL], versions_of=lambda s: [version] if s == MODEL else [])
    (effect,) = history.effects[TABLE]
    assert effect.action is Action.CREATE
    return effect.clauses


def test_it_has_the_generated_columns_indexes_and_partitions_of_its_model() -> None:
    made = defined()
    columns = [clause.column for clause in made if isinstance(clause, AddColumn)]
    assert [column.name for column in columns] == ["id", "x", "g"]
    assert [column.expression for column in columns if column.generated] == ["x * 2"]
    assert [clause for clause in made if isinstance(clause, AddUnique)] == [AddUnique("u", ("id",))]
    (parts,) = [clause for clause in made if isinstance(clause, ChangePartitions)]
    assert parts.defined is not None
    assert parts.defined == next(c.defined for c in clauses_of(CREATED) if isinstance(c, ChangePartitions))


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("ALTER TABLE m MODIFY g INT AS (x + 1) STORED", ["x + 1"]),
        ("ALTER TABLE m MODIFY g INT", []),
        ("DROP TABLE m; CREATE TABLE m (id INT, x INT, g INT)", []),
    ],
)
def test_they_are_those_that_the_model_has_by_then(statement: str, expected: list[str]) -> None:
    made = defined(*statement.split("; "))
    computed = [
        clause.column.expression for clause in made if isinstance(clause, AddColumn) and clause.column.generated
    ]
    assert computed == expected


@pytest.mark.parametrize(("created", "holds"), [(True, False), (False, None)])
def test_the_last_index_that_holds_rows_apart_can_be_dropped(created: bool, holds: bool | None) -> None:
    """Without a CREATE TABLE of the model nothing tells the key from a primary key."""
    history = KeyIndexHistory()
    made = defined(known=created)
    assert [clause.columns for clause in made if isinstance(clause, ChangeKey)] == [("id",)]
    history.note(1, Action.CREATE, made)
    history.note(2, Action.ALTER, clauses_of("ALTER TABLE t DROP INDEX u"))
    known = history.before(3)
    assert (known.hold_apart(("id",)) if known is not None else None) is holds


@pytest.mark.parametrize(
    ("statements", "told"),
    [
        ([], False),
        (["DROP TABLE m", "CREATE TABLE m (id INT, x INT, g INT)"], True),
        (["ALTER TABLE m MODIFY x BIGINT"], False),
        (["CREATE TABLE n LIKE m", "DROP TABLE m", "CREATE TABLE m LIKE n"], False),
    ],
)
def test_a_model_of_which_no_log_tells_more_than_columns_is_named(statements: list[str], told: bool) -> None:
    assert [one for one in defined(*statements, known=False) if isinstance(one, UntoldModel)] == (
        [] if told else [UntoldModel(MODEL)]
    )
    assert not any(isinstance(one, UntoldModel) for one in defined(*statements))


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("MODIFY x INT NOT NULL", "columns may be generated from x"),
        ("MODIFY s VARCHAR(20)", "columns may be generated from s"),
        ("MODIFY x BIGINT", None),
        ("ADD y INT", None),
        ("DROP INDEX u", "u may have held its rows apart"),
        ("DROP PRIMARY KEY, DROP INDEX u", None),
    ],
)
def test_what_a_table_took_over_from_such_a_model_is_not_taken_for_nothing(statement: str, why: str | None) -> None:
    types = {"id": parse_type("int"), "x": parse_type("int"), "s": parse_type("varchar(9)")}
    schema = pa.schema([(name, kind.lake_type) for name, kind in types.items()])
    rules = TablesSettings().rules(TABLE)
    for untold in (MODEL, None):
        made = GeneratedHistory(lambda order: (0, {}))
        state = TableSchemaState(
            schema, ("id",), None, rules, generated=made, types_before=lambda _: types, untold=untold
        )
        keys = None if "PRIMARY" in statement else (("id",), ("id",))
        judged = judge_clauses(clauses_of(f"ALTER TABLE t {statement}"), 5, state, keys)
        named = [one.why for one in judged.undetermined if one.column == WHOLE_ROWS]
        assert named == ([f"no log tells what the table took over from d.m: {why}"] if untold and why else [])
