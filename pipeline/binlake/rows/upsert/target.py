"""The lake table of a source table: its path, its definition, and how rows get their partition values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.cells import ROW, is_table_of_cells
from binlake.decode.changes import SourceTable, TableSchema
from binlake.rows.upsert.version_columns import check_names, key_fields
from binlake.settings import PartitionSettings, TableRules
from hudilake.errors import UnsupportedError
from hudilake.format.definition.bucketing import Bucketing
from hudilake.format.definition.column_names import lake_name
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.kind import TableKind
from hudilake.format.definition.merging import NEWEST, ColumnGroup, Merging
from hudilake.policies import ChangeLog

#: The longest name of a file or directory on Linux file systems and HDFS, in bytes of UTF-8.
MAX_NAME_BYTES = 255
ORDER_FIELD = "_binlake_order"
#: The record key of a table without a key: where a row comes from (``binlake.rows.upsert.keyless``).
ROW_FIELD = "_binlake_row"
RESERVED_PREFIXES = ("_hoodie_", "_binlake_")
_BUCKETED: Final = TableKind()
_FORMATS: Mapping[str, str] = {"year": "%Y", "month": "%Y-%m", "day": "%Y-%m-%d", "hour": "%Y-%m-%d-%H"}


def partition_values(rule: PartitionSettings, table: pa.Table) -> pa.ChunkedArray:
    """The partition column of every row (UTC for the temporal transforms).

    Raises UnsupportedError where the rule needs a part of a time and the column is not temporal.
    """
    column = table.column(rule.column)
    if rule.transform == "identity":
        return column
    if not (pa.types.is_timestamp(column.type) or pa.types.is_date32(column.type)):
        raise UnsupportedError(
            f"cannot take the {rule.transform} of column {rule.column!r} of type {column.type}",
            do_next="partition by a DATE, DATETIME or TIMESTAMP column, or use transform: identity",
        )
    stamps = column.cast(pa.timestamp("us", tz="UTC"))
    hours = pc.floor_temporal(stamps, unit="hour").cast(pa.timestamp("s", tz="UTC"))
    return pc.strftime(hours, format=_FORMATS[rule.transform])


@dataclass(frozen=True)
class Target:
    """A lake table as the upsert package sees it.

    Args:
        source: the table that its rows come from.
        path: below the lake's root.
        config: what the lake table is, or will be. Its merging says too which groups a stitched table must have.
        partition: how the partition values of rows are made; lake column names.
    """

    source: SourceTable
    path: str
    config: TableConfig
    partition: PartitionSettings | None = None

    @classmethod
    def new(
        cls,
        source: SourceTable,
        path: str,
        key: tuple[str, ...],
        bucketing: Bucketing,
        *,
        kind: TableKind = _BUCKETED,
        partition: PartitionSettings | None = None,
        hive_style: bool = True,
        index_fields: tuple[str, ...] = (),
        merging: Merging = NEWEST,
        change_log: ChangeLog | None = None,
    ) -> Target:
        """The target of a table that does not exist.

        ``key``: lake names; empty for an append table, and for a table without a key. ``bucketing`` counts where the
        kind has buckets. ``hive_style`` and ``index_fields`` as in ``TableConfig``. ``change_log`` as in
        ``TableSettings``.
        """
        record_key, order = kind.placement.keyed(key or (ROW_FIELD,), ORDER_FIELD)
        config = TableConfig(
            name=lake_name(source.table),
            record_key_fields=record_key,
            ordering_field=order,
            bucket_count=0,
            partition_fields=(partition.field,) if partition is not None else (),
            hive_style=hive_style,
            kind=kind,
            index_fields=index_fields,
        )
        config = config.with_bucketing(bucketing).with_merging(merging).with_change_log(change_log)
        return cls(source, path, config, partition)

    @cached_property
    def key(self) -> tuple[str, ...]:
        """The key columns; empty for an append table, and for a source table without a key, whose rows are identified
        by their content (``binlake.rows.upsert.keyless``)."""
        return key_columns(self.config)

    @property
    def source_key(self) -> tuple[str, ...]:
        """The key columns that name a row of the source."""
        return self.merging.source_key(self.key)

    @property
    def kind(self) -> TableKind:
        """The kind of the table."""
        return self.config.kind

    @property
    def merging(self) -> Merging:
        """How the table's rows come together from events."""
        return self.config.merging

    def usable_paths(self, paths: pa.Array) -> pa.Array:
        """Whether each of n partition paths (string) can be a directory of rows; boolean array of n.

        Local file systems and HDFS refuse names over 255 bytes. A name with a leading dot, which only a bare value can
        give, is hidden from readers (``.hoodie``) or leads out of the table (``..``).
        """
        return pc.and_(
            pc.less_equal(pc.binary_length(paths), MAX_NAME_BYTES), pc.invert(pc.starts_with(paths, pattern="."))
        )


