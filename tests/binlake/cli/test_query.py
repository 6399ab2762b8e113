"""``binlake query`` and ``binlake explain``."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from binlake.cli.app import app
from hudilake.errors import ConfigError
from tests.hudilake.read.lakes import new_table, row


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = new_table(tmp_path_factory.mktemp("cli"))
    table.write([row(key, 1) for key in range(60)])
    table.compact()
    table.write([row(7, 2, name=None)])
    return table.path


def binlake(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


def test_rows_as_a_table(lake: Path) -> None:
    done = binlake("query", lake, 'SELECT id, name, raw, "at", flag, price FROM t WHERE id IN (7, 8) ORDER BY id')
    assert done.exit_code == 0
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in done.stdout.splitlines() if "│" in line]
    assert cells == [
        ["7", "", "07", "2024-01-01T07:00:00.000002+00:00", "false", "1.75"],
        ["8", "n008", "08", "2024-01-01T08:00:00.000001+00:00", "true", "2.00"],
    ]
    assert done.stdout.rstrip().endswith("2 rows")


def test_a_table_stops_where_it_is_told(lake: Path) -> None:
    done = binlake("query", lake, "SELECT id FROM t ORDER BY id", "--rows", "3")
    assert "the first 3 rows; more with --rows or --format" in done.stdout


def test_rows_as_json_and_csv(lake: Path) -> None:
    sql = "SELECT id, name, price, raw FROM t WHERE id IN (7, 8) ORDER BY id"
    found = [json.loads(line) for line in binlake("query", lake, sql, "--format", "json").stdout.splitlines()]
    assert found == [
        {"id": 7, "name": None, "price": "1.75", "raw": "07"},
        {"id": 8, "name": "n008", "price": "2.00", "raw": "08"},
    ]
    lines = list(csv.reader(binlake("query", lake, sql, "--format", "csv").stdout.splitlines()))
    assert lines == [["id", "name", "price", "raw"], ["7", "", "1.75", r"\x07"], ["8", "n008", "2.00", r"\x08"]]


def test_an_empty_text_of_csv_is_no_null(lake: Path) -> None:
    """As ``binlake backfill`` reads them."""
    sql = """SELECT '' AS a, NULL AS b, 'x,"y' AS c, ''::BLOB AS d FROM t WHERE id = 7"""
    assert binlake("query", lake, sql, "--format", "csv").stdout == 'a,b,c,d\n"",,"x,""y",\\x\n'
    alone = binlake("query", lake, "SELECT NULL AS b FROM t WHERE id IN (7, 8)", "--format", "csv").stdout
    assert list(csv.reader(alone.splitlines())) == [["b"], [""], [""]]


def test_numbers_that_json_lacks_are_texts(lake: Path) -> None:
    sql = "SELECT 'nan'::DOUBLE a, '-inf'::FLOAT b, [1.5::DOUBLE, 'inf'::DOUBLE] c, 1.5::DOUBLE d FROM t WHERE id = 7"
    line = binlake("query", lake, sql, "--format", "json").stdout
    told: list[str] = []
    fields = json.loads(line, parse_constant=told.append)
    assert fields == {"a": "NaN", "b": "-Infinity", "c": [1.5, "Infinity"], "d": 1.5}
    assert told == []


def test_nested_values_are_json_in_every_form(lake: Path) -> None:
    sql = (
        "SELECT {'d': DATE '2024-02-29', 'p': 1.50, 'r': ['x'::BLOB, NULL]} AS s, interval '1 day' AS i "
        "FROM t WHERE id = 7"
    )
    held = {"d": "2024-02-29", "p": "1.50", "r": ["78", None]}
    assert json.loads(binlake("query", lake, sql, "--format", "json").stdout) == {"s": held, "i": [0, 1, 0]}
    _, cells = csv.reader(binlake("query", lake, sql, "--format", "csv").stdout.splitlines())
    assert [json.loads(cell) for cell in cells] == [held, [0, 1, 0]]


@pytest.mark.parametrize(
    "value",
    [
        "'12:00:00+02'::TIMETZ",
        "1::UHUGEINT",
        "'101'::BIT",
        "['12:00:00+02'::TIMETZ]",
        "{'a': {'b': '1'::BIT}}",
        "1::VARINT",
    ],
)
def test_types_that_would_come_out_as_others_are_refused(lake: Path, value: str) -> None:
    """A time lost its zone, a number beyond 128 bits was -1, and bits were bytes of DuckDB's own."""
    with pytest.raises(ConfigError, match=r"column v has the type .* cast it to VARCHAR"):
        binlake("query", lake, f"SELECT {value} AS v FROM t", "--format", "json")
    kept = binlake("query", lake, f"SELECT ({value})::VARCHAR AS v FROM t WHERE id = 7", "--format", "csv")
    assert kept.exit_code == 0
    both = binlake(
        "query", lake, "SELECT sum(170141183460469231731687303715884105727) AS v FROM t WHERE id = 7", "--json"
    )
    assert json.loads(both.stdout) == {"v": "170141183460469231731687303715884105727"}


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_a_year_after_9999_is_refused_in_words(lake: Path, form: str) -> None:
    with pytest.raises(ConfigError, match=r"date32.* cannot be printed: .*column=far"):
        binlake("query", lake, "SELECT DATE '2024-01-01' + 9000000 AS far FROM t", "--format", form)


