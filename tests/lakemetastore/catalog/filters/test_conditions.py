"""Conditions on partition keys. The expected hits and errors are those of a Hive Metastore 3.1.3 with direct SQL, but
for the tests that say otherwise."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lakemetastore.catalog.filters.evaluate import matching
from lakemetastore.catalog.filters.syntax import parse
from lakemetastore.catalog.partitions import Partitions
from lakemetastore.errors import MetaError
from lakemetastore.model import Column, Partition, Storage

NULL = "__HIVE_DEFAULT_PARTITION__"
DAYS = ["1969-12-31", "2020-01-01", "2020-02-29", NULL]
TEXTS = ["2020-01-01", "5", "A", NULL, "a%b", "a.b", "a_b", "d0001", "d0002", "é"]


def hits(condition: str, kind: str, values: Sequence[str]) -> list[str]:
    keys = (Column("k", kind),)
    partitions = Partitions(keys).changed((), {f"k={value}": Partition((value,), Storage()) for value in values})
    found = matching(parse(condition), partitions.columns, len(partitions))
    return [partition.values[0] for partition in partitions.select(found)]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("", TEXTS),
        ("k = 'A'", ["A"]),
        ('K = "A"', ["A"]),
        ("'A' = k", ["A"]),
        ("k = 'a'", []),
        ("k != 'A' and k <> '5'", [text for text in TEXTS if text not in ("A", "5")]),
        ("k > 'd0001'", ["d0002", "é"]),
        ("'d0001' < k", ["d0002", "é"]),
        ("k >= 'd' and k <= 'd0001' or k = '5'", ["5", "d0001"]),
        ("k = '5' or k >= 'd' and k <= 'd0001'", ["5", "d0001"]),
        ("(k = '5' or k >= 'd') and k <= 'd0001'", ["5", "d0001"]),
        ("k between 'a%b' and 'a.b'", ["a%b", "a.b"]),
        ("k not between '5' and 'd0002'", ["2020-01-01", "é"]),
        ("(k) in ('A', 'no', \"5\")", ["5", "A"]),
        ("(k) NOT in ('A', '5', 'é')", [text for text in TEXTS if text not in ("A", "5", "é")]),
        ("(struct(k)) in (const struct('A'), const struct('5'))", ["5", "A"]),
        (f"k = '{NULL}'", [NULL]),
        ("k like 'd000.*'", ["d0001", "d0002"]),
        ("k like 'a.b'", ["a%b", "a.b", "a_b"]),
        ("k like 'a\\.b'", ["a.b"]),
        ("k like 'a%.*'", ["a%b"]),
        ("k like '(?i)D.*1'", ["d0001"]),
        ("k like '^d' or k like 'd000[12]'", []),
        ("k like '.*01' and k like 'd.*'", ["d0001"]),
        ("k = 2020-01-01", ["2020-01-01"]),
        ("k LIKE '2020.*' and k = 2020-01-01", ["2020-01-01"]),
    ],
)
def test_text_keys(condition: str, expected: list[str]) -> None:
    assert hits(condition, "string", TEXTS) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("k like 'd000%'", ["d0001", "d0002"]),
        ("k like '%b'", ["a%b", "a.b", "a_b"]),
        ("k like 'a.%'", ["a.b"]),
        ("k like 'd000_'", ["d0001", "d0002"]),
        ("k like 'a\\%b'", ["a%b"]),
        ("k in ('A', '5')", ["5", "A"]),
        ("k not in ('A') and k <= 'A'", ["2020-01-01", "5"]),
    ],
)
def test_the_dialect_of_later_metastores(condition: str, expected: list[str]) -> None:
    assert hits(condition, "string", TEXTS) == expected


@pytest.mark.parametrize("kind", ["tinyint", "smallint", "int", "bigint"])
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("k = 7", ["007"]),
        ("k > 5", ["007", "10"]),
        ("5 > k", ["-3", "1"]),
        ("k != 5", ["-3", "007", "1", "10"]),
        ("k between -3 and 1", ["-3", "1"]),
        ("(k) in (1, 10, 11)", ["1", "10"]),
        ("(k) not in (1, 10)", ["-3", "007", "5"]),
    ],
)
def test_integer_keys_compare_as_numbers_and_leave_out_what_is_none(
    condition: str, expected: list[str], kind: str
) -> None:
    assert hits(condition, kind, ["-3", "007", "1", "10", "5", NULL, "x"]) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("k = '2020-02-29'", ["2020-02-29"]),
        ("k = 2020-02-29", ["2020-02-29"]),
        ("k > '2019-1-5'", ["2020-01-01", "2020-02-29"]),
        ("k <> 2020-02-29", ["1969-12-31", "2020-01-01"]),
        ("(k) in ('1969-12-31', '2020-01-01')", ["1969-12-31", "2020-01-01"]),
    ],
)
def test_date_keys(condition: str, expected: list[str]) -> None:
    assert hits(condition, "date", DAYS) == expected


@pytest.mark.parametrize(
    ("condition", "kind", "text"),
    [
        ("no = 'x'", "string", "Specified key <no> is not a partitioning key for the table"),
        ("k = 5", "string", "Filtering is supported only on partition keys of type string"),
        ("k = '5'", "int", "Filtering is supported only on partition keys of type string"),
        ("k like '5.*'", "int", "Filtering is supported only on partition keys of type string"),
        ("k = 'x'", "date", "Filtering is supported only on partition keys of type string"),
        ("k = 'x'", "varchar(10)", "Filtering is supported only on partition keys of type string"),
        ("'x' like k", "string", "Value should be on the RHS for LIKE operator : Key <k>"),
        ("k = 5 and k = ''", "string", "Filtering is supported only on partition keys of type string"),
        ("k = '' and k = 5", "string", "Partition spec is incorrect. {k=}"),
        ("k = 99999999999999999999", "bigint", 'java.lang.NumberFormatException: For input string: "9999999999999999'),
    ],
)
def test_what_is_refused(condition: str, kind: str, text: str) -> None:
    with pytest.raises(MetaError) as refused:
        hits(condition, kind, ["1"])
    assert refused.value.what.startswith(text)


@pytest.mark.parametrize(
    "condition",
    [
        "k",
        "k =",
        "= 'x'",
        "k = 'x",
        "k = 'x' and",
        "(k = 'x'",
        "not k = 'x'",
        "k not = 'x'",
        "k == 'x'",
        "k = 1.5",
        "k in ()",
        "(k) in ('x', 5)",
        "k between 'a' and 5",
        "k = 2020-13-01",
        "(struct(k)) in (const struct('x', 'y'))",
        "k = 'a' k = 'b'",
        "k = 'it''s'",
        "k = 'a')",
        "k is null",
    ],
)
def test_what_is_no_condition_is_refused_whole(condition: str) -> None:
    with pytest.raises(MetaError, match="Error parsing partition filter"):
        hits(condition, "string", ["x"])


def test_a_pattern_stands_beside_comparisons_of_numbers_and_dates() -> None:
    """The Metastore refuses this; Spark sends it for tables with keys of several types."""
    keys = (Column("s", "string"), Column("n", "int"), Column("d", "date"))
    values = [("d1", "1", "2020-01-01"), ("d1", "2", "2020-01-02"), ("x", "1", "2020-01-01")]
    partitions = Partitions(keys).changed((), {"/".join(v): Partition(v, Storage()) for v in values})
    for condition in ("s like 'd.*' and n in (1, 3)", "d = 2020-01-01 and (n) in (1) and s like 'd%'"):
        found = matching(parse(condition), partitions.columns, len(partitions))
        assert [p.values for p in partitions.select(found)] == values[:1]


def test_a_long_list_and_many_alternatives() -> None:
    values = [f"v{i:05d}" for i in range(20_000)]
    listed = ", ".join(f"'{value}'" for value in values[::2])
    assert hits(f"(k) in ({listed})", "string", values) == values[::2]
    assert hits(" or ".join(f"k = '{value}'" for value in values[:3000]), "string", values) == values[:3000]


@pytest.mark.full
def test_deep_parentheses_are_refused_and_end_no_process() -> None:
    with pytest.raises(MetaError):
        hits("(" * 100_000 + "k = 'x'" + ")" * 100_000, "string", ["x"])
