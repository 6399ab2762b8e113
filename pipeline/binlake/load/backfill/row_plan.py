"""How rows of the input become rows of the lake table: names, types, keys and places."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from binlake.decode.changes import SourceTable
from binlake.decode.types.exact_values import readable
from binlake.load.backfill.request import BackfillRequest
from binlake.rows.upsert.computed import compute, held_type
from binlake.rows.upsert.keyless import DIGEST_FIELD
from binlake.rows.upsert.target import ORDER_FIELD, RESERVED_PREFIXES, ROW_FIELD, Target, key_columns
from binlake.settings import PartitionSettings
from binlake.settings.fanout import ColumnsRule
from binlake.settings.sql_expression import check_expression
from binlake.tables.lake_table import LakeTable
from hudilake.errors import BadInputError, ConfigError, UnsupportedError
from hudilake.format.definition.column_names import lake_name
from hudilake.format.definition.key_change import says_key
from hudilake.format.definition.kind_support import TableOperation
from hudilake.format.definition.merging import NEWEST
from hudilake.format.definition.schema import META_FIELDS
from hudilake.wording import counted


@dataclass(frozen=True, slots=True)
class ReadColumn:
    """A column of the input, its name in the lake, and its type there."""

    name: str
    lake: str
    kind: pa.DataType

    @property
    def field(self) -> pa.Field:
        """The lake column."""
        return pa.field(self.lake, self.kind)


@dataclass(frozen=True, slots=True)
class RowPlan:
    """How rows of the input become rows of the lake. Picklable: it is sent to tasks.

    Args:
        target: the lake table.
        key: the columns of the record key.
        partition: the column that the partition path comes from, if it is neither in the key nor written.
        columns: the columns to write.
        where: the condition that rows must meet, and the further columns of the input that it needs.
    """

    target: Target
    key: tuple[ReadColumn, ...]
    partition: ReadColumn | None
    columns: tuple[ReadColumn, ...]
    where: str | None = None
    needed: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the input to read."""
        return tuple(dict.fromkeys([*(column.name for column in self.lake_columns), *self.needed]))

    @property
    def lake_columns(self) -> tuple[ReadColumn, ...]:
        """The columns that rows have in the lake."""
        return (*self.key, *((self.partition,) if self.partition else ()), *self.columns)

    @property
    def written(self) -> tuple[str, ...]:
        """The columns to write, lake names."""
        return tuple(column.lake for column in self.columns)


def value_columns(table: LakeTable) -> tuple[str, ...]:
    """The table's own columns, without those of the record key and hidden ones."""
    config = table.hudi.config
    hidden = {ORDER_FIELD, ROW_FIELD, DIGEST_FIELD, *META_FIELDS, *config.merging.hidden_fields}
    return tuple(n for n in table.hudi.schema.names if n not in hidden and n not in config.record_key_fields)


def plan_rows(
    table: LakeTable,
    source: SourceTable,
    request: BackfillRequest,
    given: pa.Schema,
    declared: Collection[str] = (),
) -> RowPlan:
    """How rows of an input become rows of a table.

    Args:
        table: open.
        source: the table's name.
        request: what to write.
        given: the columns of the input.
        declared: the source's columns that the settings declare.

    Raises ConfigError for columns that the input lacks or that cannot be written, UnsupportedError for tables without
    a key and types that the lake cannot hold.
    """
    request.check()
    target = _target(table, source)
    key = _key(table, request, given)
    columns = tuple(_column(table, name, given) for name in request.columns)
    for column in columns:
        _check_written(table, target, column)
        if column.lake not in table.hudi.schema.names:
            _check_new(table.rules.columns, column.name, declared)
    partition = _partition(table, target, [*key, *columns], given)
    if request.insert and target.partition is not None and target.partition.column not in target.key:
        raise UnsupportedError(
            f"the partition column {target.partition.column!r} is not in the key: a row of the same key may be in "
            "another partition, and would be there twice",
            do_next="leave --insert out, and send new rows through the stream",
            table=str(source),
        )
    plan = RowPlan(target, key, partition, columns, request.where)
    _check_types(plan, given, source)
    return plan if request.where is None else replace(plan, needed=_needed(request.where, given, source))


def _target(table: LakeTable, source: SourceTable) -> Target:
    config, rules = table.hudi.config, table.rules
    config.kind.refuse(TableOperation.BACKFILL, str(source))
    if not key_columns(config) or not says_key(config):
        raise UnsupportedError(
            "rows of a table without a key cannot be found by a backfill",
            do_next="give the table a key at the source, or compute the column in the settings (columns.computed)",
            table=str(source),
        )
    partition = None
    if rules.partition is not None:
        name = lake_name(rules.partition.column)
        partition = PartitionSettings(column=name) if rules.partition.transform == "identity" else rules.partition
        partition = partition.model_copy(update={"column": name})
    target = Target(source, rules.path, config.with_merging(NEWEST), partition)
    table.check(target)
    return target


def _key(table: LakeTable, request: BackfillRequest, given: pa.Schema) -> tuple[ReadColumn, ...]:
    fields = table.hudi.config.record_key_fields
    names = request.key or fields
    if len(names) != len(fields):
        raise ConfigError(
            f"the table's key has {counted(len(fields), 'column')}: {', '.join(fields)}",
            do_next="give as many columns of the input (--key)",
        )
    for name in names:
        _given(name, given, "--key")
    return tuple(ReadColumn(n, f, table.hudi.schema.field(f).type) for n, f in zip(names, fields, strict=True))


