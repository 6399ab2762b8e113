"""Row images without the columns of their table's definition are refused, and no others."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from binlake.decode.changes import POSITION_BITS, Op
from binlake.decode.ddl.statements import parse_ddl
from binlake.schema.rules.definitions import Definition, DefinitionHistory, Presence, misnamed
from binlake.schema.rules.row_places import RowPlaces
from tests.hypothesis_profile import scaled

NAMES = ("a", "b", "c", "d", "e")


def at(place: int) -> int:
    """The ordering value of a place in binlog file 1."""
    return (1 << POSITION_BITS) + place


def history(*statements: str, excluded: Sequence[str] = ()) -> list[Definition]:
    """The definitions after statements at places 10, 20, ..."""
    known = DefinitionHistory(lambda name: name not in excluded)
    for number, text in enumerate(statements, 1):
        for effect in parse_ddl(text, "shop"):
            known.note(at(10 * number), None, effect.action, effect.clauses)
    return known.known


def refused(
    definitions: Sequence[Definition], names: Sequence[str], places: Sequence[int], op: Op = Op.UPSERT
) -> list[int]:
    """The places of those rows with these columns that are refused."""
    orders = pa.array([at(place) for place in places], pa.int64())
    rows = pa.table(
        {**dict.fromkeys(names, orders), "__op": pa.array([op] * len(places), pa.int8()), "__order": orders}
    )
    moments = RowPlaces.incoming(rows.append_column("__place", orders))
    return sorted(
        place
        for mask, why in misnamed(rows, moments, definitions)
        if why
        for place, bad in zip(places, mask.tolist(), strict=True)
        if bad
    )


CREATE = "CREATE TABLE t (id INT PRIMARY KEY, a INT NOT NULL, b INT)"
REPLACE = "CREATE OR REPLACE TABLE t (id INT PRIMARY KEY, c INT NOT NULL, d INT)"


def test_rows_under_the_names_of_a_replaced_definition_are_refused() -> None:
    """What Debezium does after CREATE OR REPLACE; and the control: rows at their own definition go on."""
    made = history(CREATE, REPLACE)
    assert refused(made, ["id", "a", "b"], [5, 15, 25, 35]) == [25, 35]
    assert refused(made, ["id", "c", "d"], [15, 25]) == [15]
    assert refused(made, ["id", "a", "b"], [25], Op.DELETE) == []


@pytest.mark.parametrize(
    ("statements", "names", "is_refused"),
    [
        ([CREATE], ["id", "a", "b"], False),
        ([CREATE], ["id", "a"], False),  # a column that may be null, which the connector may leave out
        ([CREATE], ["id", "b"], True),
        ([CREATE], ["id", "a", "b", "my_row_id"], False),  # an invisible key of the server's own
        ([CREATE], ["id", "a", "x"], True),  # another column in place of b
        (["CREATE TABLE t (id INT, b INT)", "CREATE OR REPLACE TABLE t (id INT, c INT)"], ["id", "b"], True),
        (["ALTER TABLE t ADD COLUMN c INT NOT NULL"], ["id", "a"], True),  # of an unknown table
        (["ALTER TABLE t ADD COLUMN c INT"], ["id", "a"], False),
        (["ALTER TABLE t ADD COLUMN IF NOT EXISTS c INT NOT NULL"], ["id", "a"], False),
        ([CREATE, "ALTER TABLE t MODIFY a INT NULL"], ["id", "b"], False),
        ([CREATE, "ALTER TABLE t MODIFY b INT NOT NULL"], ["id", "a"], True),
        ([CREATE, "ALTER TABLE t RENAME COLUMN a TO x"], ["id", "x", "b"], False),
        ([CREATE, "ALTER TABLE t RENAME COLUMN a TO x"], ["id", "a", "b"], True),
        ([CREATE, "ALTER TABLE t CHANGE a x INT NOT NULL"], ["id", "b"], True),
        ([CREATE, "ALTER TABLE t DROP COLUMN a"], ["id", "b"], False),
        ([CREATE, "ALTER TABLE t DROP COLUMN a"], ["id", "a", "b"], False),
        ([CREATE, "TRUNCATE TABLE t"], ["id", "b"], True),
        ([CREATE, "DROP TABLE t"], ["id", "b"], False),
        ([CREATE, "DROP TABLE t", "CREATE TABLE t LIKE u"], ["id", "x"], False),
        (["CREATE TABLE t (id INT, g INT GENERATED ALWAYS AS (id + 1) VIRTUAL NOT NULL)"], ["id"], False),
        (["CREATE TABLE t (id INT, v VECTOR(3) NOT NULL)"], ["id"], False),  # a type that connectors leave out
        (["CREATE TABLE t (id INT, h INT NOT NULL INVISIBLE)"], ["id"], True),  # images have invisible columns
        (["CREATE TABLE t (ID INT, `A b` INT NOT NULL)"], ["id", "a_b"], False),  # as Avro's names
    ],
)
def test_what_an_image_must_have(statements: Sequence[str], names: Sequence[str], is_refused: bool) -> None:
    """Between the last statement that defines the table and one that is known to be the next."""
    made = history(*statements, "CREATE TABLE t (other INT)")
    assert bool(refused(made, names, [10 * len(made) - 5])) is is_refused


@pytest.mark.parametrize(
    ("statement", "names", "is_refused"),
    [
        (REPLACE, ["id", "a", "b"], True),
        (REPLACE, ["id", "c", "d"], False),
        (REPLACE, ["id", "c", "x"], False),  # its column may have another name by now
        (REPLACE, ["id", "d"], True),  # c is new, and nothing says that it is gone
        ("ALTER TABLE t ADD COLUMN c INT NOT NULL", ["id", "a", "b"], False),  # it may be gone again
    ],
)
def test_images_that_a_later_statement_may_explain_are_not_refused(
    statement: str, names: Sequence[str], is_refused: bool
) -> None:
    """Statements may come after the rows that they concern."""
    made = history(CREATE, statement, "ALTER TABLE t ADD INDEX (b)")
    assert bool(refused(made, names, [99])) is is_refused


def test_of_an_unknown_table_the_newest_statement_refuses_nothing() -> None:
    assert refused(history("ALTER TABLE t ADD COLUMN c INT NOT NULL"), ["id", "a"], [99]) == []


def test_names_may_be_swapped_by_one_statement() -> None:
    made = history(CREATE, "ALTER TABLE t RENAME COLUMN a TO b, CHANGE b a INT")
    assert dict(made[-1].columns) == {"id": Presence.MUST, "b": Presence.MUST, "a": Presence.SHOULD}


def test_columns_that_the_settings_leave_out_may_be_absent() -> None:
    assert refused(history(REPLACE), ["id", "d"], [99]) == [99]
    assert refused(history(REPLACE, excluded=["c"]), ["id", "d"], [99]) == []


def columns() -> st.SearchStrategy[dict[str, bool]]:
    """Column -> whether it is NOT NULL."""
    return st.dictionaries(st.sampled_from(NAMES), st.booleans(), min_size=1)


def created(columns: dict[str, bool]) -> str:
    defined = (f"{name} INT{' NOT NULL' if needed else ''}" for name, needed in columns.items())
    return f"CREATE OR REPLACE TABLE t ({', '.join(defined)})"


@given(st.lists(columns(), min_size=1, max_size=5), st.data())
@settings(max_examples=scaled(300), deadline=None)
def test_an_image_is_refused_exactly_where_it_is_of_another_definition(
    made: list[dict[str, bool]], data: st.DataObject
) -> None:
    """Replaced tables, and rows under the names of any of their definitions at every place."""
    definitions = history(*map(created, made), "CREATE TABLE t (other INT)")
    names = sorted(data.draw(st.sampled_from(made)))
    places = [10 * n + 5 for n in range(1, len(made) + 1)]
    expected = [
        place
        for place, columns in zip(places, made, strict=True)
        if any(needed and name not in names for name, needed in columns.items())
        or (set(columns) - set(names) and set(names) - set(columns))
    ]
    assert refused(definitions, names, places) == expected


def test_the_reason_names_the_columns() -> None:
    definition = Definition(1, None, tuple((name, Presence.MUST) for name in "abcdefg"), whole=True, until=2)
    assert definition.complaint([]) is not None
    why = str(definition.complaint(["x"]))
    assert why.startswith("the row lacks columns a, b, c, d, e and 2 more and has column x, which the table has not: ")
    assert definition.complaint(list("abcdefg")) is None