def test_columns_of_one_name_are_all_in_an_object(lake: Path) -> None:
    sql = "SELECT id, id, 3 AS id_1, 4 AS id FROM t WHERE id = 7"
    done = binlake("query", lake, sql, "--format", "json")
    assert json.loads(done.stdout) == {"id": 7, "id_1": 7, "id_1_1": 3, "id_2": 4}


def test_what_was_read_of_base_files(lake: Path) -> None:
    sql = "SELECT id FROM t WHERE id = 14 AND part = 'p2'"
    done = binlake("query", lake, sql, "--format", "json", "--counts")
    counts = json.loads(done.stderr)
    assert (counts["files"], counts["row_groups"], counts["bytes"] > 0) == (1, 1, True)
    told = binlake("query", lake, sql, "--counts").stderr
    assert told.startswith("read of 1 base files: row groups 1 of 1, bytes ")


def test_times(lake: Path) -> None:
    first, _, last = sorted(file.name for file in (lake / ".hoodie/timeline").glob("*_*"))
    sql = "SELECT count(*) AS c, max(n) AS n FROM t WHERE id = 7"

    def answer(*options: str) -> dict[str, int]:
        return dict(json.loads(binlake("query", lake, sql, "--format", "json", *options).stdout))

    assert answer() == {"c": 1, "n": 14}
    assert answer("--as-of", first[:17]) == {"c": 1, "n": 7}
    assert answer("--read-optimized") == {"c": 1, "n": 7}
    assert answer("--after", first[18:35]) == {"c": 1, "n": 14}
    assert answer("--after", "earliest", "--until", first[18:35]) == {"c": 1, "n": 7}
    assert answer("--after", last[18:35]) == {"c": 0, "n": None}
    assert answer("--no-index") == {"c": 1, "n": 14}
    for wrong in (["--until", "2024-01-01"], ["--as-of", "2024-01-01", "--read-optimized"]):
        with pytest.raises(ConfigError, match="cannot be combined"):
            binlake("query", lake, sql, *wrong)
    with pytest.raises(ConfigError, match="the window is empty"):
        binlake("query", lake, sql, "--after", last[18:35], "--until", first[18:35])


