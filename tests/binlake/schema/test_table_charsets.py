"""The character sets of columns that a statement defines and that name none."""

from __future__ import annotations

import pytest

from binlake.decode.changes import SourceTable
from binlake.decode.ddl.clauses import ModifyColumn
from binlake.decode.schemas.schemas import SchemaVersion
from binlake.decode.types.mysql_types import UNDETERMINED_CHARSET, charset_of, parse_type
from binlake.schema.rules.conversion.session import Session
from binlake.schema.rules.conversion.undetermined import why_undetermined
from binlake.schema.rules.ddl_effects import DdlEvent
from binlake.schema.rules.ddl_log import DdlLog
from binlake.settings.schema_changes import SchemaChangeSettings

TABLE = SourceTable("d", "t")
MODIFIED = "ALTER TABLE t MODIFY a VARCHAR(30)"


def charsets(*statements: str, charset: str = "", defined: str | None = None) -> list[str | None]:
    """Of the columns that statements modify. ``charset``: as the last record tells it; ``defined``: as the definition
    after it does."""
    log = DdlLog()
    for order, text in enumerate(statements, 1):
        said = charset if order == len(statements) else ""
        log.add(DdlEvent(order << 33, 1, f"1:{order}", text, "d", exact=True, charset=said))
    kind = parse_type(f"varchar(30) character set {defined}") if defined else parse_type("varchar(30)")
    versions = [SchemaVersion(len(statements) << 33, (("a", kind),))]
    history = log.history(lambda source: SchemaChangeSettings(), [TABLE], versions_of=lambda source: versions)
    clauses = [clause for effects in history.effects.values() for one in effects for clause in one.clauses]
    return [charset_of(clause.column.type_text) for clause in clauses if isinstance(clause, ModifyColumn)]


def test_a_record_tells_it() -> None:
    assert charsets(MODIFIED, charset="latin1", defined="utf8mb4") == ["latin1"]


def test_the_definition_after_the_statement_tells_it() -> None:
    assert charsets(MODIFIED, defined="latin1") == ["latin1"]
    assert charsets(MODIFIED) == [None]


@pytest.mark.parametrize(
    "before",
    [
        ["CREATE TABLE t (id INT) COLLATE latin1_bin"],
        ["ALTER TABLE t DEFAULT CHARSET latin1"],
        ["CREATE TABLE m (a INT) CHARSET latin1", "CREATE TABLE u LIKE m", "DROP TABLE m", "RENAME TABLE u TO t"],
        ["ALTER TABLE t CONVERT TO CHARACTER SET latin1"],
    ],
)
def test_statements_before_tell_it(before: list[str]) -> None:
    assert charsets(*before, MODIFIED, defined="utf8mb4") == ["latin1"]
    assert charsets(*before, "ALTER TABLE t CHARACTER SET DEFAULT", MODIFIED, defined="utf8mb4") == ["utf8mb4"]


def test_the_statement_itself_tells_it() -> None:
    assert charsets(f"{MODIFIED}, CHARACTER SET latin1", defined="utf8mb4") == ["latin1"]
    assert charsets(f"{MODIFIED} CHARACTER SET latin2, CHARACTER SET latin1", defined="utf8mb4") == ["latin2"]


@pytest.mark.parametrize(
    ("old", "new", "known"),
    [
        ("varchar(9) character set big5", "varchar(20) character set utf8mb4", True),
        ("varchar(9) character set big5", "varchar(5) character set big5", True),
        ("text character set big5", "tinytext character set big5", False),
        ("varchar(9) character set big5", "varbinary(20)", False),
        ("varchar(9) character set utf8mb4", "varchar(20) character set big5", False),
        ("int", "varchar(20) character set big5", True),
        ("varbinary(9)", f"varchar(20) character set {UNDETERMINED_CHARSET}", False),
        ("enum('a') character set big5", "enum('a','b') character set big5", True),
    ],
)
def test_a_character_set_that_is_not_known_matters_where_it_decides(old: str, new: str, known: bool) -> None:
    assert (why_undetermined(parse_type(old), parse_type(new), Session()) is None) is known
