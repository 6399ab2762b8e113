"""The lake type that a statement gives a column is the one in which its rows come, under every policy of types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pytest

from binlake.decode.changes import SourceTable, ZeroDates
from binlake.decode.ddl.statements import parse_ddl
from binlake.decode.options import (
    BigintUnsignedHandlingMode,
    BinaryHandlingMode,
    BinlogForm,
    CanalForm,
    DecimalHandlingMode,
    Form,
    JsonForm,
    MaxwellForm,
    TimePrecisionMode,
)
from binlake.decode.types.mysql_types import parse_type
from binlake.decode.types.text_columns import column_of
from binlake.decode.types.zero_dates import lake_form, with_policy
from binlake.schema.rules.conversion.columns import converted
from binlake.schema.rules.conversion.session import Session
from binlake.schema.rules.ddl_effects import DdlEvent, Effect
from binlake.schema.rules.entries import DdlEntry
from binlake.schema.rules.evolution import evolved
from binlake.schema.rules.generated_columns import GeneratedHistory
from binlake.schema.rules.judged import TableSchemaState
from binlake.schema.rules.stepping import stepped
from binlake.schema.rules.steps import Compute, Convert, Fill, step_from_json, step_to_json
from binlake.schema.rules.table_ddl import judge_table
from binlake.settings import TablesSettings
from hudilake.errors import UnsupportedError
from tests.binlake.schema.conversion_oracle import TYPES

SOURCE = SourceTable("db", "t")
DATES = tuple(text for text in TYPES if parse_type(text).base in ("date", "datetime", "timestamp"))
#: A constant default of each type that can have one.
DEFAULTS = {"date": "'2024-02-29'", "datetime": "'2024-02-29 12:30:00'", "timestamp": "'2024-02-29 12:30:00'"}
DEFAULTS |= {"time": "'12:30:00'", "enum": "'x'", "char": "'x'", "varchar": "'x'", "binary": "'x'", "varbinary": "'x'"}
DEFAULTS |= dict.fromkeys(["tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double"], "1")
FORMS: tuple[Form, ...] = (
    *map(JsonForm, TimePrecisionMode),
    *(JsonForm(decimals=one) for one in DecimalHandlingMode),
    *(JsonForm(bigint_unsigned=one) for one in BigintUnsignedHandlingMode),
    *(JsonForm(binary=one) for one in BinaryHandlingMode),
    CanalForm(),
    MaxwellForm(),
    BinlogForm(),
)


def streamed_type(text: str, form: Form, policy: ZeroDates) -> pa.DataType:
    """The lake type of a column of rows."""
    return with_policy(column_of("c", parse_type(text), form), policy, in_key=False).lake_type


def statements() -> Iterator[tuple[str | None, str, str, str]]:
    """(type before, the statement's clause, column, type after): each kind of statement with each type."""
    for text in TYPES:
        constant = DEFAULTS.get(parse_type(text).base)
        yield None, f"ADD COLUMN c {text}", "c", text
        yield None, f"ADD COLUMN c {text} NOT NULL", "c", text
        yield None, f"ADD COLUMN c {text} NOT NULL DEFAULT {constant or 'NULL'}", "c", text
        yield None, f"ADD COLUMN c {text} DEFAULT CURRENT_TIMESTAMP", "c", text
        for other in (text, "int", "varchar(60)", "date", "datetime(6)"):
            yield other, f"MODIFY c {text}", "c", text
            yield other, f"MODIFY c {text} NOT NULL DEFAULT {constant or 'NULL'}", "c", text
            yield other, f"CHANGE c d {text}", "d", text
            yield other, f"DROP COLUMN c, ADD COLUMN c {text}", "c", text


def table(before: str | None, policy: ZeroDates) -> TableSchemaState:
    """The state of a table whose column ``c`` has that type."""
    fields = [pa.field("id", pa.int32())]
    if before is not None:
        fields.append(pa.field("c", streamed_type(before, JsonForm(), policy)))
    rules = TablesSettings.model_validate({"defaults": {"schema_changes": {"convert": "follow"}}}).rules(SOURCE)
    made = GeneratedHistory(lambda order: (0, {}))
    state = TableSchemaState(pa.schema(fields), ("id",), None, rules, generated=made, zero_dates=policy)
    if before is not None:
        state.types["c"] = lake_form(parse_type(before), policy)
    return state


def judged(clause: str, state: TableSchemaState) -> list[DdlEntry]:
    """What commits record of a statement; the state is that after it."""
    text = f"ALTER TABLE t {clause}"
    (ddl,) = parse_ddl(text, "db")
    event = DdlEvent(5 << 32, 1_709_210_000, "", text, "db", mariadb=True)
    done = judge_table(SOURCE, [Effect(event, ddl.action, ddl.clauses)], [], state)
    assert not state.refused, clause
    for step in steps_of(done.entries):
        again = step_from_json(step_to_json(step))
        assert isinstance(again, Fill | Convert | Compute)
        assert again.column.type == step.column.type
    return done.entries


def steps_of(entries: Iterable[DdlEntry]) -> list[Fill | Convert | Compute]:
    """Their steps that give values; a copied column keeps its type."""
    return [step for one in entries for step in one.steps if isinstance(step, Fill | Convert | Compute)]


def differing(judges: ZeroDates, streams: ZeroDates) -> set[str]:
    """The types after a statement whose lake type differs from that of rows, or whose old rows do not fit new ones."""
    odd = set[str]()
    for before, clause, column, after in statements():
        state = table(before, judges)
        rows = pa.table({f.name: pa.nulls(2, f.type) for f in state.schema}).set_column(
            0, "id", pa.array([1, 2], pa.int32())
        )
        steps = [step for one in judged(clause, state) for step in one.steps]
        everything = np.ones(2, dtype=bool)
        restated = stepped(rows, steps, everything, ~everything)
        for kind in {streamed_type(after, form, streams) for form in FORMS}:
            stored = state.schema.field(column).type
            if evolved_type(stored, kind) != stored:
                odd.add(after)
            if column in restated.column_names and evolved_type(stored, restated.schema.field(column).type) != stored:
                odd.add(after)
    return odd


def evolved_type(stored: pa.DataType, incoming: pa.DataType) -> pa.DataType | None:
    """The type of a stored column once values of another type have come; None if it cannot take them."""
    try:
        return evolved(pa.schema([("c", stored)]), pa.schema([("c", incoming)])).field("c").type
    except UnsupportedError:
        return None


@pytest.mark.first(1)
@pytest.mark.parametrize("policy", ZeroDates)
def test_a_statement_gives_a_column_the_type_of_its_rows(policy: ZeroDates) -> None:
    assert differing(policy, policy) == set()


def test_rules_without_the_policy_would_differ() -> None:
    assert differing(ZeroDates.NULL, ZeroDates.TEXT) == set(DATES)


@pytest.mark.parametrize(
    ("kind", "default", "text"),
    [
        ("DATE", "'2024-02-29'", "2024-02-29"),
        ("DATETIME(3)", "'2024-02-29 12:30:00.500'", "2024-02-29 12:30:00.5"),
        ("TIMESTAMP", "'2024-02-29 12:30:00'", "2024-02-29 12:30:00"),
    ],
)
def test_a_default_is_filled_in_as_text(kind: str, default: str, text: str) -> None:
    state = table(None, ZeroDates.TEXT)
    steps = steps_of(judged(f"ADD c {kind} NOT NULL DEFAULT {default}", state))
    rows = stepped(pa.table({"id": pa.array([1], pa.int32())}), steps, np.array([True]), np.array([False]))
    assert rows.column("c").to_pylist() == [text]


#: (old type, new type, values of the lake, what they become, whether something is left open)
CONVERSIONS = [
    ("date", "datetime", ["2024-02-29", "2024-02-00", None], ["2024-02-29 00:00:00", None, None], True),
    ("datetime(3)", "date", ["2024-02-29 12:30:00.5", "0000-00-00 00:00:00"], ["2024-02-29", "0000-00-00"], True),
    ("datetime", "datetime(6)", ["2024-02-29 12:30:00", "2024-00-10 11:12:13"], None, False),
    (
        "datetime(3)",
        "varchar(30)",
        ["2024-02-29 12:30:00.5", "2024-00-10 11:12:13"],
        ["2024-02-29 12:30:00.500", None],
        True,
    ),
    ("date", "int", ["2024-02-29", "0000-00-00"], [20240229, None], True),
    ("varchar(30)", "date", ["2024-02-29", "no date"], ["2024-02-29", None], True),
    ("datetime", "timestamp", ["2024-02-29 12:30:00"], ["2024-02-29 12:30:00"], True),
]


@pytest.mark.parametrize(("old", "new", "values", "after", "left_open"), CONVERSIONS)
def test_texts_of_dates_are_converted(
    old: str, new: str, values: list[str | None], after: list[object] | None, left_open: bool
) -> None:
    former, later = (lake_form(parse_type(text), ZeroDates.TEXT) for text in (old, new))
    mine = converted(former, later, pa.array(values, pa.string()), Session(mariadb=True, seconds=1_709_210_000))
    assert mine.type == later.lake_type
    assert mine.to_pylist() == (values if after is None else after)
    (entry,) = judged(f"MODIFY c {new}", table(old, ZeroDates.TEXT))
    assert bool(entry.undetermined) == left_open


def test_an_expression_over_a_date_that_is_text_is_not_computed() -> None:
    clause = "ADD e VARCHAR(40) AS (CONCAT(c)) STORED"
    (plain,), (dated,) = (judged(clause, table(kind, ZeroDates.TEXT)) for kind in ("varchar(9)", "datetime(3)"))
    assert not plain.undetermined
    assert "reads c, which is text in the lake" in str(dated.undetermined)