def test_several_tables_each_at_its_moment(lake: Path) -> None:
    first = sorted(file.name for file in (lake / ".hoodie/timeline").glob("*_*"))[0][:17]
    sql = "SELECT t.n, o.n AS old FROM t JOIN o USING (id) WHERE t.id = 7"
    given = ("--table", f"o={lake}", "--as-of", f"o={first}")
    done = binlake("query", lake, sql, *given, "--format", "json", "--memory", "200MB")
    assert json.loads(done.stdout) == {"n": 14, "old": 7}
    lines = binlake("explain", sql, "--table", f"t={lake}", *given).stdout.splitlines()
    assert [line for line in lines if line.startswith("t: ")] == ["t: snapshot", f"t: as of {first}"]
    assert lines[-1] == "bucket by bucket: 1 pairs (t: 4 buckets; o: 4 buckets)"
    other = binlake("explain", "SELECT t.n FROM t JOIN o ON o.id = t.n", "--table", f"t={lake}", *given)
    assert other.stdout.splitlines()[-1] == "not bucket by bucket: o is not joined by the bucket keys: its own is id"
    for way in ("--by-bucket", "--at-once"):
        done = binlake("query", lake, sql, *given, way, "--format", "json", "--counts")
        assert json.loads(done.stdout) == {"n": 14, "old": 7}
        assert json.loads(done.stderr)["files"] == 1
    for wrong, match in (
        (["query", sql, "--table", f"t={lake}"], "not given: o"),
        (["query", lake, sql, *given, "--as-of", "x=2024-01-01"], "does not name: x"),
        (["query", lake, sql, "--table", "o"], "does not name a table"),
        (["query", lake, sql, *given, "--memory", "much"], "not an amount of memory"),
        (["query", lake, sql, *given, "--as-of", f"o={first}"], "given twice"),
        (["query", lake, lake, sql], "more words"),
    ):
        with pytest.raises(ConfigError, match=match):
            binlake(*wrong)


def test_explain_prints_what_each_step_left(lake: Path) -> None:
    done = binlake("explain", lake, "SELECT name FROM t WHERE part = 'p1' AND id = 7 AND lower(name) = 'x'")
    lines = done.stdout.splitlines()
    assert lines[1:3] == [
        "  where (part = 'p1' and id = 7 and [LOWER(name) = 'x'])",
        "  columns id, part, name",
    ]
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if "│" in line]
    assert [row[:4] for row in cells] == [
        ["table", "3", "12", "13"],
        ["partition", "1", "4", "5"],
        ["bucket", "", "1", "2"],
        ["column stats", "", "1", "2"],
        ["key range", "", "1", "2"],
        ["bloom filters", "", "1", "2"],
    ]
    assert cells[2][4] == "record keys: 1, in 1 of 4 buckets"
    assert "from the metadata table" in cells[0][4]
    assert lines[-2].startswith("to read: file slices 1, files 2, bytes ")
    assert lines[-1].startswith("inside base files: row groups 1 of 1, bytes ")
    assert lines[-1].endswith("; log files of 1 of them may need more")
    assert "warning" not in done.stdout


def test_a_damaged_index_is_told_and_changes_nothing(lake: Path) -> None:
    (stats,) = [file for file in (lake / ".hoodie/metadata/column_stats").glob(".*.log.*") if file.stat().st_size][:1]
    data = stats.read_bytes()
    stats.write_bytes(data[:-5])
    try:
        done = binlake("query", lake, "SELECT id FROM t WHERE n = 14", "--format", "json")
        plan = binlake("explain", lake, "SELECT id FROM t WHERE n = 14")
    finally:
        stats.write_bytes(data)
    assert [json.loads(line) for line in done.stdout.splitlines()] == [{"id": 7}, {"id": 14}]
    assert "warning: column stats: not used, the index cannot be read" in done.stderr
    assert "warning: column stats: not used" in plan.stdout


def run(*arguments: str | Path) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "binlake.cli", "query", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.full
def test_the_command_itself(lake: Path, tmp_path: Path) -> None:
    """Exit codes, and nothing but the answer on the outputs."""
    assert run(lake, "SELECT count(*) c FROM t", "--format", "csv") == (0, "c\n60\n", "")
    code, _, told = run(lake, "SELECT count( FROM t")
    assert (code, "error: the query cannot be parsed" in told) == (2, True)
    code, _, told = run(tmp_path / "none", "SELECT 1 FROM t")
    assert (code, "no such directory" in told) == (2, True)
