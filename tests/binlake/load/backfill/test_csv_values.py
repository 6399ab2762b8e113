"""What a CSV file spells is what the lake then holds, or the file is refused with the line."""

from __future__ import annotations

import contextlib
import csv
import io
import math
import random
import string
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal, InvalidOperation
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from binlake.cli.commands.reads.query import print_csv
from binlake.decode.types.exact_values import UnfitValueError, exactly
from binlake.load.backfill.csv_rows import CsvRows
from binlake.load.backfill.inputs import Input, InputForm
from binlake.load.backfill.pieces import Place
from hudilake.errors import BadInputError, UnsupportedError
from hudilake.storage import open_storage
from tests.binlake.load.backfill.lake_with_rows import backfilled, fed, rows_of, written
from tests.binlake.stream.topic_log import event
from tests.selection import first

SEVEN = {"id": 7, "owner": "7", "balance": "AfQ=", "region": "eu"}


def test_a_key_of_text_keeps_its_zeros(tmp_path: Path) -> None:
    """``007`` is not the row whose key is ``7``."""
    lake = fed(tmp_path, {"key": ["owner"]})
    for at, owner in enumerate(("7", "007")):
        lake.log.add("s.shop.a", event("a", "c", 600 + at, {**SEVEN, "id": 70 + at, "owner": owner}), {"owner": owner})
    lake.runner.run(lake.batches, lake.log.end(), 0, lake.engine)
    (tmp_path / "in.csv").write_text("owner,zip\n007,0049170\n")
    assert backfilled(lake, str(tmp_path / "in.csv"), ("zip",)).counts.changed == 1
    found = rows_of(lake, "owner", "zip")
    assert (found[70], found[71]) == (("7", None), ("007", "0049170"))


def test_a_number_is_no_text_of_a_key(tmp_path: Path) -> None:
    """The text may have had zeros in front."""
    lake = fed(tmp_path, {"key": ["owner"]})
    with pytest.raises(BadInputError, match=r"'owner' is of type int.* cannot hold its values .*all_varchar"):
        backfilled(lake, "SELECT 7 AS owner, 'x' AS zip", ("zip",))


def test_a_float_that_may_have_been_another_whole_number(tmp_path: Path) -> None:
    """DuckDB reads a CSV file's 9007199254740993.0 as the float 9007199254740992, which may be another row's key."""
    (tmp_path / "in.csv").write_text("id\n9007199254740993.0\n")
    read = duckdb.sql(f"SELECT id FROM '{tmp_path}/in.csv'").to_arrow_table()["id"]
    for floats in (read, pa.chunked_array([[float(1 << 53)]]), pa.chunked_array([pa.array([-1e16], pa.float64())])):
        for kind in (pa.int64(), pa.decimal128(20, 0), pa.decimal128(38, 10)):
            with pytest.raises(UnfitValueError):
                exactly(floats, kind)
    with pytest.raises(UnfitValueError):
        exactly(pa.chunked_array([pa.array([1 << 24], pa.float32())]), pa.int32())
    below = [float((1 << 53) - 1), 1_700_000_000_123_456.0, -2.0]
    assert exactly(pa.chunked_array([below]), pa.int64()).to_pylist() == below


@pytest.mark.parametrize("form", ["csv", "query", "parquet"])
def test_what_a_decimal_cannot_hold_names_its_row(tmp_path: Path, form: str) -> None:
    lake = fed(tmp_path)
    path = f"{tmp_path}/in.csv"
    Path(path).write_text('id,balance,note\n0,1.5,"two\nlines"\n\n2,2.675,x\n')
    source = path if form == "csv" else f"SELECT id, balance FROM read_csv('{path}')"
    if form == "parquet":
        rows = pa.table({"id": [0, 2], "balance": [1.5, 2.675]})
        source = written(tmp_path / "in.parquet", rows)
    before = lake.commits()
    with pytest.raises(BadInputError, match=r"column 'balance' .*2\.675.* cannot hold exactly") as refused:
        backfilled(lake, source, ("balance",), order=1 << 61)
    where = refused.value.where
    assert where.get("line") == 5 if form == "csv" else (where["row"], where["key"]) == (2, "id=2")
    assert lake.commits() == before


