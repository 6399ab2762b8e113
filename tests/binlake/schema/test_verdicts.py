"""Verdicts where a clause meets the key, the partition, or columns that the settings keep out of the lake."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from binlake.decode.changes import SourceTable
from binlake.decode.ddl.statements import parse_ddl
from binlake.decode.types.mysql_types import parse_type
from binlake.schema.rules.ddl_effects import DdlEvent, Effect
from binlake.schema.rules.ddl_log import DdlLog
from binlake.schema.rules.generated_columns import GeneratedHistory
from binlake.schema.rules.judged import KEY_OF_TABLE, KeyChange, TableSchemaState
from binlake.schema.rules.steps import Convert
from binlake.schema.rules.table_ddl import judge_table
from binlake.schema.rules.verdicts import judge_clauses
from binlake.settings import TablesSettings
from hudilake.format.definition.merging import Merging

SCHEMA = pa.schema(
    [("id", pa.decimal128(9, 2)), ("no", pa.int32()), ("name", pa.string()), ("day", pa.date32()), ("f", pa.float32())]
)

#: The source's types, as far as others with the same lake type convert otherwise.
TYPES = {"no": parse_type("int"), "name": parse_type("varchar(60)"), "f": parse_type("float")}


def state(key: tuple[str, ...] = ("no",), **rules: Any) -> TableSchemaState:  # noqa: ANN401 - any YAML value
    tables = TablesSettings.model_validate({"defaults": rules})
    rules_of = tables.rules(SourceTable("db", "t"))
    made = GeneratedHistory(lambda order: (0, {}))
    return TableSchemaState(SCHEMA, key, "day", rules_of, generated=made, types_before=lambda order: TYPES)


def verdicts(text: str, at: TableSchemaState) -> list[str]:
    (ddl,) = parse_ddl(f"ALTER TABLE t {text}", "db")
    return [ruling.verdict.value for ruling in judge_clauses(ddl.clauses, 5, at).rulings]


@pytest.mark.parametrize(
    ("clause", "key", "verdict"),
    [
        ("MODIFY no BIGINT", ("no",), "widen"),
        ("MODIFY id DECIMAL(12,4)", ("no",), "widen"),
        ("MODIFY id DECIMAL(9,1)", ("no",), "convert"),
        ("MODIFY id DECIMAL(6,1)", ("no",), "convert"),
        ("MODIFY id DECIMAL(6,1)", ("id",), "refuse"),
        ("MODIFY id DECIMAL(12,2)", ("id",), "widen"),
        ("MODIFY id DECIMAL(60,1)", ("no",), "convert"),
        ("MODIFY f DOUBLE", ("no",), "widen"),
        ("MODIFY day DATETIME", ("no",), "refuse"),
        ("MODIFY name TEXT CHARACTER SET latin1 FIRST", ("no",), "convert"),
        ("MODIFY name LONGTEXT CHARACTER SET utf8mb4 FIRST", ("no",), "apply"),
        ("MODIFY name BLOB", ("no",), "convert"),
        ("MODIFY no VARCHAR(20)", ("no",), "convert"),
        ("MODIFY name VARCHAR(9)", ("no",), "convert"),
        ("CHANGE day d DATE", ("no",), "refuse"),
        ("CHANGE name n INT", ("no",), "copy"),
        ("RENAME COLUMN other TO more", ("no",), "apply"),
        ("DROP day", ("no",), "refuse"),
        ("DROP nobody", ("no",), "keep"),
        ("DROP PRIMARY KEY, ADD PRIMARY KEY (no)", ("no",), "apply"),
        ("ADD c POINT", ("no",), "add"),
        ("ADD name INT", ("no",), "refuse"),
        ("ADD NAME VARCHAR(5) DEFAULT 'x'", ("no",), "fill"),
    ],
)
def test_clauses(clause: str, key: tuple[str, ...], verdict: str) -> None:
    assert verdicts(clause, state(key)) == [verdict]


@pytest.mark.parametrize(
    ("clause", "key", "new", "held"),
    [
        ("DROP PRIMARY KEY", ("no",), (), True),
        ("ADD PRIMARY KEY (NO)", (), ("no",), True),
        ("DROP PRIMARY KEY, ADD PRIMARY KEY (id)", ("no",), ("id",), True),
        ("DROP PRIMARY KEY, ADD PRIMARY KEY (name, no)", ("no",), ("name", "no"), False),
        ("DROP PRIMARY KEY, ADD PRIMARY KEY (id, no)", ("no", "id"), ("id", "no"), False),
        ("CHANGE no num INT", ("no",), ("num",), False),
        ("CHANGE no num INT, DROP PRIMARY KEY, ADD PRIMARY KEY (num, id)", ("no",), ("num", "id"), False),
        ("ADD tenant INT NOT NULL DEFAULT 1, DROP PRIMARY KEY, ADD PRIMARY KEY (tenant, no)", ("no",), None, False),
        ("DROP no, DROP PRIMARY KEY, ADD PRIMARY KEY (id)", ("no",), ("id",), True),
        ("DROP no", ("no", "id"), ("id",), True),
    ],
)
def test_another_key_is_a_rewrite(clause: str, key: tuple[str, ...], new: tuple[str, ...] | None, held: bool) -> None:
    (ddl,), at = parse_ddl(f"ALTER TABLE t {clause}", "db"), state(key)
    judged = judge_clauses(ddl.clauses, 5, at)
    new = ("tenant", "no") if new is None else new
    assert judged.rewrite == KeyChange(new, held)
    assert at.key == new
    assert at.refused == {}
    refusing = state(key, schema_changes={"key": "refuse"})
    assert "refuse" in verdicts(clause, refusing)
    assert refusing.key == key


@pytest.mark.parametrize(
    ("clause", "key"),
    [
        ("MODIFY no SMALLINT", "no"),
        ("MODIFY no DECIMAL(9,2)", "no"),
        ("MODIFY no VARCHAR(9)", "no"),
        ("MODIFY id DECIMAL(12,4)", "id"),
        ("MODIFY name VARCHAR(9)", "name"),
        ("MODIFY name INT", "name"),
    ],
)
def test_a_key_of_other_texts_is_a_rewrite(clause: str, key: str) -> None:
    (ddl,) = parse_ddl(f"ALTER TABLE t {clause} NOT NULL", "db")
    judged = judge_clauses(ddl.clauses, 5, state((key,)))
    assert [ruling.verdict.value for ruling in judged.rulings] == ["convert", "rewrite"]
    assert judged.rewrite == KeyChange((key,), held=True)
    assert len(judged.steps) == 1


@pytest.mark.parametrize(
    ("clause", "key"),
    [("MODIFY id DECIMAL(6,1)", "id"), ("MODIFY day DATETIME", "day"), ("MODIFY no INET6", "no")],
)
def test_a_key_of_texts_that_are_not_known_is_refused(clause: str, key: str) -> None:
    (ddl,) = parse_ddl(f"ALTER TABLE t {clause}", "db")
    judged = judge_clauses(ddl.clauses, 5, state((key,)))
    assert [ruling.verdict.value for ruling in judged.rulings] == ["refuse"]
    assert judged.rewrite is None


def test_where_the_key_must_stay_values_that_place_rows_are_named() -> None:
    """The settings refuse another key, and the partition column never changes its values."""
    (ddl,) = parse_ddl("ALTER TABLE t MODIFY name VARCHAR(9)", "db")
    kept = judge_clauses(ddl.clauses, 5, state(("name",), schema_changes={"key": "refuse"}))
    assert [one.column for one in kept.undetermined] == ["name"]
    assert (kept.rewrite, kept.steps) == (None, [])


def test_a_key_whose_values_only_the_source_knows_is_refused() -> None:
    at = state(())
    assert verdicts("ADD n INT AUTO_INCREMENT PRIMARY KEY", at) == ["add", "refuse"]
    assert "only the source knows the values of n" in at.refused[KEY_OF_TABLE][1]


def test_the_keys_of_the_sources_definitions_are_believed() -> None:
    """A unique index can be the key of a table without a primary key; a lake table by another key keeps it."""
    (ddl,) = parse_ddl("ALTER TABLE t DROP INDEX u", "db")
    at = state(("no",))
    assert judge_clauses(ddl.clauses, 5, at, (("no",), ())).rewrite == KeyChange((), True)
    assert judge_clauses(ddl.clauses, 5, state(("no",)), (("no",), ("no",))).rulings == []
    other = state(("name",))
    assert judge_clauses(ddl.clauses, 5, other, (("no",), ("id",))).rewrite is None
    assert other.key == ("name",)


def test_the_key_that_the_settings_name_is_not_the_sources() -> None:
    named = state()
    named.rules = TablesSettings.model_validate({"defaults": {"key": ["no"]}}).rules(SourceTable("db", "t"))
    assert verdicts("DROP PRIMARY KEY, ADD PRIMARY KEY (id)", named) == ["apply"]
    sharded = state(("shard", "no"))
    sharded.shard = "shard"
    assert verdicts("DROP PRIMARY KEY, ADD PRIMARY KEY (no)", sharded) == ["apply"]


def test_columns_that_the_settings_keep_out_are_not_restated() -> None:
    columns = {"exclude": ["gone*"], "mask": {"mail": {"how": "redact"}}}
    at = state(columns=columns)
    assert verdicts("ADD gone_1 INT DEFAULT 5, ADD mail TEXT DEFAULT ('x'), CHANGE name mail TEXT", at) == [
        "apply",
        "add",
        "add",
    ]
    assert at.schema == SCHEMA


def test_a_refusal_ends_when_the_column_fits_again_or_goes() -> None:
    at = state(schema_changes={"convert": "refuse"})
    assert verdicts("MODIFY name INT", at) == ["refuse"]
    assert at.refused == {"name": (5, "column name becomes INT, the lake has string")}
    verdicts("MODIFY name TEXT", at)
    assert at.refused == {}
    verdicts("MODIFY name INT", at)
    verdicts("DROP name", at)
    assert at.refused == {}


@pytest.mark.parametrize(
    ("clause", "policy"),
    [
        ("ADD c INT", "add"),
        ("DROP name", "drop"),
        ("RENAME COLUMN name TO n", "rename"),
        ("MODIFY no BIGINT", "widen"),
        ("MODIFY id DECIMAL(4,2)", "narrow"),
        ("MODIFY name INT", "convert"),
    ],
)
def test_each_policy_can_refuse(clause: str, policy: str) -> None:
    assert verdicts(clause, state()) != ["refuse"]
    assert verdicts(clause, state(schema_changes={policy: "refuse"})) == ["refuse"]


def test_statements_change_no_stored_row_of_a_table_that_its_writer_merges() -> None:
    """Its rows do not say which of their values are from before a statement."""
    source, at = SourceTable("db", "t"), state()
    at.merging = Merging("first_row")
    log = DdlLog()
    for order, text in enumerate(
        [
            "ALTER TABLE t ADD COLUMN c INT DEFAULT 5",
            "ALTER TABLE t RENAME COLUMN id TO other, MODIFY no SMALLINT",
            "ALTER TABLE t DROP PRIMARY KEY",
            "DROP TABLE t",
        ]
    ):
        log.add(DdlEvent(order, None, f"1:{order}", text, "db"))
    found = judge_table(source, log.history(lambda _: at.rules.schema_changes).effects[source], (), at)
    assert [[ruling.verdict.value for ruling in entry.rulings] for entry in found.entries] == [
        ["keep"],
        ["keep", "keep"],
        ["keep"],
        ["keep"],
    ]
    assert at.schema is SCHEMA
    assert [entry for entry in found.entries if entry.restatements() or entry.rewrite] == []
    assert "rows from before have null" in found.entries[0].rulings[0].text


@pytest.mark.parametrize(
    ("statement", "concerned"),
    [
        ("ALTER IGNORE TABLE t ADD UNIQUE (name)", [""]),
        ("ALTER ONLINE IGNORE TABLE t ADD CONSTRAINT u UNIQUE KEY (name)", [""]),
        ("ALTER IGNORE TABLE t ADD PRIMARY KEY (no)", [""]),
        ("ALTER IGNORE TABLE t MODIFY name VARCHAR(2)", [""]),
        ("ALTER IGNORE TABLE t CONVERT TO CHARACTER SET utf8mb4", [""]),
        ("ALTER IGNORE TABLE t PARTITION BY RANGE (no) (PARTITION p0 VALUES LESS THAN (5))", [""]),
        ("ALTER IGNORE TABLE t ADD CHECK (no < 3)", [""]),
        ("ALTER IGNORE TABLE t ADD INDEX (name)", []),
        ("ALTER IGNORE TABLE t DROP COLUMN name", []),
        ("ALTER TABLE t ADD UNIQUE (name)", []),
        ("ALTER TABLE t ENGINE=BLACKHOLE", [""]),
        ("ALTER TABLE t ADD COLUMN c INT, ENGINE BlackHole", [""]),
        ("ALTER TABLE t ENGINE=InnoDB", []),
        ("ALTER TABLE t COMMENT 'ENGINE=BLACKHOLE'", []),
        ("ALTER TABLE t DISCARD TABLESPACE", [""]),
        ("ALTER TABLE t IMPORT TABLESPACE", [""]),
        ("ALTER TABLE t MODIFY f INT NOT NULL AUTO_INCREMENT UNIQUE", ["f"]),
        ("ALTER TABLE t CHANGE f g INT AUTO_INCREMENT UNIQUE", ["g"]),
        ("ALTER TABLE t MODIFY no BIGINT NOT NULL AUTO_INCREMENT", []),
        ("ALTER TABLE t ADD seq INT AUTO_INCREMENT UNIQUE", ["seq"]),
        ("ALTER TABLE t ADD c DOUBLE NOT NULL DEFAULT (RAND())", ["c"]),
        ("ALTER TABLE t ADD c CHAR(36) NOT NULL DEFAULT (UUID())", ["c"]),
        ("ALTER TABLE t ADD c DATETIME NOT NULL", ["c"]),
    ],
)
def test_rows_that_a_statement_changes_without_an_event_are_named(statement: str, concerned: list[str]) -> None:
    """``concerned``: the columns that are not determined, "" for rows as a whole."""
    (ddl,) = parse_ddl(statement, "db")
    judged = judge_clauses(ddl.clauses, 5, state())
    assert [one.column for one in judged.undetermined] == concerned


@pytest.mark.parametrize("keys", [None, (("no",), ("no",))])
def test_a_key_column_that_is_made_anew_is_another_one(keys: tuple[tuple[str, ...], tuple[str, ...]] | None) -> None:
    """AUTO_INCREMENT numbers the rows, and the log does not say how: the rows keep the key that they have."""
    text = "ALTER TABLE t DROP no, ADD no INT NOT NULL AUTO_INCREMENT, DROP PRIMARY KEY, ADD PRIMARY KEY (no)"
    (ddl,) = parse_ddl(text, "db")
    judged = judge_clauses(ddl.clauses, 5, state(), keys)
    assert [ruling.verdict.value for ruling in judged.rulings] == ["keep", "add", "refuse"]
    assert [one.column for one in judged.undetermined] == ["no"]
    assert judged.steps == []


def test_a_table_that_its_writer_merges_names_them_too() -> None:
    at, source = replace(state(), merging=Merging("first_row")), SourceTable("db", "t")
    (ddl,) = parse_ddl("ALTER IGNORE TABLE t ADD UNIQUE (name)", "db")
    event = DdlEvent(5, None, "1:5", "ALTER IGNORE TABLE t ADD UNIQUE (name)", "db")
    found = judge_table(source, [Effect(event, ddl.action, ddl.clauses)], [], at)
    assert [one.column for entry in found.entries for one in entry.undetermined] == [""]


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("DROP name, RENAME COLUMN u TO name", None),
        ("DROP name, CHANGE u name DATE", "date"),
        ("DROP name, CHANGE u name VECTOR(3)", None),
        ("RENAME COLUMN u TO gone", None),
    ],
)
def test_a_name_that_a_column_takes_which_the_lake_does_not_hold_is_null_in_rows_before(
    text: str, known: str | None
) -> None:
    at = state()
    at.schema = at.schema.append(pa.field("gone", pa.string()))
    at.gone = {"gone"}
    (ddl,) = parse_ddl(f"ALTER TABLE t {text}", "db")
    judged = judge_clauses(ddl.clauses, 5, at)
    [name] = [one.column for one in judged.undetermined]
    [step] = judged.steps
    assert isinstance(step, Convert)
    assert (step.column.name, step.old, name in at.gone) == (name, None, False)
    kind = at.type_before(name, 6)
    assert (kind.base if kind is not None else None) == known
    assert at.schema.field(name).type == (pa.date32() if known else pa.string())


def test_a_column_of_an_unknown_type_does_not_take_that_of_the_name() -> None:
    statement = "DROP name, RENAME COLUMN id TO name"
    for take_over in (False, True):
        at = state()
        (ddl,) = parse_ddl(f"ALTER TABLE t {statement}", "db")
        if take_over:
            at.take_over_types(5, ddl.clauses)
        else:
            assert judge_clauses(ddl.clauses, 5, at).undetermined == []
        assert at.type_before("name", 6) is None
        at.types_before = lambda order: {**TYPES, "name": parse_type("decimal(9,2)")}
        assert at.type_before("name", 9) == parse_type("decimal(9,2)")


def test_where_renames_keep_rows_a_dropped_columns_values_do_not_come_back() -> None:
    at = state(schema_changes={"rename": "keep"})
    (ddl,) = parse_ddl("ALTER TABLE t DROP f, RENAME COLUMN no TO f", "db")
    at.key = ()
    [step] = judge_clauses(ddl.clauses, 5, at).steps
    assert isinstance(step, Convert)
    assert (step.column.name, step.old) == ("f", None)
