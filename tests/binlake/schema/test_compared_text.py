"""Which expressions depend on the collation of a column that they read: a server says that the others do not."""

from __future__ import annotations

import pytest

from binlake.schema.rules.compared_text import compares_text
from embedded.mariadb import EmbeddedMariaDB

#: Those of one character set must agree on what is listed.
COLLATIONS = {
    "utf8mb4": (
        "utf8mb4_bin",
        "utf8mb4_general_ci",
        "utf8mb4_nopad_bin",
        "utf8mb4_uca1400_ai_ci",
        "utf8mb4_czech_ci",
    ),
    "latin1": ("latin1_swedish_ci", "latin1_bin", "latin1_general_cs", "latin1_nopad_bin", "latin1_german2_ci"),
}
VALUES = ("", "a", "A", "á", "a ", " a", "x,a", "Xa", "12", "-3.5e", "ß", "ss", "O''B", "iI")
KEEPS = (
    "CONCAT(a, '-', 1)",
    "CONCAT_WS(',', a, n)",
    "LENGTH(a)",
    "CHAR_LENGTH(a)",
    "OCTET_LENGTH(a)",
    "BIT_LENGTH(a)",
    "HEX(a)",
    "MD5(a)",
    "SHA1(a)",
    "SHA2(a, 256)",
    "CRC32(a)",
    "ASCII(a)",
    "ORD(a)",
    "LEFT(a, 1)",
    "RIGHT(a, 2)",
    "SUBSTRING(a, 2, 1)",
    "MID(a, 1, 2)",
    "LPAD(a, 5, 'x')",
    "RPAD(a, 5, 'x')",
    "TRIM(a)",
    "RTRIM(a)",
    "TRIM(LEADING 'x' FROM a)",
    "TRIM(BOTH 'A' FROM a)",
    "REVERSE(a)",
    "REPEAT(a, 2)",
    "QUOTE(a)",
    "TO_BASE64(a)",
    "COALESCE(a, 'x')",
    "IFNULL(a, 'x')",
    "IF(a IS NULL, 'n', a)",
    "IF(a, 1, 2)",
    "IF(n > 3, a, CONCAT(a, n))",
    "CASE WHEN LENGTH(a) > 1 THEN a ELSE 'short' END",
    "CASE LENGTH(a) WHEN 1 THEN a END",
    "a IS NULL",
    "NOT a",
    "a AND n",
    "a + 1",
    "a * 2 - n",
    "ROUND(a)",
    "a = 12",
    "a < 5",
    "CAST(a AS SIGNED)",
    "CAST(a AS DECIMAL(10,2))",
    "CAST(a AS BINARY)",
    "BINARY a = 'a'",
    "HEX(a) = '41'",
    "LENGTH(a) BETWEEN 1 AND 2",
    "n = 3 OR LENGTH(a) IN (1, 2)",
    "GREATEST(LENGTH(a), n)",
)
COMPARES = (
    "a = 'a'",
    "a <> 'A'",
    "a < 'b'",
    "a <=> 'a'",
    "a LIKE 'A%'",
    "a IN ('a', 'b')",
    "a BETWEEN 'a' AND 'b'",
    "CONCAT(a, 'x') = 'AX'",
    "IF(a = 'a', 1, 2)",
    "CASE a WHEN 'a' THEN 1 ELSE 2 END",
    "CASE WHEN a = 'a' THEN 1 ELSE 2 END",
    "CASE 'a' WHEN a THEN 1 ELSE 2 END",
    "NULLIF(a, 'a')",
    "STRCMP(a, 'a')",
    "FIND_IN_SET('A', a)",
    "FIELD(a, 'a', 'b')",
    "LOCATE('A', a)",
    "INSTR(a, 'A')",
    "a REGEXP '^a$'",
    "GREATEST(a, 'B')",
    "LEAST(a, 'B')",
    "LENGTH(a = 'a') + (a = 'a')",
    "LENGTH(NULLIF(a, 'A'))",
    "COALESCE(a, 'x') = 'a'",
)
#: The result is the same, or was so where it was tried: they are not listed, as nothing says that it always is.
NOT_LISTED = ("UPPER(a)", "LOWER(a)", "REPLACE(a, 'A', 'z')", "SUBSTRING_INDEX(a, 'A', 1)", "SOUNDEX(a)")


def test_what_is_listed_compares_no_text() -> None:
    assert [one for one in KEEPS if compares_text(one, {"a"})] == []
    assert [one for one in (*COMPARES, *NOT_LISTED) if not compares_text(one, {"a"})] == []


@pytest.mark.parametrize(
    ("expression", "compares"),
    [
        ("`a` COLLATE utf8mb4_bin = 'a'", False),
        ("`a` = _utf8mb4 'a' COLLATE utf8mb4_bin", True),
        ("b = 'a'", False),
        ("b = 'a' AND LENGTH(a)", False),
        ("\"a\" = 'x'", True),
        ("CONCAT(b, '\"')", False),
        ("`A` = 'x'", True),
        ("replace(b, 'a', 'x')", False),
        ("no expression (", True),
    ],
)
def test_columns_and_quotes(expression: str, compares: bool) -> None:
    assert compares_text(expression, {"a"}) is compares


@pytest.mark.database
def test_a_server_gives_the_same_with_each_collation(server: EmbeddedMariaDB) -> None:
    rows = ", ".join(f"({number}, '{value}', {number % 5})" for number, value in enumerate(VALUES, 1))
    statements = ["SET NAMES utf8mb4", "SET sql_mode = ''"]
    for charset, collations in COLLATIONS.items():
        for collation in collations:
            name = f"x.c_{collation}"
            columns = f"i INT PRIMARY KEY, a VARCHAR(20) CHARACTER SET {charset} COLLATE {collation}, n INT"
            statements += [f"CREATE TABLE {name} ({columns})", f"INSERT INTO {name} VALUES {rows}, (99, NULL, 1)"]
    server.execute("; ".join(statements))

    tried = (*KEEPS, *COMPARES)
    asked = ", ".join(f"COALESCE(HEX({expression}), 'null')" for expression in tried)
    differ: set[str] = set()
    for collations in COLLATIONS.values():
        answers = [
            "\t".join(server.execute(f"SET NAMES utf8mb4; SELECT {asked} FROM x.c_{one} ORDER BY i")).split("\t")
            for one in collations
        ]
        assert {len(cells) for cells in answers} == {len(tried) * (len(VALUES) + 1)}
        several = (number for number, results in enumerate(zip(*answers, strict=True)) if len(set(results)) > 1)
        differ |= {tried[number % len(tried)] for number in several}
    assert differ == set(COMPARES)
