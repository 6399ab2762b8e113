from pathlib import Path

import pytest
import yaml

from lakemetastore.settings.document import SettingsProblem, format_path, parse

HERE = Path()


def test_paths_are_written_as_people_write_them() -> None:
    assert format_path(("tables", "overrides", 1, "buckets")) == "tables.overrides[1].buckets"
    assert format_path(("source", "schemas", "shop.orders", "key")) == 'source.schemas["shop.orders"].key'
    assert format_path(()) == "(whole file)"


def test_references_are_resolved_inside_any_text(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("s3cret\n")
    text = "a: {b: 'x-${env:ONE}-${file:password}-y', c: ['${file:%s}']}\nd: $${env:ONE}" % (tmp_path / "password")
    document = parse(text, tmp_path, {"ONE": "1"})
    assert document.values == {"a": {"b": "x-1-s3cret-y", "c": ["s3cret"]}, "d": "${env:ONE}"}
    assert document.problems == []
    assert document.written[("a", "b")] == "x-${env:ONE}-${file:password}-y"


def test_only_the_last_line_break_of_a_secret_file_is_dropped(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(" line 1\nline 2 \n\n")
    assert parse("k: ${file:key}", tmp_path, {}).values == {"k": " line 1\nline 2 \n"}


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("${env:NOT_THERE}", "environment variable NOT_THERE is not set"),
        ("${file:/not/there}", "file /not/there cannot be read: No such file or directory"),
        ("${vault:x}", "a reference is ${env:NAME} or ${file:/path}; write $${ for a literal ${"),
        ("${x}", "a reference is ${env:NAME} or ${file:/path}; write $${ for a literal ${"),
    ],
)
def test_references_that_lead_nowhere_are_problems_with_a_line(reference: str, message: str) -> None:
    document = parse(f"a:\n  b:\n  - ok\n  - {reference}\n", HERE, {})
    assert document.problems == [SettingsProblem(("a", "b", 1), message, 4)]


def test_a_file_that_is_not_text_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    assert parse("a: ${file:binary}", tmp_path, {}).problems[0].message.endswith("is not UTF-8 text")


def test_a_key_given_twice_is_a_problem() -> None:
    document = parse("a: 1\nb: {c: 1, c: 2}\na: 3\n", HERE, {})
    assert document.problems == [
        SettingsProblem(("b", "c"), "is given twice", 2),
        SettingsProblem(("a",), "is given twice", 3),
    ]


def test_keys_are_texts_as_they_are_written() -> None:
    """Columns may be called no, on, 1 or 2024-01-01; YAML has other values for these words."""
    document = parse("mask: {no: hash, on: hash, 1: hash, 012: hash, 2024-01-01: hash, ~: hash, 'yes': hash}", HERE, {})
    assert list(document.values["mask"]) == ["no", "on", "1", "012", "2024-01-01", "~", "yes"]
    assert document.problems == []


@pytest.mark.parametrize("number", ["012", "-012", "1:30", "1:30.5", "190:20:30"])
def test_a_number_that_looks_like_another_is_a_problem(number: str) -> None:
    document = parse(f"a:\n  b: {number}\n", HERE, {})
    assert [(problem.path, problem.line) for problem in document.problems] == [(("a", "b"), 2)]
    assert "YAML reads it as another number" in document.problems[0].message
    assert parse(f"a: '{number}'", HERE, {}).problems == []


@pytest.mark.parametrize("number", ["0", "10", "1_000", "0x1f", "0.5", "1e3", "-7", "10.25", "08:15"])
def test_other_numbers_are_none(number: str) -> None:
    assert parse(f"a: {number}", HERE, {}).problems == []


def test_merge_keys_may_be_overridden() -> None:
    document = parse("base: &b {x: 1, y: 2}\nc:\n  <<: *b\n  y: 3\n", HERE, {})
    assert document.problems == []
    assert document.values["c"] == {"x": 1, "y": 3}


def test_lines_of_missing_values_are_those_of_what_is_around() -> None:
    document = parse("a: 1\nb:\n  c: 1\n", HERE, {})
    assert document.line_of(("b", "d", "e")) == 2
    assert document.line_of(("b", "c")) == 3


def test_an_empty_text_has_no_values() -> None:
    assert parse("# nothing\n", HERE, {}).values is None


def test_what_is_not_yaml_raises() -> None:
    with pytest.raises(yaml.YAMLError):
        parse("a: [1", HERE, {})
