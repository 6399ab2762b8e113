"""A column takes a name that another one had: what is known of it, and what is not determined, goes with it.

``open_column_renamed.sql`` and ``names_swapped.sql`` of the oracle's cases have it with a server.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from binlake.decode.changes import SourceTable
from binlake.decode.ddl.clauses import Action, Clause, names_after, renames_of, under_new_names
from binlake.decode.ddl.statements import parse_ddl
from binlake.decode.schemas.schemas import SchemaVersion
from binlake.decode.types.mysql_types import parse_type
from binlake.position.record_reader import RecordReader
from binlake.schema.apply.schema_states import SchemaStates
from binlake.schema.rules.created import declared
from binlake.schema.rules.ddl_effects import DdlEvent, Effect
from binlake.schema.rules.entries import DdlEntry, entries_from_text, entries_to_text
from binlake.schema.rules.generated_columns import GeneratedHistory, columns_of
from binlake.schema.rules.judged import TableSchemaState
from binlake.schema.rules.key_indexes import KeyIndexes
from binlake.schema.rules.stepping import stepped
from binlake.schema.rules.steps import Compute, Convert
from binlake.schema.rules.table_ddl import JudgedDdl, judge_table
from binlake.schema.rules.undetermined import undetermined_columns
from binlake.settings import TablesSettings
from binlake.stream.definitions.schemas import SchemaRegistry
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.binlake.schema.ddl_source import DdlSource, Follower, Table

TABLE = SourceTable("d", "t")
TYPES = {"id": "int", "k": "int", "a": "datetime(6)", "b": "int", "c": "varchar(9)"}
OPENS = "ALTER TABLE t ADD u DATETIME(6) NOT NULL DEFAULT (NOW(6))"
#: Statements by which the open column ``u`` gets another name, and that name.
RENAMES = [
    (["ALTER TABLE t DROP a, RENAME COLUMN u TO a"], "a"),
    (["ALTER TABLE t RENAME COLUMN u TO a, DROP a"], "a"),
    (["ALTER TABLE t DROP a", "ALTER TABLE t RENAME COLUMN u TO a"], "a"),
    (["ALTER TABLE t CHANGE u w DATETIME(6)"], "w"),
    (["ALTER TABLE t RENAME COLUMN u TO b, RENAME COLUMN b TO u"], "b"),
    (["ALTER TABLE t RENAME COLUMN u TO a, RENAME COLUMN a TO b, RENAME COLUMN b TO u"], "a"),
    (["ALTER TABLE t RENAME COLUMN u TO w", "ALTER TABLE t MODIFY w DATETIME(6) NULL"], "w"),
    (["ALTER TABLE t RENAME COLUMN u TO w", "ALTER TABLE t ADD u INT"], "w"),
]


def clauses(statement: str) -> tuple[Clause, ...]:
    (effect,) = parse_ddl(statement, "d")
    return effect.clauses


def table(key: tuple[str, ...] = ("id",)) -> TableSchemaState:
    types = {name: parse_type(text) for name, text in TYPES.items()}
    schema = pa.schema([(name, kind.lake_type) for name, kind in types.items()])
    rules = TablesSettings.model_validate({}).rules(TABLE)
    made = GeneratedHistory(lambda order: (0, {}))
    return TableSchemaState(schema, key, None, rules, generated=made, types_before=lambda order: types)


def judged(*statements: str, state: TableSchemaState | None = None, recorded: tuple[DdlEntry, ...] = ()) -> JudgedDdl:
    effects = [
        Effect(DdlEvent(order, order, f"1:{order}", statement, "d"), Action.ALTER, clauses(statement))
        for order, statement in enumerate(statements, 5)
    ]
    return judge_table(TABLE, effects, recorded, state or table())


@pytest.mark.parametrize(("statements", "name"), RENAMES)
@pytest.mark.parametrize("recorded", [False, True])
def test_what_is_not_determined_is_named_as_the_source_calls_it_now(
    statements: list[str], name: str, recorded: bool
) -> None:
    """``recorded``: whether commits hold the statements, and nothing else is known of them."""
    entries = judged(OPENS, *statements).entries
    entries = list(entries_from_text(entries_to_text(entries))) if recorded else entries
    assert {one.column for one in undetermined_columns(entries)} == {name}
    state = table()
    judge_table(TABLE, [], entries, state)
    assert state.open_columns == {name}
    elsewhere = [replace(entry, source=SourceTable("d", "s")) for entry in entries[1:]]
    assert next(one.column for one in undetermined_columns([entries[0], *elsewhere])) == "u"


def test_what_the_source_has_dropped_is_not_named() -> None:
    assert undetermined_columns(judged(OPENS, "ALTER TABLE t DROP u").entries) == []
    again = judged(OPENS, "ALTER TABLE t DROP u", "ALTER TABLE t ADD u INT DEFAULT 5").entries
    assert undetermined_columns(again) == []


def test_columns_that_one_statement_names_together_are_renamed_one_by_one() -> None:
    renames = renames_of(clauses("ALTER TABLE t RENAME COLUMN A TO b, RENAME COLUMN b TO a, DROP c"))
    assert names_after(["a", "B", "c", "d", ""], renames) == ["b", "a", "d", ""]


@pytest.mark.parametrize(("statements", "name"), RENAMES)
def test_a_generated_column_that_reads_it_is_not_determined_either(statements: list[str], name: str) -> None:
    last = f"{statements[-1]}, ADD g VARCHAR(40) AS (CONCAT({name}))"
    [*_, entry] = judged(OPENS, *statements[:-1], last).entries
    assert "g" in {one.column for one in entry.undetermined}
    assert not any(isinstance(step, Compute) for step in entry.steps)


def test_not_null_gives_no_value_to_a_null_that_stands_for_another_one() -> None:
    found = judged("ALTER TABLE t ADD u DOUBLE DEFAULT (RAND())", "ALTER TABLE t MODIFY u INT NOT NULL")
    [convert] = [step for step in found.entries[-1].steps if isinstance(step, Convert)]
    rows, every = pa.table({"u": pa.array([None, 1.5], pa.float64())}), np.array([True, True])
    assert stepped(rows, [convert], every, ~every).column("u").to_pylist() == [None, 2]
    assert [one.column for one in found.entries[-1].undetermined] == ["u"]
    same = judged("ALTER TABLE t ADD u DOUBLE DEFAULT (RAND())", "ALTER TABLE t CHANGE u v DOUBLE NOT NULL").entries
    assert not any(isinstance(step, Convert) for step in same[-1].steps)
    assert [one.column for one in same[-1].undetermined] == ["v"]


def test_types_go_with_swapped_names() -> None:
    state = table()
    found = judged(
        "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a", "ALTER TABLE t MODIFY a BIGINT", state=state
    )
    assert {str(state.schema.field(name).type) for name in "ab"} == {"int64", "timestamp[us, tz=UTC]"}
    assert found.entries[-1].undetermined == ()
    rows = pa.table({"id": [1], "a": pa.array([7], pa.timestamp("us", "UTC")), "b": pa.array([8], pa.int32())})
    every = np.array([True])
    for entry in found.entries:
        rows = stepped(rows, entry.steps, every, ~every)
    assert (rows.column("a").to_pylist(), rows.column("b").cast(pa.int64()).to_pylist()) == ([8], [7])


@pytest.mark.parametrize(
    ("statement", "types"),
    [
        ("ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a", {"a": "int", "b": "datetime"}),
        ("ALTER TABLE t RENAME COLUMN b TO a, DROP a", {"a": "int"}),
        (
            "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO c, RENAME COLUMN c TO a",
            {"a": "varchar", "c": "int"},
        ),
        ("ALTER TABLE t RENAME COLUMN a TO w, ADD a INT", {"a": "int", "w": "datetime"}),
    ],
)
def test_types_of_recorded_statements_go_with_their_names(statement: str, types: dict[str, str]) -> None:
    state = table()
    state.take_over_types(5, clauses(statement))
    known = state.all_types_before(6)
    assert {name: known[name].base for name in types} == types
    version = SchemaVersion(1, tuple((name, parse_type(text)) for name, text in TYPES.items()), ("id",))
    effect = Effect(DdlEvent(5, 5, "1:5", statement, "d"), Action.ALTER, clauses(statement))
    made = declared([version], [effect], 6)
    assert made is not None
    assert {name: kind.base for name, kind in made.columns if name in types} == types


def test_a_type_that_was_taken_over_gives_way_to_that_of_a_renamed_column() -> None:
    state = table()
    state.take_over_types(3, clauses("ALTER TABLE t MODIFY a BIGINT"))
    since = {name: parse_type("bigint" if name == "a" else text) for name, text in TYPES.items()}
    state.types_before = lambda order: since
    judged("ALTER TABLE t RENAME COLUMN a TO c, RENAME COLUMN c TO a", state=state)
    known = state.all_types_before(10)
    assert (known["a"].base, known["c"].base) == ("varchar", "bigint")


@pytest.mark.parametrize(("key", "after"), [(("id", "k"), ("k", "id")), (("id",), ("k",))])
def test_a_key_goes_with_swapped_names(key: tuple[str, ...], after: tuple[str, ...]) -> None:
    state = table(key)
    judged("ALTER TABLE t RENAME COLUMN id TO k, RENAME COLUMN k TO id", state=state)
    assert state.key == after
    unique = KeyIndexes(False, {"u": frozenset({"id"}), "v": frozenset({"k", "a"})})
    found = unique.after(clauses("ALTER TABLE t RENAME COLUMN id TO k, RENAME COLUMN k TO id"))
    assert found.unique == {"u": {"k"}, "v": {"id", "a"}}


def test_generated_columns_go_with_their_names() -> None:
    made = columns_of(clauses("CREATE TABLE t (id INT, n INT, g INT AS (n + 1), h INT AS (id))"))
    swapped = under_new_names(made, clauses("ALTER TABLE t RENAME COLUMN g TO h, RENAME COLUMN h TO g"))
    assert {name: column.expression for name, column in swapped.items()} == {"h": "n + 1", "g": "id"}
    state = table()
    state.generated.note(1, Action.CREATE, clauses("CREATE TABLE t (id INT, b INT, c INT AS (b + 1))"))
    [_, entry] = judged("ALTER TABLE t RENAME COLUMN c TO z", "ALTER TABLE t MODIFY b DOUBLE", state=state).entries
    concerned = [step.column.name for step in entry.steps if isinstance(step, Compute | Convert)]
    assert sorted(concerned) == ["b", "z"]


def test_the_columns_of_a_foreign_key_are_named_as_the_source_calls_them_now(tmp_path: Path) -> None:
    source = DdlSource()
    source.tables["t"] = Table({"id": "int", "p": "int"})
    key = "FOREIGN KEY (p) REFERENCES q (id) ON DELETE SET NULL"
    source.record(f"CREATE TABLE t (id INT PRIMARY KEY, p INT, {key})", [("CREATE", "t")])
    source.put("t", 1, p=1)
    follower = Follower(source, tmp_path)
    follower.run()
    source.rename("t", "p", "parent")
    source.put("t", 2, parent=2)
    follower.run()
    registry = SchemaRegistry(follower.settings())
    registry.learn(source.ddl)
    recorded = RecordReader.newest_of(HudiTable.open(open_storage(str(tmp_path / "shop" / "t"))))
    assert recorded.source is not None
    states = SchemaStates(follower.settings(), registry)
    assert [one.column for one in states.cascades(recorded.source, recorded.ddl or ())] == ["parent"]
    assert [one.column for one in states.cascades(recorded.source)] == ["p"]


@pytest.mark.parametrize(
    ("statement", "verdict"),
    [("TRUNCATE PARTITION p", "refuse"), ("REORGANIZE PARTITION p INTO (PARTITION r VALUES IN (2))", "keep")],
)
def test_rows_are_not_removed_by_a_column_that_is_not_determined(statement: str, verdict: str) -> None:
    """Its null would place them in another partition."""
    state, parts = table(()), "PARTITION BY LIST (w) (PARTITION p VALUES IN (1), PARTITION q VALUES IN (NULL))"
    opened = ("ALTER TABLE t ADD u INT DEFAULT (FLOOR(RAND() * 2))", "ALTER TABLE t RENAME COLUMN u TO w")
    [*_, entry] = judged(*opened, f"ALTER TABLE t {parts}", f"ALTER TABLE t {statement}", state=state).entries
    assert [ruling.verdict.value for ruling in entry.rulings] == [verdict]
    assert "w is not determined in all rows" in str(entry)
    assert entry.steps == ()
