"""The reader of test files: statements, delimiters, comments, blocks, and text that is not for the server."""

from __future__ import annotations

import pytest

from tests.programs.proofs.suite.language import Block, Command, Sql, read


def test_statements_end_at_the_delimiter_outside_of_quotes() -> None:
    text = """
# a comment; not a statement
-- a comment too
INSERT INTO t VALUES ('a;b', "c\\";d", `e;f`);
delimiter //;
CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END//
delimiter ;//
SELECT 3;
"""
    assert read(text) == (
        Sql("""INSERT INTO t VALUES ('a;b', "c\\";d", `e;f`)"""),
        Sql("CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END"),
        Sql("SELECT 3"),
    )


def test_blocks_nest_and_commands_are_of_one_line_or_of_several() -> None:
    text = """
let $n= 2;
while ($n)
{
  --eval INSERT INTO t VALUES ($n)
  if (`SELECT COUNT(*) > 1 FROM t WHERE a = ')'`) {
    dec $n;
  }
}
"""
    inner = Block("if", "`SELECT COUNT(*) > 1 FROM t WHERE a = ')'`", (Command("dec", "$n"),))
    assert read(text) == (
        Command("let", "$n= 2"),
        Block("while", "$n", (Command("eval", "INSERT INTO t VALUES ($n)"), inner)),
    )


def test_text_for_files_and_for_perl_is_not_read() -> None:
    files = "--write_file x.txt\nINSERT;\nEOF\n--perl END\nprint;\nEND\n"
    text = f"{files}--disable_parsing\nDROP;\n--enable_parsing\nSELECT 1;"
    names = [step.name if isinstance(step, Command) else step for step in read(text)]
    assert names == ["write_file", "perl", "disable_parsing", Sql("SELECT 1")]


def test_a_block_that_does_not_end_is_an_error() -> None:
    with pytest.raises(ValueError, match="does not end"):
        read("if (1) { SELECT 1;")