def is_keyless(config: TableConfig) -> bool:
    """Whether rows of a lake table are identified by their content."""
    return config.record_key_fields == (ROW_FIELD,)


def tells_records(config: TableConfig, merging: Merging) -> bool:
    """Whether a table's rows tell which records they are of: one that comes again changes nothing. The rows of a table
    without a key do not, and neither do those of one that counts facts."""
    return bool(key_columns(config)) and not merging.counts_once


def key_columns(config: TableConfig) -> tuple[str, ...]:
    """The key columns of a lake table that come from its source; none for an append table and a keyless one."""
    return () if is_keyless(config) else config.record_key_fields


def kind_of(rules: TableRules) -> TableKind:
    """The kind of a lake table with these rules."""
    return TableKind(rules.type, "none" if rules.kind == "append" else rules.index.type)


def first_bucketing(rules: TableRules) -> Bucketing:
    """The buckets of a new lake table with these rules."""
    return kind_of(rules).placement.bucketing(rules.buckets, tuple(rules.index.partition_buckets.items()), {})


def merging_of(rules: TableRules) -> Merging:
    """How the table's rows come together from events."""
    if not rules.groups:
        functions = tuple((lake_name(column), function) for column, function in rules.merge.functions)
        tracked, untracked = (_tracking(names) for names in (rules.merge.track, rules.merge.track_except))
        return Merging(rules.merge.engine, functions=functions, tracked=tracked, untracked=untracked)
    return Merging(
        "stitched",
        tuple(
            ColumnGroup(
                group.name,
                None if group.columns is None else tuple(lake_name(column) for column, _ in group.columns),
                group.on_delete,
            )
            for group in rules.groups
        ),
    )