def test_portions_before_a_value_that_does_not_fit(tmp_path: Path) -> None:
    """They are in the table, and what the error advises carries out the rest."""
    lake = fed(tmp_path)
    for balance in (2.675, 2.67):
        path = written(tmp_path / "in.parquet", pa.table({"id": [0, 2, 3, 4], "balance": [1.5, 2.5, 3.5, balance]}))
        if balance == 2.67:
            backfilled(lake, path, ("balance",), order=1 << 61, restart=True)
        else:
            with pytest.raises(BadInputError, match="--restart, for the portions before this one are in the table"):
                backfilled(lake, path, ("balance",), order=1 << 61)
        assert rows_of(lake, "balance")[2] == (Decimal("2.50"),)
    assert rows_of(lake, "balance")[4] == (Decimal("2.67"),)


def test_bytes_that_a_query_prints_come_back(tmp_path: Path) -> None:
    """A BINARY column of hexadecimal digits is their bytes, and no text of them; a query's CSV says which it is."""
    held = [None, b"", b"a", b"\xff\x00", b"\\x41", b"0a", b'","\n']
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        print_csv(pa.table({"k": range(len(held)), "v": pa.array(held, pa.binary())}).to_reader())
    (tmp_path / "in.csv").write_text(printed.getvalue())
    assert rows_in(tmp_path, {"v": pa.binary()}, "v")["v"].to_pylist() == held
    (tmp_path / "in.csv").write_text("k,v\n1,\\x616263\n2,xyz\n3,\n")
    assert rows_in(tmp_path, {"v": pa.binary(3)}, "v")["v"].to_pylist() == [b"abc", b"xyz", None]


@pytest.mark.parametrize("text", ["616263", "0A", "\\x1", "\\xno", "\\x 61", "\\x6162 "])
def test_bytes_that_are_not_certain(tmp_path: Path, text: str) -> None:
    """``616263`` may be three bytes or six."""
    (tmp_path / "in.csv").write_text(f"k,v\n1,plain text\n2,{text}\n")
    with pytest.raises(BadInputError, match=r"write bytes as \\x and two hexadecimal digits each") as refused:
        rows_in(tmp_path, {"v": pa.binary()}, "v")
    assert refused.value.where["line"] == 3
    with pytest.raises(UnfitValueError):
        exactly(pa.chunked_array([[text]]), pa.binary())


def test_bytes_of_another_length(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("k,v\n1,\\x6162\n")
    with pytest.raises(BadInputError, match="fixed_size_binary"):
        rows_in(tmp_path, {"v": pa.binary(3)}, "v")


def test_types_that_csv_has_no_words_for(tmp_path: Path) -> None:
    """Columns that are not asked for may be of such a type."""
    (tmp_path / "in.csv").write_text('k,v,w\n1,x,"[1, 2]"\n')
    known = {"v": pa.string(), "w": pa.list_(pa.int64())}
    assert rows_in(tmp_path, known, "v")["v"].to_pylist() == ["x"]
    with pytest.raises(UnsupportedError, match=r"'w' is of type list.*not read from CSV"):
        rows_in(tmp_path, known, "w")


def test_empty_fields(tmp_path: Path) -> None:
    """Without quotes a field without anything is null, with quotes an empty text."""
    lake = fed(tmp_path)
    (tmp_path / "in.csv").write_text('id,note,mark\n0,,NULL\n2,"",NA\n3,nan,"\\N"\n')
    backfilled(lake, str(tmp_path / "in.csv"), ("note", "mark"))
    assert rows_of(lake, "note", "mark") == {0: (None, "NULL"), 2: ("", "NA"), 3: ("nan", "\\N"), 4: (None, None)}


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["0", "-12", "", str(2**63 - 1)], pa.int64()),
        (["1", str(2**63 + 1)], pa.string()),
        (["1", "007"], pa.string()),
        (["1", "2.5", "1e3", "0.30000000000000004"], pa.float64()),
        (["1", "16777217.00000000000000001"], pa.string()),
        (["1e400"], pa.string()),
        (["true", "False"], pa.bool_()),
        (["2024-02-29", ""], pa.date32()),
        (["2024-02-30"], pa.string()),
        (["2024-02-29", "2024-02-29 10:00:00.5"], pa.timestamp("us", tz="UTC")),
        (["2024-02-29T10:00:00.0000001"], pa.string()),
        (["", ""], pa.string()),
        (["nan"], pa.string()),
    ],
)
def test_a_new_column_gets_a_type_that_gives_every_value_back(
    tmp_path: Path, texts: list[str], kind: pa.DataType
) -> None:
    (tmp_path / "in.csv").write_text("k,new\n" + "".join(f"1,{text}\n" for text in texts))
    assert rows_in(tmp_path, {}, "new").schema.field("new").type == kind


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("k,v,v\n1,2,3\n", "'v' is in the file's first line more than once"),
        ("k,v\n1,2\n3\n", "Expected 2 columns, got 1"),
        ("k,v\n1,caf\xe9\n", "a text in UTF-8 cannot hold"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, content: str, text: str) -> None:
    (tmp_path / "in.csv").write_bytes(content.encode("latin-1"))
    with pytest.raises(BadInputError, match=text):
        rows_in(tmp_path, {"v": pa.string()}, "v")


