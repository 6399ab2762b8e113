"""Every type converted to every other, beside MariaDB: each cell is equal, or the pair is not determined."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
import pytest

from binlake.decode.ddl.columns import ColumnDefinition
from binlake.decode.types.mysql_types import parse_type
from binlake.schema.rules.conversion.columns import converted
from binlake.schema.rules.conversion.lossless import keeps_values
from binlake.schema.rules.conversion.moments import datetime_of_text, time_of_text
from binlake.schema.rules.conversion.session import Session
from binlake.schema.rules.conversion.undetermined import why_undetermined
from binlake.schema.rules.retyping import conversion
from embedded.mariadb import EmbeddedMariaDB
from hudilake.errors import UnsupportedError
from tests.binlake.schema.conversion_oracle import TYPES, Converted, conversions
from tests.hypothesis_profile import is_nightly

#: Types whose conversions to all others a usual run compares; a nightly run compares all types.
USUAL = ("int", "decimal(20,6)", "double", "datetime(6)", "varchar(60)")
#: Types whose texts MariaDB reads as a YEAR in a way of its own, if a number stops in the middle (``2.5e-``, ``.5.``).
_TEXTS = frozenset({"char", "varchar", "text", "json", "binary", "varbinary", "blob"})


@pytest.mark.full
@pytest.mark.database
@pytest.mark.parametrize("old", TYPES if is_nightly() else USUAL)
def test_stored_values_become_what_the_server_makes_of_them(server: EmbeddedMariaDB, old: str) -> None:
    now, found = conversions(server, "x", old, TYPES, seed=TYPES.index(old))
    session = Session("UTC", mariadb=True, seconds=now)
    assert len(found) >= len(TYPES) - 1
    differing = [text for one in found if (text := difference(one, session)) is not None]
    assert differing == []
    assert len(found) > 30


def difference(one: Converted, session: Session) -> str | None:
    """The first cells in which a conversion differs from the server's; None if there is none."""
    pair = (one.old.text, one.new.text)
    if why_undetermined(one.old, one.new, session) is not None:
        return None
    mine = converted(one.old, one.new, one.before, session)
    assert mine.type == one.new.lake_type
    cells = zip(one.before.to_pylist(), mine.to_pylist(), one.after.to_pylist(), strict=True)
    wrong = [cell for cell in cells if cell[1] != cell[2] and not _is_odd(one, cell[0])]
    if not wrong and keeps_values(one.old, one.new):
        same = one.before.cast(one.new.lake_type).to_pylist()
        wrong = [cell for cell in zip(same, same, one.after.to_pylist(), strict=True) if cell[1] != cell[2]]
    return f"{pair}: {len(wrong)} cells, such as {wrong[0]}" if wrong else None


def _is_odd(one: Converted, value: str | bytes) -> bool:
    if one.old.base not in _TEXTS or one.new.base != "year":
        return False
    text = value.decode("latin1") if isinstance(value, bytes) else value
    return re.fullmatch(r"\s*[+-]?(\d+|\d*\.\d+)([eE][+-]?\d+)?", text) is None


def test_pairs_that_are_not_determined_are_few() -> None:
    session = Session("UTC", mariadb=True, seconds=0)
    pairs = [(parse_type(old), parse_type(new)) for old in TYPES for new in TYPES]
    open_ones = {(o.base, n.base) for o, n in pairs if why_undetermined(o, n, session) is not None}
    assert {pair for pair in open_ones if "uuid" not in pair} == {("float", "time"), ("double", "time")}


@pytest.mark.first(2)
@pytest.mark.database
@pytest.mark.parametrize("new", ["datetime(3)", "timestamp(3)", "time(3)", "date"])
@pytest.mark.parametrize("old", ["datetime(6)", "decimal(38,10)", "varchar(40)", "double"])
def test_a_mode_that_no_log_has_makes_other_fractions_and_the_column_is_named(
    server: EmbeddedMariaDB, old: str, new: str
) -> None:
    """Where TIME_ROUND_FRACTIONAL has a say, and only there. A DOUBLE has no digits left for a fraction here."""
    made = []
    for mode in ("", "TIME_ROUND_FRACTIONAL"):
        server.execute(f"CREATE OR REPLACE TABLE x.m (a {old}); INSERT INTO x.m VALUES (20240229235958.999999)")
        made.append(server.execute(f"SET sql_mode = '{mode}'; ALTER TABLE x.m MODIFY a {new}; SELECT a FROM x.m"))
    kinds = parse_type(old), parse_type(new)
    column = ColumnDefinition("a", new, kinds[1])
    _, named = conversion(column, kinds[0], kinds[0].lake_type, kinds[1].lake_type, Session(mariadb=True, seconds=0))
    assert made[0] == made[1] or named is not None
    assert (made[0] != made[1]) == (new != "date" and old != "double")


