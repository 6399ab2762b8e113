"""Which rows a statement acts on, and what it makes of them."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

from binlake.decode.changes import ordering_value
from binlake.decode.ddl.clauses import AddColumn, ModifyColumn, RenameColumn
from binlake.decode.ddl.columns import ColumnDefinition
from binlake.decode.ddl.statements import parse_ddl
from binlake.decode.types.mysql_types import parse_type
from binlake.schema.rules.conversion.session import Session
from binlake.schema.rules.restatement import Restatement, restated
from binlake.schema.rules.retyping import conversion
from binlake.schema.rules.row_places import RowPlaces
from binlake.schema.rules.stepping import converted_values
from binlake.schema.rules.steps import Convert, Copy, Fill, Step, step_from_json, step_to_json

NOW = 1_760_000_000


def step(text: str) -> Step:
    (ddl,) = parse_ddl(f"ALTER TABLE t {text}", "db")
    (clause,) = ddl.clauses
    if isinstance(clause, AddColumn):
        return Fill(clause.column)
    assert isinstance(clause, RenameColumn)
    return Copy(clause.old, clause.new, clause.column)


def done(
    rows: dict[str, list[object]], orders: list[int], *steps: Step, seconds: int | None = NOW
) -> dict[str, object]:
    each = [Restatement(ordering_value(1, 5, 100 + n), seconds, (step,)) for n, step in enumerate(steps)]
    found = restated(pa.table(rows), RowPlaces.unknown(np.array(orders, dtype=np.int64)), each)
    result: dict[str, object] = found.to_pydict()
    return result


@pytest.mark.parametrize(
    ("order", "filled"),
    [
        (ordering_value(1, 5, 99), True),
        (ordering_value(1, 4, 500), True),
        (ordering_value(1, 5, 100), False),
        (ordering_value(1, 6, 1), False),
        (ordering_value(0, 9, 900), True),
        (ordering_value(2, 1, 1), False),
        (ordering_value(1, 0, NOW - 1), True),
        (ordering_value(1, 0, NOW + 1), False),
        (ordering_value(0, 0, NOW + 1), True),
        (ordering_value(2, 0, NOW - 1), False),
    ],
    ids=[
        "before",
        "file before",
        "itself",
        "after",
        "epoch before",
        "epoch after",
        "read before",
        "read after",
        "read in an epoch before",
        "read in an epoch after",
    ],
)
def test_rows_are_told_by_their_place_and_snapshots_by_their_time(order: int, filled: bool) -> None:
    assert done({"c": [1]}, [order], step("ADD c INT DEFAULT 7"))["c"] == [7 if filled else 1]


@pytest.mark.parametrize("seconds", [None, NOW])
def test_where_it_cannot_be_told_only_holes_are_filled(seconds: int | None) -> None:
    orders = [ordering_value(1, 0, NOW)] * 2
    assert done({"c": [1, None]}, orders, step("ADD c INT NOT NULL DEFAULT 7"), seconds=seconds)["c"] == [1, 7]
    assert done({"c": [1, None]}, orders, step("ADD c INT DEFAULT 7"), seconds=seconds)["c"] == [1, None]
    assert done({"x": [1, 2]}, orders, step("ADD c INT DEFAULT 7"), seconds=seconds)["c"] == [7, 7]
    assert done({"a": [1, 2], "b": [None, 5]}, orders, step("RENAME COLUMN a TO b"), seconds=seconds)["b"] == [1, 5]


def test_statements_follow_one_another() -> None:
    early = [ordering_value(1, 5, 50)]
    steps = (step("ADD c INT DEFAULT 7"), step("RENAME COLUMN c TO d"), step("ADD c INT DEFAULT 8"))
    assert done({"id": [1]}, early, *steps) == {"id": [1], "c": [8], "d": [7]}
    assert done({"A": [5]}, early, step("CHANGE a b BIGINT")) == {"A": [5], "b": [5]}
    assert done({"a": [5]}, early, step("CHANGE a b VARCHAR(9)")) == {"a": [5], "b": ["5"]}
    assert done({"a": [1.5]}, early, step("CHANGE a b INT")) == {"a": [1.5]}
    assert done({"a": [5]}, early, Copy("a", "b", move=True)) == {"a": [None], "b": [5]}
    assert done({"x": [5]}, early, step("RENAME COLUMN a TO b")) == {"x": [5]}
    one: dict[str, list[object]] = {"id": [1], "b": [5]}
    assert done(one, early, step("RENAME COLUMN a TO b")) == {"id": [1]}, "of a column b that was dropped"


def test_clauses_of_one_statement_speak_of_the_columns_before_it() -> None:
    swap = (step("RENAME COLUMN a TO b"), step("RENAME COLUMN b TO a"))
    rows, orders = pa.table({"a": [1], "b": [2]}), RowPlaces.unknown(np.array([ordering_value(1, 5, 50)]))

    def after(*steps: Step) -> dict[str, list[int]]:
        found: dict[str, list[int]] = restated(
            rows, orders, [Restatement(ordering_value(1, 5, 100), NOW, steps)]
        ).to_pydict()
        return found

    assert after(*swap) == {"a": [2], "b": [1]}
    assert after(Copy("a", "b", move=True), Copy("b", "a", move=True)) == {"a": [2], "b": [1]}
    assert after(step("ADD a INT DEFAULT 7"), step("CHANGE a c INT")) == {"a": [7], "b": [2], "c": [1]}


def test_a_column_that_is_wider_by_now_takes_the_constant() -> None:
    rows = pa.table({"c": pa.array([None, 2**40], pa.int64())})
    one = Restatement(ordering_value(1, 5, 100), None, (step("ADD c SMALLINT DEFAULT 7"),))
    orders = RowPlaces.unknown(np.array([ordering_value(1, 5, 1), ordering_value(1, 5, 200)]))
    assert restated(rows, orders, [one]).column("c").to_pylist() == [7, 2**40]


def test_statements_ordered_by_kafka_offsets_act_on_the_offsets_before() -> None:
    one = Restatement(ordering_value(0, 0, 100), None, (step("ADD c INT DEFAULT 7"),))
    rows = restated(pa.table({"c": [1, 1]}), RowPlaces.unknown(np.array([99, 101])), [one])
    assert rows.column("c").to_pylist() == [7, 1]


def test_rows_that_are_not_concerned_stay_the_same_object() -> None:
    rows = pa.table({"c": [1]})
    one = Restatement(ordering_value(1, 5, 100), None, (step("ADD c INT DEFAULT 7"),))
    assert restated(rows, RowPlaces.unknown(np.array([ordering_value(1, 5, 100)])), [one]) is rows


@pytest.mark.parametrize(
    "text",
    [
        "ADD c DECIMAL(5,2) NOT NULL DEFAULT 1.5",
        "ADD c BIT(3) DEFAULT b'101'",
        "CHANGE a b ENUM('x','y')",
        "RENAME COLUMN a TO b",
    ],
)
def test_commits_keep_steps_whole(text: str) -> None:
    said = json.loads(json.dumps(step_to_json(step(text))))
    assert step_from_json(said) == step(text)


def modified(text: str) -> ColumnDefinition:
    (ddl,) = parse_ddl(f"ALTER TABLE t MODIFY c {text}", "db")
    (clause,) = ddl.clauses
    assert isinstance(clause, ModifyColumn)
    return clause.column


MARIADB, MYSQL = Session(mariadb=True, seconds=NOW), Session(seconds=NOW)


@pytest.mark.parametrize(
    ("text", "session", "of_null"),
    [
        ("TIMESTAMP NOT NULL", MARIADB, NOW),
        ("TIMESTAMP NOT NULL DEFAULT '2001-01-01'", MARIADB, NOW),
        ("TIMESTAMP NULL", MARIADB, None),
        ("TIMESTAMP NOT NULL", MYSQL, None),
        ("DATETIME NOT NULL", MARIADB, None),
    ],
)
def test_null_in_a_timestamp_becomes_the_time_of_the_statement(
    text: str, session: Session, of_null: int | None
) -> None:
    """Recorded with MariaDB 11.4; the zero date, which is null in the lake, stays what it is."""
    numbers = pa.chunked_array([pa.array([None, 0, 20030101000000], pa.int64())])
    values = converted_values(Convert(modified(text), parse_type("bigint"), session), numbers)
    assert values.cast(pa.int64()).to_pylist() == [of_null and of_null * 1_000_000, None, 1041379200000000]


@pytest.mark.parametrize(("session", "names"), [(MARIADB, True), (MYSQL, False)])
def test_not_null_alone_names_the_timestamps_of_mariadb(session: Session, names: bool) -> None:
    """Null is the time of the statement then, or a zero date that stays one: also null in the lake."""
    kind = parse_type("timestamp")
    types = (modified("TIMESTAMP NOT NULL"), kind, kind.lake_type, kind.lake_type, session)
    step, undetermined = conversion(*types)
    assert [step is not None, undetermined is not None] == [names, names]
    assert conversion(*types, never_null=True)[1] is None
    nulls = pa.chunked_array([pa.nulls(2, kind.lake_type)])
    assert step is None or converted_values(step, nulls).null_count == 2
