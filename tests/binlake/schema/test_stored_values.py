"""Stored values whose column gets another type, NULL or NOT NULL, with or without a DEFAULT, in strict sessions and
others: each cell is as at MariaDB, or the column is named as not determined, or the statement is refused."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from binlake.decode.ddl.clauses import ModifyColumn
from binlake.decode.ddl.columns import ColumnDefinition
from binlake.decode.ddl.statements import parse_ddl
from binlake.decode.types.mysql_types import MysqlType, parse_type
from binlake.schema.rules.conversion.session import Session
from binlake.schema.rules.evolution import common_type
from binlake.schema.rules.retyping import conversion
from binlake.schema.rules.stepping import stepped
from binlake.schema.rules.steps import Convert
from embedded.mariadb import EmbeddedMariaDB
from hudilake.errors import UnsupportedError
from tests.binlake.schema.conversion_oracle import TYPES, fill, literals, modified, read
from tests.hypothesis_profile import is_nightly

USUAL = (
    "int",
    "bigint",
    "decimal(50,10)",
    "year",
    "date",
    "time",
    "varchar(60)",
    "enum('x','y','abc','12')",
    "bit(12)",
)
STRICT = "STRICT_ALL_TABLES"
_DEFAULTS = {
    **dict.fromkeys(["date", "datetime", "timestamp"], "'2001-01-01'"),
    "time": "'01:00:00'",
    "uuid": "'123e4567-e89b-12d3-a456-426614174000'",
    "inet6": "'::1'",
    "json": "'[]'",
    **dict.fromkeys(["enum", "set"], "'y'"),
}
NULLABLE, NOT_NULL, DEFAULT = "{}", "{} NOT NULL", "{} NOT NULL DEFAULT {}"


def defined(text: str) -> ColumnDefinition:
    (ddl,) = parse_ddl(f"ALTER TABLE t MODIFY c {text}", "db")
    (clause,) = ddl.clauses
    assert isinstance(clause, ModifyColumn)
    return clause.column


@pytest.mark.full
@pytest.mark.database
@pytest.mark.parametrize("old", TYPES if is_nightly() else USUAL)
@pytest.mark.parametrize("mode", ["", STRICT])
@pytest.mark.parametrize("form", [NOT_NULL, DEFAULT, NULLABLE])
def test_stored_values_are_as_at_the_server_or_named(server: EmbeddedMariaDB, old: str, mode: str, form: str) -> None:
    kind, chance = parse_type(old), random.Random(TYPES.index(old))
    values = literals(kind, chance)
    values = chance.sample(values, 3) if mode == STRICT else values
    fill(server, "x.t", old, values, len(TYPES), null=form == NULLABLE or mode != STRICT)
    [before, *_] = read(server, "x.t", [kind] * len(TYPES))
    news = [form.format(text, _DEFAULTS.get(parse_type(text).base, "1")) for text in TYPES]
    taken = modified(server, "x.t", [*enumerate(news)], mode)
    [now] = server.execute("SELECT UNIX_TIMESTAMP()")
    after = read(server, "x.t", [parse_type(text) if n in taken else kind for n, text in enumerate(TYPES)])
    session = Session("UTC", mariadb=True, seconds=int(now))
    wrong, compared = [], 0
    for n in sorted(taken):
        for former in (kind, None):
            found = restated(defined(news[n]), former, kind, before, session)
            if found is None:
                continue
            compared += 1
            cells = zip(before.to_pylist(), found.to_pylist(), after[n].to_pylist(), strict=True)
            others = [c for c in cells if c[1] != c[2] and not _may_differ(kind, parse_type(TYPES[n]), c)]
            wrong += [(news[n], former and former.text, len(others), others[0])] if others else []
    assert wrong == []
    assert compared > 0 or not taken


def restated(
    column: ColumnDefinition, former: MysqlType | None, kind: MysqlType, before: pa.Array, session: Session
) -> pa.Array | None:
    """The values after the statement; None if the column is named as not determined."""
    assert column.type is not None
    wide = common_type(kind.lake_type, column.type.lake_type)[0] or column.type.lake_type
    step, undetermined = conversion(column, former, kind.lake_type, wide, session)
    if undetermined is not None:
        return None
    if step is None:
        return before.cast(column.type.lake_type)
    every = np.ones(len(before), dtype=bool)
    return stepped(pa.table({"c": before}), [step], every, ~every).column("c").cast(column.type.lake_type)


def _may_differ(old: MysqlType, new: MysqlType, cell: tuple[object, object, object]) -> bool:
    """Known otherwise: MariaDB reads parts of texts as a YEAR by rules of its own (``test_conversions``); the clock of
    a statement that gives null its own time has moved on."""
    if new.base == "year" and old.base not in ("int", "bigint", "decimal", "year", "time", "bit", "date"):
        return True
    return new.base == "timestamp" and cell[0] is None and None not in cell[1:]


EVERY, REST = np.array([True, True]), np.array([False, False])


def convert(values: pa.Array, old: str, new: str, sure: np.ndarray = EVERY) -> list[object]:
    step = Convert(defined(new), parse_type(old), Session(mariadb=True, seconds=0))
    found: list[object] = stepped(pa.table({"c": values}), [step], sure, REST).column("c").to_pylist()
    return found


@pytest.mark.parametrize("new", ["DOUBLE NOT NULL", "TINYINT NOT NULL DEFAULT 7", "DATE", "DECIMAL(30,3)"])
@pytest.mark.parametrize(
    ("old", "values"),
    [
        ("int", pa.array(["5", "x"])),
        ("int", pa.array([5, 1 << 40], pa.int64())),
        ("date", pa.array([5, 6], pa.int64())),
        ("time", pa.array(["10:00:00", None])),
        ("float", pa.array([b"a", b"b"])),
    ],
)
def test_values_that_are_none_of_the_former_type_are_refused(old: str, values: pa.Array, new: str) -> None:
    with pytest.raises(UnsupportedError, match=f"column c becomes .* and was {old}, but rows before have values"):
        convert(values, old, new)


@pytest.mark.parametrize(
    ("former", "wide"),
    [
        (pa.array([-5, 101010, None], pa.int32()), pa.int64()),
        (pa.array([1.25, 2.55, None], pa.float32()), pa.float64()),
        (pa.array(["-3.50", "7.25", None]).cast(pa.decimal128(10, 2)), pa.decimal128(14, 4)),
    ],
)
@pytest.mark.parametrize("new", ["INT UNSIGNED", "TIME", "BIT(40)", "DOUBLE(9,1)", "DECIMAL(14,4) UNSIGNED", "CHAR(4)"])
def test_a_lake_column_wider_than_the_former_type_is_converted_too(
    former: pa.Array, wide: pa.DataType, new: str
) -> None:
    old = {pa.int32(): "int", pa.float32(): "float"}.get(former.type, "decimal(10,2)")
    sure, rest = np.full(3, True), np.full(3, False)
    kind, step = parse_type(new), Convert(defined(new), parse_type(old), Session(mariadb=True, seconds=0))
    exact, wider = (
        stepped(pa.table({"c": values}), [step], sure, rest).column("c").combine_chunks().cast(kind.lake_type)
        for values in (former, former.cast(wide))
    )
    assert wider.to_pylist() == exact.to_pylist()


def test_rows_that_may_be_read_after_the_statement_keep_the_values_of_the_new_type() -> None:
    step = Convert(defined("INT UNSIGNED"), parse_type("int"), Session(mariadb=True, seconds=0))
    rows = pa.table({"c": pa.array([-5, 1 << 31], pa.int64())})
    assert stepped(rows, [step], np.array([True, False]), np.array([False, True])).column("c").to_pylist() == [
        0,
        1 << 31,
    ]


def test_rows_after_the_statement_do_not_count_and_keep_their_values() -> None:
    first = np.array([True, False])
    assert convert(pa.array(["5", "x"]), "int", "VARCHAR(9) NOT NULL", first) == ["5", "x"]
    assert convert(pa.array([5, 1 << 40], pa.int64()), "int", "BIGINT NOT NULL", first) == [5, 1 << 40]
    assert convert(pa.array([1 << 40, 7], pa.int64()), "bigint", "INT", first) == [(1 << 31) - 1, 7]


def test_not_null_fills_what_was_null_and_nothing_else() -> None:
    assert convert(pa.array([5, None], pa.int32()), "int", "VARCHAR(9) NOT NULL DEFAULT 'd'") == ["5", ""]
    assert convert(pa.array([1, None], pa.int32()), "int", "ENUM('x','y') NOT NULL DEFAULT 'y'") == ["x", ""]
    assert convert(pa.array(["", None]), "enum('','a')", "INT NOT NULL") == [None, 0]
    assert convert(pa.array([0, None], pa.date32()), "date", "VARCHAR(20) NOT NULL") == ["1970-01-01", None]