@pytest.mark.parametrize("row", ['1,"a\n3,b\n4,c\n', '1,"a"b\n', '1,"say \\"so\\""\n', '1,"a" \n'])
def test_a_quote_that_does_not_end_its_field(tmp_path: Path, row: str) -> None:
    """The rows behind it were part of its value; a backslash before a quote is how other tools write two."""
    (tmp_path / "in.csv").write_text(f'k,v\n0,"two\nlines"\n{row}')
    with pytest.raises(BadInputError, match="a row cannot be read") as refused:
        rows_in(tmp_path, {"v": pa.string()}, "v")
    assert refused.value.where["line"] == 4


def test_long_texts(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text(f'k,v\n1,"{"x" * 300_000}"\n')
    assert rows_in(tmp_path, {"v": pa.string()}, "v")["v"].to_pylist() == ["x" * 300_000]


def rows_in(path: Path, known: dict[str, pa.DataType], *names: str) -> pa.Table:
    """The columns of the file ``in.csv``."""
    info = open_storage(str(path)).stat("in.csv")
    assert info is not None
    rows = CsvRows(Input(f"{path}/in.csv", InputForm.CSV, Place(str(path)), (info,)), known, frozenset(names))
    schema = rows.schema()
    return pa.Table.from_batches(rows.batches(schema, names), pa.schema([schema.field(name) for name in names]))


# -- any text in any type ----------------------------------------------------------------------------------------------

ABSURD = ("007", "-0", "+5", " 7", "7 ", "1_000", "0x10", "1e300", "1e-400", "1e99999", "1E5", "٣", "1,5", "nan", "inf")
MOMENTS = (
    "2024-02-29 24:00:00",
    "2024-02-30",
    "0000-00-00",
    "2024-02-29T01:02:03.1234567",
    "2024-02-29 01:02:03+02:00",
)
WORDS = (*ABSURD, *MOMENTS, "true", "FALSE", "yes", "NULL", "\\N", 'a"b', "a\nb", "é", "0" * 500, "1" * 60)


def some_text(rng: random.Random) -> str:
    """A number or a moment near the edges of types, or a word."""
    at = rng.random()
    if at < 0.25:
        return rng.choice(WORDS)
    if at < 0.5:
        digits = str(rng.randrange(10 ** rng.randrange(1, 25)))
        point = rng.randrange(len(digits) + 1)
        sign, zeros = rng.choice(["", "", "-", "+"]), rng.choice(["", "", "00"])
        return sign + zeros + digits[:point] + rng.choice([".", "", "."]) + digits[point:] + rng.choice(["", "00"])
    if at < 0.7:
        return str(
            rng.choice([1 << 7, 1 << 24, 1 << 31, 1 << 53, 1 << 63]) * rng.choice([1, -1]) + rng.randrange(-2, 3)
        )
    if at < 0.85:
        return repr(rng.choice([rng.random(), rng.gauss(0, 1e30), float(np.float32(rng.random()))]))
    moment = datetime(1, 1, 1, tzinfo=UTC) + timedelta(microseconds=rng.randrange(86_400_000_000 * 3_650_000))
    form = rng.choice(["%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S.%fZ"])
    return (moment if moment.year >= 1000 else moment.replace(year=1000)).strftime(form)


def number(text: str) -> Decimal:
    if any(sign in text for sign in "_ \n") or not text.isascii():
        raise InvalidOperation
    return Decimal(text)


def float_of(kind: type[np.floating]) -> Callable[[str], object]:
    """A float is right if it is the nearest one to the text, and no longer text means another one of its neighbours."""

    def made(text: str) -> object:
        said = number(text)
        with np.errstate(over="ignore"):
            near = kind(float(said))
        if not said.is_finite():
            return float(said)
        if not math.isfinite(near):
            raise ValueError
        step = abs(Decimal(float(np.nextafter(near, kind(np.inf)))) - Decimal(float(near)))
        if abs(Decimal(float(near)) - said) > step:
            raise ValueError
        return float(near)

    return made


WIDE = Context(prec=1000)


def decimal_of(precision: int, scale: int) -> Callable[[str], object]:
    def made(text: str) -> object:
        said = number(text)
        if (
            not said.is_finite()
            or abs(said) >= 10 ** (precision - scale)
            or said != said.quantize(Decimal(1).scaleb(-scale), context=WIDE)
        ):
            raise ValueError
        return said

    return made


def whole(bits: int) -> Callable[[str], object]:
    def made(text: str) -> object:
        said = number(text)
        if said != int(said) or not -(1 << bits - 1) <= int(said) < 1 << bits - 1:
            raise ValueError
        return int(said)

    return made


def day(text: str) -> object:
    if len(text) != 10:
        raise ValueError
    return date.fromisoformat(text)


def some_bytes(text: str) -> object:
    if text.startswith("\\x") or (text and len(text) % 2 == 0 and set(text) <= set(string.hexdigits)):
        raise ValueError
    return text.encode()


def moment(text: str) -> object:
    if text[4:5] != "-" or len(text.partition(".")[2].rstrip("Z")) > 6:
        raise ValueError
    said = datetime.fromisoformat(text)
    return said.replace(tzinfo=UTC) if said.tzinfo is None else said


ORACLES: dict[pa.DataType, Callable[[str], object]] = {
    pa.int32(): whole(32),
    pa.int64(): whole(64),
    pa.float32(): float_of(np.float32),
    pa.float64(): float_of(np.float64),
    pa.decimal128(8, 2): decimal_of(8, 2),
    pa.decimal128(38, 10): decimal_of(38, 10),
    pa.string(): str,
    pa.binary(): some_bytes,
    pa.date32(): day,
    pa.timestamp("us", tz="UTC"): moment,
    pa.bool_(): lambda text: {"true": True, "false": False, "1": True, "0": False}[text.lower()],
}


@pytest.mark.full
@pytest.mark.parametrize("seed", first(1, range(4)))
def test_any_text_is_its_value_or_refused(tmp_path: Path, seed: int) -> None:
    """Python's own numbers and dates are the oracle."""
    rng = random.Random(seed)
    held = 0
    for kind, oracle in ORACLES.items():
        for _ in range(60):
            text = some_text(rng)
            expected: object = BadInputError
            with contextlib.suppress(ValueError, ArithmeticError, LookupError):
                expected = oracle(text)
            found = read(tmp_path, kind, text)
            if found is BadInputError:
                assert is_refusable(kind, text, expected), (kind, text, expected)
            else:
                assert found == expected or found != found, (kind, text, expected, found)
                held += 1
    assert held > 150


def read(path: Path, kind: pa.DataType, text: str) -> object:
    """A field as a value of a type; BadInputError if it is refused, which must name its line and column."""
    said = io.StringIO()
    csv.writer(said, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows([["k", "v"], ["1", text]])
    (path / "in.csv").write_text(said.getvalue(), encoding="utf-8", newline="")
    try:
        return rows_in(path, {"v": kind}, "v")["v"][0].as_py()
    except BadInputError as error:
        named = error.where["line"], "'v'" in error.what
    assert named == (2, True)
    return BadInputError


def is_refusable(kind: pa.DataType, text: str, expected: object) -> bool:
    """Whether a refusal is right: there is no such value, or the form is one that is not taken."""
    if expected is BadInputError:
        return True
    if pa.types.is_floating(kind):
        return not (isinstance(expected, float) and math.isfinite(expected)) or rounds(kind, text, expected)
    return len(text) > 400 or ("e" in text.lower() and len(text.lower().split("e")[1]) > 4)


def rounds(kind: pa.DataType, text: str, near: float) -> bool:
    """Whether a float is another number than the text in as many digits."""
    digits = len("".join(map(str, Decimal(text).as_tuple().digits)).strip("0")) or 1
    return Decimal(f"{near:.{digits - 1}e}") != Decimal(text) or len(text) > 400