def _tracking(columns: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if columns is None else tuple(sorted({lake_name(column).lower() for column in columns}))


def lake_names(columns: Iterable[str], source: SourceTable) -> dict[str, str]:
    """Source column -> lake column.

    Raises UnsupportedError when two columns would share a name (readers ignore case) or a name is reserved.
    """
    names = {column: lake_name(column) for column in columns}
    taken: dict[str, str] = {}
    for column, name in names.items():
        if name.lower().startswith(RESERVED_PREFIXES):
            raise UnsupportedError(
                f"column {column!r} has a name that Hudi or binlake keeps for itself",
                do_next="rename the column at the source or exclude the table",
                table=str(source),
            )
        if name.lower() in taken:
            raise UnsupportedError(
                f"columns {taken[name.lower()]!r} and {column!r} would both be {name!r} in the lake",
                do_next="rename one of them at the source or exclude the table",
                table=str(source),
            )
        taken[name.lower()] = column
    return names


def make_target(
    schema: TableSchema, rules: TableRules, key: tuple[str, ...] | None = None, bucketing: Bucketing | None = None
) -> Target:
    """The target of a source table under the settings' rules. Arguments and errors as for ``target_and_names``."""
    return target_and_names(schema, rules, key, bucketing)[0]


def target_and_names(
    schema: TableSchema, rules: TableRules, key: tuple[str, ...] | None = None, bucketing: Bucketing | None = None
) -> tuple[Target, Mapping[str, str]]:
    """The target of a source table under the settings' rules, and its columns: source column -> lake column.

    Args:
        schema: of the rows, shaped for the lake table.
        rules: of the lake table.
        key: the record key that a statement gave the lake table, lake names; None for the key of the schema.
        bucketing: of the lake table; None for a table that does not exist, which gets the settings' buckets.

    Raises UnsupportedError for names that cannot be distinguished or are too long for a path, or a missing key or
    partition column.
    """
    _check_path(rules.path, schema.source)
    names = lake_names([c.name for c in schema.columns], schema.source)
    kind = kind_of(rules)
    given, spelled = rules.key or schema.key, names
    if key is not None and rules.key is None:
        given, spelled = key, {lake: lake for lake in names.values()}
    own = tuple(_placing(name, spelled, schema.source) for name in kind.placement.keyed(given, "")[0])
    partition = _lake_rule(rules.partition, names, schema.source) if rules.partition else None
    merging = merging_of(rules)
    if not own:
        _check_without_key(merging, kind, schema.source)
    by_row = kind.computed and is_table_of_cells(schema) and own[:1] == (ROW,)
    index_fields: tuple[str, ...] = (ROW,) if by_row and len(own) > 1 else ()
    if merging.keeps_versions:
        check_names(names.values(), str(schema.source), merging.engine)
        own, index_fields = (*own, *key_fields(merging.engine)), own
    buckets = first_bucketing(rules) if bucketing is None else bucketing
    target = Target.new(
        schema.source,
        rules.path,
        own,
        buckets,
        kind=kind,
        partition=partition,
        hive_style=rules.hive_style,
        index_fields=index_fields,
        merging=merging,
        change_log=rules.change_log,
    )
    return target, names


def _check_without_key(merging: Merging, kind: TableKind, source: SourceTable) -> None:
    """Raise UnsupportedError if rows of such a table need a key."""
    if (why := merging.refusal("a table without a key cannot have the merge engine {}")) is not None:
        raise UnsupportedError(
            why,
            do_next="name a key in tables.overrides, or take the engine away",
            table=str(source),
        )
    if kind.looks_up:
        raise UnsupportedError(
            f"a table without a key cannot have the index {kind.index}, which looks keys up",
            do_next="name a key in tables.overrides, or take index.type: bucket",
            table=str(source),
        )


def _placing(column: str, names: Mapping[str, str], source: SourceTable) -> str:
    """The lake name of a column that the key or the partitioning names, without regard to case."""
    stored_name = names.get(column) or next(
        (lake for name, lake in names.items() if name.lower() == column.lower()), None
    )
    if stored_name is None:
        raise UnsupportedError(
            f"column {column!r} is named by the key or the partitioning but the table does not have it",
            do_next="correct tables.overrides for this table",
            table=str(source),
        )
    return stored_name


def differing_keys(known: pa.Schema, incoming: pa.Schema, key: Iterable[str]) -> str | None:
    """Why rows of two sources of a stitched table cannot have the same record key: a key column comes with types that
    spell one value in two ways; None if they can. Whole numbers of any width are spelled alike."""
    for name in key:
        if name not in known.names or name not in incoming.names:
            continue
        first, second = known.field(name).type, incoming.field(name).type
        if first != second and not (pa.types.is_integer(first) and pa.types.is_integer(second)):
            return f"the key column {name!r} comes as {first} and as {second}, which spell a value in two ways"
    return None


def _check_path(path: str, source: SourceTable) -> None:
    longest = max(path.split("/"), key=len)
    if len(longest.encode()) > MAX_NAME_BYTES:
        raise UnsupportedError(
            f"the table's directory would have a name of more than {MAX_NAME_BYTES} bytes",
            do_next="give the table a shorter name in the lake (tables.routes), or exclude it",
            table=str(source),
        )


def is_found_by_partition(target: Target) -> bool:
    """Whether a row is found in its partition alone, and the key does not say which that is."""
    rule = target.partition
    return rule is not None and target.kind.scope.by_partition and rule.column not in target.key


def needs_before_images(schema: TableSchema, target: Target, rules: TableRules) -> bool:
    """Whether a change of a row may affect a place other than the row's own: the change may alter its key or partition,
    the whole row is its identity, or rows are facts that an update takes back. If so, before images are decoded, and
    updates without one, as all of the flat form are, are quarantined. A global index knows the partition that a row
    moves out of; a row that leaves a partition which is part of the key has another key.

    ``schema``: of the source table, with its own key.
    """
    if not target.config.record_key_fields:
        return False  # rows are added and never change
    moving = is_found_by_partition(target) and not rules.immutable_partition
    rekeyed = tuple(map(lake_name, schema.key)) != target.source_key
    return moving or rekeyed or not target.key or bool(target.merging.functions)


def _lake_rule(rule: PartitionSettings, names: Mapping[str, str], source: SourceTable) -> PartitionSettings:
    """The rule in lake column names."""
    column = _placing(rule.column, names, source)
    if rule.transform == "identity":
        return PartitionSettings(column=column)
    if rule.field.lower() in {n.lower() for n in names.values()}:
        raise UnsupportedError(
            f"partition column {rule.field!r} is also a column of the table",
            do_next="choose another partition.name",
            table=str(source),
        )
    return PartitionSettings(column=column, transform=rule.transform, name=rule.field)