def test_a_real_number_is_a_date_as_the_server_prints_it() -> None:
    """DATETIME(3) to DOUBLE and back, as MariaDB 11.4 has it: a DOUBLE has no .765 of a second in the year 2024."""
    session = Session("UTC", mariadb=True, seconds=0)
    moment, real = parse_type("datetime(3)"), parse_type("double")
    stored = pa.array([1_709_210_096_765_000, 0], pa.int64()).cast(moment.lake_type)
    numbers = converted(moment, real, stored, session)
    assert numbers.to_pylist() == [20240229123456.766, 19700101000000.0]
    assert converted(real, moment, numbers, session).cast(pa.int64()).to_pylist() == [1_709_210_096_766_000, 0]
    assert why_undetermined(parse_type("double(20,4)"), moment, session) is not None
    assert why_undetermined(real, moment, Session("UTC", mariadb=False, seconds=0)) is not None


@pytest.mark.parametrize(
    ("old", "new", "value", "mysql", "mariadb"),
    [
        ("datetime(6)", "datetime", 1_500_000, 2_000_000, 1_000_000),
        ("time(6)", "time(1)", -1_250_000, -1_300_000, -1_200_000),
        ("datetime(3)", "datetime(3)", 1_499_000, 1_499_000, 1_499_000),
    ],
)
def test_mysql_rounds_fractions_and_mariadb_cuts_them(old: str, new: str, value: int, mysql: int, mariadb: int) -> None:
    kind, target = parse_type(old), parse_type(new)
    values = pa.array([value], pa.int64()).cast(kind.lake_type)
    for flavour, expected in ((False, mysql), (True, mariadb)):
        found = converted(kind, target, values, Session(mariadb=flavour)).cast(pa.int64())
        assert found.to_pylist() == [expected]


def test_timestamps_are_converted_in_the_zone_of_the_session() -> None:
    stamp, local = parse_type("timestamp"), parse_type("datetime")
    winter = pa.array([1_704_067_200_000_000], pa.int64()).cast(stamp.lake_type)
    session = Session("Asia/Shanghai")
    there = converted(stamp, local, winter, session)
    assert there.cast(pa.int64()).to_pylist() == [1_704_067_200_000_000 + 8 * 3_600_000_000]
    assert converted(local, stamp, there, session) == winter


WITH_EMPTY = "enum('a','','c')"


@pytest.mark.database
def test_the_error_value_of_an_enum_and_an_empty_member(server: EmbeddedMariaDB) -> None:
    """The server tells 0 and 2; the lake holds '' for both, so it gives neither. What is not '' has its number."""
    server.execute(f"CREATE TABLE x.e (id INT PRIMARY KEY, c {WITH_EMPTY})")
    server.execute("SET sql_mode = ''; INSERT INTO x.e VALUES (1, 'a'), (2, ''), (3, 'nothing'), (4, 'c'), (5, NULL)")
    sent = [
        None if text == "NULL" else text for text in server.execute("SELECT IFNULL(c, 'NULL') FROM x.e ORDER BY id")
    ]
    server.execute("SET sql_mode = ''; ALTER TABLE x.e MODIFY c INT")
    told = server.execute("SELECT IFNULL(c, 'NULL') FROM x.e ORDER BY id")
    assert (sent, told) == (["a", "", "", "c", None], ["1", "2", "0", "3", "NULL"])
    assert as_numbers(WITH_EMPTY, sent, "int") == [1, None, None, 3, None]


@pytest.mark.parametrize("new", ["int", "bigint unsigned", "double", "decimal(10,2)", "bit(8)", "year"])
def test_an_empty_text_of_an_enum_has_no_number_if_a_member_is_empty(new: str) -> None:
    assert as_numbers(WITH_EMPTY, [""], new) == [None]
    plain = as_numbers("enum('a','c')", [""], new)
    assert plain == as_numbers("int", [0], new)
    old, kind = parse_type(WITH_EMPTY), parse_type(new)
    column = ColumnDefinition("c", new, kind)
    step, note = conversion(column, old, old.lake_type, kind.lake_type, Session())
    assert step is not None
    assert note is not None
    assert "the log does not tell which" in note.why


def as_numbers(old: str, values: Sequence[object], new: str) -> list[object]:
    kind = parse_type(old)
    found: list[object] = converted(kind, parse_type(new), pa.array(values, kind.lake_type), Session()).to_pylist()
    return found


def test_numbers_of_thousands_of_digits() -> None:
    """A row may hold any text; the server cuts the number to what the type holds."""
    texts: list[object] = ["9" * 5000, "-" + "9" * 5000, "0" * 5000 + "7", "1e" + "9" * 5000]
    assert as_numbers("longtext", texts, "int") == [(1 << 31) - 1, -(1 << 31), 7, 1]
    assert as_numbers("longtext", texts[:1], "enum('a')") == [""]


def test_a_pair_that_is_not_determined_is_refused_with_its_reason() -> None:
    with pytest.raises(UnsupportedError, match="spatial value"):
        converted(parse_type("point"), parse_type("int"), pa.array([b""]), Session())


@pytest.mark.parametrize("text", ["\u0663", "\uff15", "\u00a05"])
def test_digits_and_spaces_of_other_scripts_are_none(text: str) -> None:
    """Measured with MariaDB 11.4."""
    assert as_numbers("varchar(9)", [text, "5"], "int") == [0, 5]
    assert datetime_of_text(f"{text}2024-02-29") is None
    assert time_of_text(f"{text}12:30:00") == 0
