"""Topics whose records are no change events: which table they feed, and the columns of that table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from binlake.settings.table_rules import TableRules
from hudilake.policies import GLOBAL_INDEXES
from hudilake.validation import EACH_ONCE, ColumnNames, Section, Text, mistake, repeated

#: What Kafka knows of a record and a column can hold.
RecordFact = Literal["topic", "partition", "offset", "timestamp"]

_LONGEST_NAME = 64


class PlainTopicsSettings(Section):
    """Topics that feed one lake table with rows: each record is one row."""

    topics: tuple[Text, ...] = Field(min_length=1)
    """Glob patterns on the topic's name. A topic belongs to the first entry that matches it."""
    table: Text
    """The table as ``database.table``: rules, routes and paths name it so."""
    columns: Annotated[Mapping[Text, Text], EACH_ONCE] | Literal["infer"] = "infer"
    """Column name to MySQL type as DDL writes it (``bigint``, ``decimal(12,2)``, ``datetime(3)``); or ``infer``: they
    are learned from the messages. With Avro, the writer's schema gives the columns."""
    key: ColumnNames = ()
    """Columns that name a row (``kind: upsert``), among them those of ``metadata_columns``; empty for
    ``kind: append``."""
    metadata_columns: Mapping[RecordFact, Text] = Field(default_factory=dict)
    """Columns for what Kafka knows of a record: ``topic``, ``partition``, ``offset``, ``timestamp`` -> column name."""
    schema_file: Text | None = None
    """Avro without a registry: the file with the writer's schema, for messages without Confluent's head."""

    @field_validator("topics", mode="before")
    @classmethod
    def _one_or_several(cls, topics: object) -> object:
        return (topics,) if isinstance(topics, str) else topics

    @field_validator("table")
    @classmethod
    def _named_in_full(cls, table: str) -> str:
        database, _, name = table.partition(".")
        if not (0 < len(database) <= _LONGEST_NAME and 0 < len(name) <= _LONGEST_NAME):
            raise mistake(f"must be database.table, each of 1 to {_LONGEST_NAME} characters")
        return table

    @field_validator("columns")
    @classmethod
    def _at_least_one(cls, columns: Mapping[str, str] | str) -> Mapping[str, str] | str:
        if not columns:
            raise mistake("must name a column, or be infer")
        return columns

    @field_validator("metadata_columns")
    @classmethod
    def _apart(cls, named: Mapping[str, str], info: ValidationInfo) -> Mapping[str, str]:
        columns = info.data.get("columns")
        taken = list(named.values()) + (list(columns) if isinstance(columns, Mapping) else [])
        if doubled := sorted(set(repeated(taken))):
            raise mistake(f"a column of this name is there already: {', '.join(doubled)}")
        return named

    @model_validator(mode="after")
    def _key_of_the_columns(self) -> Self:
        if isinstance(self.columns, Mapping):
            known = {*self.columns, *self.metadata_columns.values()}
            if strange := [name for name in self.key if name not in known]:
                raise mistake(f"key: no such column: {', '.join(strange)}")
        return self

    @property
    def source(self) -> tuple[str, str]:
        """Database and table."""
        database, _, name = self.table.partition(".")
        return database, name

    @property
    def declared(self) -> Mapping[str, str] | None:
        """Column name to MySQL type; None if the columns are inferred."""
        return self.columns if isinstance(self.columns, Mapping) else None

    def takes(self, topic: str) -> bool:
        """Whether a topic matches one of the patterns."""
        return any(fnmatchcase(topic, pattern) for pattern in self.topics)


def plain_problem(form: str | None, plain: Sequence[PlainTopicsSettings]) -> str | None:
    """What is wrong with the entries for records of a format; None if nothing is."""
    if form in ("json", "avro") and not plain:
        return f"format {form} needs entries that name the tables of the topics"
    if len({entry.table for entry in plain}) < len(plain):
        return "two entries name one table: give one entry all its topics"
    for entry in plain:
        if form == "json" and entry.schema_file is not None:
            return f"{entry.table}: schema_file is for format avro"
        if form == "avro" and entry.declared is not None:
            return f"{entry.table}: with format avro the writer's schema gives the columns"
    return None


# Which lake tables plain topics can feed.


def plain_table_problem(entry: PlainTopicsSettings, rules: TableRules) -> str | None:
    """Why rows of plain topics cannot feed a lake table of these rules; None if they can.

    Such a row comes without its previous version, so a row that leaves its partition would stay there, too.
    """
    key = rules.key or entry.key
    if rules.kind == "append":
        return "a table of kind append has no key" if key else None
    if not key:
        return "name its key, or set kind: append in tables.overrides"
    if rules.partition is None or _finds_rows(entry, rules) or rules.immutable_partition:
        return None
    return (
        f"a row without its previous version cannot leave its partition: take {rules.partition.column} into the key, "
        "or promise immutable_partition: true"
    )


def no_delete(entry: PlainTopicsSettings, rules: TableRules) -> str | None:
    """Why a record without a value cannot delete its row; None if it can."""
    if rules.partition is None or _finds_rows(entry, rules):
        return None
    return (
        f"a record without a value has only a key, and the partition of its row is that of {rules.partition.column}, "
        "which is not in the key"
    )


def _finds_rows(entry: PlainTopicsSettings, rules: TableRules) -> bool:
    """Whether the key tells the partition, or the index finds a key in any partition."""
    column = rules.partition.column if rules.partition is not None else ""
    return column in (rules.key or entry.key) or rules.index.type in GLOBAL_INDEXES
