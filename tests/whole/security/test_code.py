"""Hostile schemas, DDL, settings and queries run no code, read no file and take no time without end."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from binlake.cli.app import app
from binlake.decode.changes import SourceTable
from binlake.decode.ddl.statements import parse_ddl
from binlake.decode.formats.avro_schema import writer_schema
from binlake.decode.types.mysql_types import parse_type
from binlake.rows.upsert.computed import _connection, compute
from binlake.settings import Settings
from binlake.settings.sql_expression import check_expression
from hudilake.errors import ConfigError, LakeError, UnsupportedError
from tests.binlake.cli.fed_lake import FedLake

T = SourceTable("shop", "t")
MARK = "the-content-of-a-file"
#: No call may take longer, on a busy machine; a quadratic or exponential one would take hours.
SECONDS = 60


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    file = tmp_path / "secret.csv"
    file.write_text(f"{MARK}\n{MARK}\n")
    return file


# -- SQL --------------------------------------------------------------------------------------------------------------

EXPRESSIONS = [
    "getenv('HOME')",
    "read_text('{file}')",
    "read_csv('{file}')",
    "(select content from read_text('{file}'))",
    "exists(from '{file}')",
    "a) from read_text('{file}') --",
    "a) from __rows; attach '{file}.db' as x; --",
    "a; copy (select 1) to '{file}.out'",
    "load_extension('x')",
    "system('touch {file}.out')",
    "query('select 1')",
    "a::INET",
    "current_setting('temp_directory')",
    "unnest([1, 2])",
    "generate_subscripts([1, 2], 1)",
    "repeat('x', 100000000000)",
    "range(100000000000)",
]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_a_computed_column_sees_its_row_and_nothing_else(text: str, secret_file: Path) -> None:
    expression = text.replace("{file}", str(secret_file))
    rows = pa.table({"a": ["1", "2"]})
    if check_expression(expression) is None:
        try:
            done = compute(rows, [("c", expression)], T)
        except UnsupportedError as error:
            told = str(error)
        else:
            assert (len(done.columns), done.bad) == (2, (0, 1)), "each row failed, and goes to the quarantine"
            told = done.why
        assert MARK not in told
    assert sorted(p.name for p in secret_file.parent.iterdir()) == [secret_file.name]


@pytest.mark.parametrize("text", ["select * from read_text('{file}')", "attach '{file}.db'", "load httpfs"])
def test_a_computed_column_has_no_access_outside(text: str, secret_file: Path) -> None:
    """The database that computes, asked past the check of expressions."""
    with pytest.raises(duckdb.Error):
        _connection().cursor().execute(text.replace("{file}", str(secret_file)))


def test_control_an_ordinary_expression_is_computed() -> None:
    assert check_expression("upper(a) || 'x' -- with a comment") is None
    assert compute(pa.table({"a": ["b"]}), [("c", "upper(a) -- x")], T).columns.to_pylist() == [{"c": "B"}]


QUERIES = [
    "select * from t, read_text('{file}')",
    "select * from t, read_csv('{file}')",
    "select * from t, '{file}'",
    "select * from t, glob('/*')",
    "select * from t where getenv('HOME') <> ''",
    "copy (select * from t) to '{file}.out'",
    "attach '{file}.db' as x",
    "select 1 from t; attach '{file}.db' as x",
    "install httpfs",
    "set enable_external_access = true",
    "select a::INET from t",
    "export database '{file}.out'",
    "pragma database_list",
]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> FedLake:
    made = FedLake(tmp_path_factory.mktemp("lake"))
    made.feed(1)
    return made


@pytest.mark.parametrize("text", QUERIES)
def test_a_query_reads_its_table_and_nothing_else(lake: FedLake, text: str, secret_file: Path) -> None:
    query = text.replace("{file}", str(secret_file))
    done = asked(lake, query)
    assert isinstance(done.exception, (ConfigError, SystemExit)), done.output
    assert done.exit_code != 0
    assert MARK not in done.output
    assert sorted(p.name for p in secret_file.parent.iterdir()) == [secret_file.name]


def test_control_an_ordinary_query_is_answered(lake: FedLake) -> None:
    assert asked(lake, "select max(owner) from t").exit_code == 0


def asked(lake: FedLake, query: str) -> Result:
    return CliRunner().invoke(app, ["query", "shop.a", query, "--conf", str(lake.conf)])


# -- settings ---------------------------------------------------------------------------------------------------------

_LETTERS = "abcdefghi"
BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{c}: &{c} [{','.join(['*' + p] * 9)}]\n" for p, c in pairwise(_LETTERS)
)
DOCUMENTS = {
    "aliases of aliases": BOMB,
    "a list in itself": "a: &a [*a]",
    "a mapping in itself": "a: &a {b: *a}",
    "merged into itself": "a: &a {<<: *a}",
    "nested 100,000 deep": "[" * 100_000,
    "a call": "name: !!python/object/apply:os.system ['touch {file}.out']",
    "an object": "name: !!python/object:subprocess.Popen {args: ['touch', '{file}.out']}",
    "a module": "name: !!python/module:antigravity",
    "no UTF-8 text": "\x00",
}


@pytest.mark.first(4)
@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_settings_file_runs_nothing_and_fills_no_memory(name: str, secret_file: Path) -> None:
    with quick(), pytest.raises(ConfigError):
        Settings.parse(DOCUMENTS[name].replace("{file}", str(secret_file)))
    assert sorted(p.name for p in secret_file.parent.iterdir()) == [secret_file.name]


def test_a_broken_settings_file_is_not_quoted() -> None:
    with pytest.raises(ConfigError, match=r"line 3") as error:
        Settings.parse('name: s\nkafka: {password: "hunter2-and-more, x: [\n')
    assert "hunter2" not in str(error.value)
    assert error.value.__cause__ is None


# -- schemas and statements -------------------------------------------------------------------------------------------

LONG = 50_000
STATEMENTS: dict[str, str] = {
    "escaped quotes without an end": "ALTER TABLE t ADD c INT DEFAULT '" + "\\'" * LONG,
    "comments without an end": "/*" * LONG,
    "back quotes": "`" * (LONG + 1),
    "brackets": "ALTER TABLE t ADD (" + "(" * LONG,
    "clauses": "ALTER TABLE t " + "ADD c INT," * (LONG // 10),
    "digits": "1" * LONG + "x",
    "renames": "RENAME TABLE " + "a TO b," * (LONG // 10),
    "words before FOR": "SET STATEMENT " + "a " * LONG,
    "attributes": "ALTER TABLE t ADD c INT " + "a " * LONG,
    "members": "CREATE TABLE t (c ENUM(" + "'a'," * (LONG // 4) + "'b'))",
    "conditional comments": "/*!" * LONG,
}


class quick:
    """Fails if its body takes more than SECONDS of the processor."""

    def __enter__(self) -> None:
        self._began = time.process_time()

    def __exit__(self, *_: object) -> None:
        assert time.process_time() - self._began < SECONDS


@pytest.mark.first(7)
@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_is_parsed_in_bounded_time(name: str) -> None:
    with quick():
        parse_ddl(STATEMENTS[name], "shop")


@given(st.text(st.sampled_from("ALTERTABLEADDCOLUMN `'\"\\/*!-#(),;.=0x1\n") | st.characters(), max_size=80))
def test_no_statement_does_more_than_be_parsed(text: str) -> None:
    for statement in (text, f"ALTER TABLE t ADD {text}", f"CREATE TABLE t ({text})", f"RENAME TABLE {text}"):
        parse_ddl(statement, "shop")


@given(st.text(max_size=60))
def test_no_type_text_does_more_than_be_parsed(text: str) -> None:
    for kind in (text, f"decimal({text})", f"enum({text})", f"varchar(5) {text}"):
        try:
            parse_type(kind)
        except LakeError:
            continue


NODE = '{"type":"record","name":"N","fields":[{"name":"n","type":["null","N"]}]}'
NULLS = '{"type":"record","name":"E","fields":[{"name":"a","type":"null"}]}'
SCHEMAS: dict[str, str] = {
    "an array of nulls": '{"type":"array","items":"null"}',
    "an array of empty records": '{"type":"array","items":{"type":"record","name":"E","fields":[]}}',
    "an array of records of nulls": f'{{"type":"array","items":{NULLS}}}',
    "an array of nothing fixed": '{"type":"array","items":{"type":"fixed","name":"F","size":0}}',
    "a record in itself": NODE,
    "nested too deep": '{"type":"array","items":' * 2_000 + '"int"' + "}" * 2_000,
    "a list": "[]",
    "a number": "1",
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_hostile_avro_schema_is_refused(name: str) -> None:
    schema = f'{{"type":"record","name":"R","fields":[{{"name":"f","type":{SCHEMAS[name]}}}]}}'
    with quick(), pytest.raises(ValueError, match="Error"):
        writer_schema(schema)


def test_control_an_ordinary_array_is_taken() -> None:
    schema = '{"type":"record","name":"R","fields":[{"name":"f","type":{"type":"array","items":["null","string"]}}]}'
    assert writer_schema(schema).connect.fields[0].type == "array"
