"""A unique index is the key of a table without a primary key, and nothing is if it goes.

``unique_index_dropped.sql`` of the oracle's cases has it with a server and Debezium.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

from binlake.decode.changes import SourceTable
from binlake.decode.ddl.clauses import Action, Clause
from binlake.decode.ddl.statements import parse_ddl
from binlake.schema.rules.judged import Judgement, TableSchemaState
from binlake.schema.rules.key_indexes import KeyIndexes, KeyIndexHistory, indexes_of
from binlake.schema.rules.verdicts import judge_clauses
from binlake.settings import TablesSettings

CREATED = "CREATE TABLE t (id INT NOT NULL, n INT, UNIQUE KEY u (id))"
OVERRIDES = {"overrides": [{"match": "d.t", "key": ["id"]}]}


def clauses(statement: str) -> tuple[Clause, ...]:
    (effect,) = parse_ddl(statement, "d")
    return effect.clauses


def judged(*statements: str, created: str = CREATED, known: bool = True, key: bool = False) -> tuple[str, ...]:
    """The key that the last statement leaves a lake table with the key ``id``, as Debezium and its text say: the
    connector names the same key before and after it. ``known``: whether the table's CREATE TABLE is; ``key``: whether
    the settings name the key."""
    rules = TablesSettings.model_validate(OVERRIDES if key else {}).rules(SourceTable("d", "t"))
    state = TableSchemaState(pa.schema([("id", pa.int32()), ("n", pa.int32())]), ("id",), None, rules)
    if known:
        made = indexes_of(clauses(created), ("id",))
        state.indexes = KeyIndexHistory(lambda order: (1, made))
    for order, statement in enumerate(statements, 2):
        found = judge_clauses(clauses(statement), order, state, (("id",), ("id",)))
        state.indexes.note(order, Action.ALTER, clauses(statement))
        assert refused_by(found) == []
    return state.key


def refused_by(found: Judgement) -> list[str]:
    return [str(ruling) for ruling in found.rulings if str(ruling).startswith("refuse")]


@pytest.mark.parametrize(
    "statements",
    [
        ["ALTER TABLE t DROP INDEX u"],
        ["DROP INDEX u ON t"],
        ["ALTER TABLE t DROP CONSTRAINT U"],
        ["ALTER TABLE t RENAME INDEX u TO v", "ALTER TABLE t DROP KEY v"],
        ["ALTER TABLE t ADD UNIQUE v (id, n)", "ALTER TABLE t DROP INDEX u"],
        ["ALTER TABLE t ADD UNIQUE v (n)", "ALTER TABLE t DROP INDEX u"],
        ["ALTER TABLE t DROP INDEX u, ADD INDEX u (id)"],
    ],
)
def test_without_the_index_whole_rows_are_kept(statements: list[str]) -> None:
    assert judged(*statements) == ()


@pytest.mark.parametrize(
    "statements",
    [
        ["ALTER TABLE t DROP INDEX other"],
        ["ALTER TABLE t DROP INDEX u, ADD UNIQUE v (id)"],
        ["ALTER TABLE t ADD UNIQUE v (ID)", "ALTER TABLE t DROP INDEX u"],
        ["ALTER TABLE t ADD PRIMARY KEY (id)", "ALTER TABLE t DROP INDEX u"],
        ["ALTER TABLE t RENAME INDEX u TO v", "ALTER TABLE t DROP INDEX u"],
    ],
)
def test_the_key_stays_where_another_index_holds_rows_apart(statements: list[str]) -> None:
    assert judged(*statements) == ("id",)


def test_the_key_stays_where_it_is_the_primary_key_or_the_settings_name_it() -> None:
    drop = "ALTER TABLE t DROP INDEX u"
    assert judged(drop, created="CREATE TABLE t (id INT PRIMARY KEY, n INT, UNIQUE u (n))") == ("id",)
    assert judged(drop, created="CREATE TABLE t (id INT, n INT, PRIMARY KEY (id), UNIQUE u (id))") == ("id",)
    assert judged("ALTER TABLE t ADD UNIQUE u (id)", drop, created="CREATE TABLE t (id INT PRIMARY KEY)") == ("id",)
    assert judged(drop, key=True) == ("id",)
    assert judged(drop, known=False) == ("id",)


def test_a_renamed_column_is_the_same_one() -> None:
    indexes = KeyIndexes().after(clauses(CREATED)).after(clauses("ALTER TABLE t RENAME COLUMN id TO No"))
    assert indexes.hold_apart(["no", "n"])
    assert not indexes.hold_apart(["id", "n"])
