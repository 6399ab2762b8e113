"""The rules of the documentation by which inputs are refused. A refusal without one is a fault."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """``says``: what the reason of a refusal contains, a regular expression. ``page``: of the documentation; ``words``:
    of this page, which say so."""

    says: str
    page: str
    words: str


RULES = (
    Rule("another writer (put|wrote|committed)", "limits.md", "once, and its next write is refused then"),
    Rule("bootstrapped tables", "limits.md", "bootstrapped tables"),
    Rule("bloom filter version -1, hash 0", "limits.md", "bloom filters hashed with Jenkins"),
    Rule("delete block version", "limits.md", "log blocks of another version"),
    Rule(
        "the log does not determine the value",
        "schema-changes.md",
        "Such a column is null in rows from before. The commit records the column and the reason",
    ),
    Rule(
        "the binlog does not have the change",
        "schema-changes.md",
        "rows that a foreign key changes (ON DELETE or ON UPDATE with CASCADE, SET NULL: InnoDB writes no event)",
    ),
    Rule(
        "a change of rows is in the log as a statement",
        "schema-changes.md",
        "changes of rows that a session wrote as statements",
    ),
    Rule(
        "quarantined: table_refused",
        "operations.md",
        "the record's schema cannot be stored in its table, which accepts others",
    ),
    Rule(
        r"bad_value: column COLUMN \(char\(N\) character set binary\) cannot take",
        "operations.md",
        "a type or value has no exact form in the lake",
    ),
    Rule(
        r"bad_value: column COLUMN \(\w+(\(N\))?\) cannot take \{X",
        "without-kafka.md",
        "codec of their set has no character for (`bad_value`)",
    ),
    Rule(
        "may have digits of a second in the form of MariaDB before",
        "without-kafka.md",
        "digits of a second in the form that MariaDB writes with `mysql56_temporal_format = OFF`",
    ),
    Rule(
        "quarantined: unsupported_type: types of columns .* are not known",
        "limits.md",
        "to quarantine (`unsupported_type`): declare BINARY or VARBINARY",
    ),
    Rule(
        "quarantined: other_columns",
        "schema-changes.md",
        "Such rows go to quarantine with the reason `other_columns`",
    ),
    Rule(
        "through a temporary table of the engine MERGE",
        "limits.md",
        "rows that are written through a temporary one are in no log",
    ),
    Rule("dates with zeros are null", "formats.md", "`source.zero_dates` is one policy for DATE, DATETIME and"),
    Rule("quarantined: null_key", "limits.md", "a row that has null there goes to quarantine (`null_key`)"),
    Rule("cannot be part of a record key", "limits.md", "cannot be part of a key, so the table is refused whole"),
    Rule(
        "stored rows have no value in the new key",
        "schema-changes.md",
        "A new key in which rows from before have null is not carried out",
    ),
    Rule(
        "which partition by .* depends on a collation",
        "schema-changes.md",
        "the statement is not carried out, and the table's progress names the row",
    ),
    Rule(
        "a statement (that )?is refused|quarantined: ddl_refused",
        "schema-changes.md",
        "The rows of the table from that statement on go to quarantine with the reason `ddl_refused`.",
    ),
)


def rule_of(reason: str) -> Rule | None:
    """The rule of a refusal; None if there is none."""
    return next((rule for rule in RULES if re.search(rule.says, reason)), None)