def _column(table: LakeTable, name: str, given: pa.Schema) -> ReadColumn:
    field, lake, schema = _given(name, given, "--columns"), lake_name(name), table.hudi.schema
    if lake in schema.names:
        return ReadColumn(name, lake, schema.field(lake).type)
    twin = next((known for known in schema.names if known.lower() == lake.lower()), None)
    if twin is not None:
        raise ConfigError(
            f"the table has the column {twin!r}", do_next=f"call the input's column {twin!r}", column=name
        )
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    held = held_type(kind)
    if held is None:
        raise UnsupportedError(
            f"column {name!r} is of type {field.type}, which a lake table cannot hold",
            do_next='cast it in a query: --from "SELECT ..., CAST(... AS ...) FROM ..."',
        )
    return ReadColumn(name, lake, held)


def _check_written(table: LakeTable, target: Target, column: ReadColumn) -> None:
    fields = {
        *target.key,
        *table.hudi.config.partition_fields,
        *((target.partition.column,) if target.partition else ()),
    }
    if column.lake in fields:
        raise ConfigError(
            f"{column.lake!r} belongs to the record key or the partition path, which a backfill cannot change",
            do_next="leave it out of --columns",
        )
    if column.lake.lower().startswith(RESERVED_PREFIXES):
        raise ConfigError(
            f"{column.name!r} is a name that Hudi or binlake keeps for itself",
            do_next="give another name to the column",
        )


def _check_new(rules: ColumnsRule | None, name: str, declared: Collection[str]) -> None:
    """Raise ConfigError for a column that the table gets from elsewhere: one of the two would hide the other."""
    computed = [column for column, _ in rules.computed] if rules is not None else []
    masked = [mask.column for mask in rules.masks] if rules is not None else []
    places = {"the settings compute (columns.computed)": computed, "the settings mask (columns.masks)": masked}
    places["the source has (source.schemas)"] = list(declared)
    for place, names in places.items():
        if name.lower() in (one.lower() for one in names):
            raise ConfigError(
                f"a backfill adds a column {name!r}, which {place}",
                do_next="give the new column another name, or run the backfill after the stream has brought the column",
                column=name,
            )


def _partition(table: LakeTable, target: Target, read: Sequence[ReadColumn], given: pa.Schema) -> ReadColumn | None:
    """The column that the partition path comes from, if it is not read anyway."""
    if target.partition is None or target.partition.column in {column.lake for column in read}:
        return None
    name = target.partition.column
    if name not in given.names:
        raise ConfigError(
            f"the table is partitioned by {name!r}, and the input does not have this column: the rows' places are not "
            "known",
            do_next="add the column to the input, for example by a query that joins it",
            table=table.rules.path,
        )
    return ReadColumn(name, name, table.hudi.schema.field(name).type)


def names_in(where: str | None) -> frozenset[str]:
    """The columns that a condition names, in lower case. Raises ConfigError for a condition that is not allowed."""
    import sqlglot  # imported here: it takes a tenth of a second
    from sqlglot import exp

    if where is None:
        return frozenset()
    if problem := check_expression(where):
        raise ConfigError(f"--where {problem}", do_next="correct the condition", where=where)
    return frozenset(c.name.lower() for c in sqlglot.parse_one(where, read="duckdb").find_all(exp.Column))


def _check_types(plan: RowPlan, given: pa.Schema, source: SourceTable) -> None:
    """Raise BadInputError for a column whose values are of another sort than the lake's: a number for a text."""
    for column in plan.lake_columns:
        kind = given.field(column.name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not readable(kind, column.kind):
            raise BadInputError(
                f"column {column.name!r} is of type {kind} in the input and of type {column.kind} in the lake, "
                "which cannot hold its values as they are",
                do_next="give it in the lake's type: by CAST in a query, and for CSV in a query by "
                "read_csv(..., all_varchar = true)",
                table=str(source),
                column=column.name,
            )


def _needed(where: str, given: pa.Schema, source: SourceTable) -> tuple[str, ...]:
    """The columns of the input that a condition names."""
    named = names_in(where)
    needed = tuple(name for name in given.names if name.lower() in named)
    if not needed:
        raise ConfigError("--where names no column of the input", do_next="correct the condition", where=where)
    try:
        compute(pa.schema([given.field(name) for name in needed]).empty_table(), [condition(where)], source)
    except UnsupportedError as error:
        raise ConfigError(f"--where: {error.what}", do_next="correct the condition", where=where) from error
    return needed


def condition(where: str) -> tuple[str, str]:
    """The name and the expression of the column that says which rows meet a condition."""
    return "__where", f"({where}\n)::BOOLEAN"


def _given(name: str, given: pa.Schema, option: str) -> pa.Field:
    if given.names.count(name) > 1:
        raise ConfigError(
            f"the input has several columns {name!r}", do_next="give each column of the input a name of its own"
        )
    if name not in given.names:
        raise ConfigError(
            f"the input has no column {name!r}; it has {', '.join(given.names[:50])}",
            do_next=f"correct {option}, or rename the column in a query",
        )
    return given.field(name)
