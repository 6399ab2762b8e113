"""What CREATE TABLE has defined beside columns: partitions, generated columns, unique indexes. CREATE TABLE ... LIKE
takes them over from its model, as the model has them by then, and its text names none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from binlake.decode.changes import ZeroDates
from binlake.decode.ddl.clauses import (
    Action,
    AddColumn,
    AddUnique,
    ChangeKey,
    Clause,
    ModifyColumn,
    RenameColumn,
    TableDefault,
    UntoldModel,
    in_lake_form,
    names_after,
    renames_of,
    under_new_names,
)
from binlake.decode.ddl.columns import UNNAMED_COLLATION, ColumnDefinition
from binlake.decode.ddl.partitions import ChangePartitions, PartitionAction
from binlake.decode.schemas.schemas import SchemaVersion
from binlake.schema.rules.collations import CollationHistory, Collations, created_collations
from binlake.schema.rules.ddl_effects import Effect
from binlake.schema.rules.generated_columns import Generated, GeneratedHistory, columns_of
from binlake.schema.rules.key_indexes import KeyIndexes, KeyIndexHistory, indexes_of
from binlake.schema.rules.partitions.known import KnownPartitions, PartitioningPeriod


@dataclass(frozen=True)
class CreatedDefinition:
    """What the newest CREATE TABLE before a statement has defined, by the source's definitions; None where they tell no
    CREATE TABLE.

    Args:
        versions: the table's definitions, ascending by ordering value.
        zero_dates: how the lake has dates; None for types as the source has them.
    """

    versions: Sequence[SchemaVersion]
    zero_dates: ZeroDates | None = None

    def before(self, order: int) -> SchemaVersion | None:
        """The definition that CREATE TABLE gave."""
        return next((v for v in reversed(self.versions) if v.created and v.since < order), None)

    def partitions(self, order: int) -> PartitioningPeriod | None:
        """Its partitions."""
        made = self.before(order)
        clauses = [c for c in made.defined if isinstance(c, ChangePartitions)] if made else []
        return PartitioningPeriod(made.since, clauses[0].defined if clauses else None) if made else None

    def generated(self, order: int) -> tuple[int, Generated] | None:
        """Its generated columns."""
        made = self.before(order)
        added = [c for c in made.defined if isinstance(c, AddColumn)] if made else []
        if made is None:
            return None
        return made.since, columns_of(added if self.zero_dates is None else in_lake_form(added, self.zero_dates))

    def collations(self, order: int) -> tuple[int, Collations] | None:
        """The collations of its text columns."""
        made = self.before(order)
        return (made.since, created_collations(made.defined, made.since)) if made is not None else None

    def indexes(self, order: int) -> tuple[int, KeyIndexes] | None:
        """Its indexes."""
        made = self.before(order)
        return (made.since, indexes_of(made.defined, made.key)) if made else None


def declared(versions: Sequence[SchemaVersion], effects: Sequence[Effect], order: int) -> SchemaVersion | None:
    """The definition of a table before a statement, of which no row need have come: the newest one that came, as the
    statements after it change it. None if neither one came nor a statement made the table.

    Args:
        versions, effects: the definitions of the table, and the statements about it.
        order: the statement's ordering value.
    """
    known = [version for version in versions if version.columns and version.since < order]
    since = known[-1].since if known else -1
    columns, key = (dict(known[-1].columns), known[-1].key) if known else ({}, ())
    for effect in (one for one in effects if since < one.event.order < order):
        if effect.action is Action.CREATE:
            columns, key = {}, ()
        clauses = effect.clauses if effect.action in (Action.CREATE, Action.ALTER) else ()
        columns, key = under_new_names(columns, clauses), tuple(names_after(key, renames_of(clauses)))
        for clause in clauses:
            if isinstance(clause, ChangeKey):
                key = clause.columns
            if isinstance(clause, AddColumn | ModifyColumn | RenameColumn) and clause.column is not None:
                known_as = next((name for name in columns if name.lower() == clause.column.name.lower()), None)
                if clause.column.type is not None:
                    columns[known_as or clause.column.name] = clause.column.type
    return SchemaVersion(order, tuple(columns.items()), key) if columns else None


def is_defined(model: Sequence[SchemaVersion], effects: Iterable[Effect], order: int) -> bool:
    """Whether the log tells what CREATE TABLE defined of a table before a statement; of one that was made LIKE another,
    whether it tells that of the model. Arguments as ``taken_over``."""
    made = CreatedDefinition(model).before(order)
    stated = [one for one in effects if one.action is Action.CREATE and one.event.order < order]
    if stated and (made is None or made.since <= stated[-1].event.order):
        return not any(isinstance(clause, UntoldModel) for clause in stated[-1].clauses)
    return made is not None


def taken_over(
    definition: SchemaVersion, model: Sequence[SchemaVersion], effects: Iterable[Effect], order: int
) -> tuple[Clause, ...]:
    """The clauses that would define a table as CREATE TABLE ... LIKE does.

    Args:
        definition: its columns and its key.
        model, effects: the definitions of the model, and the statements about it.
        order: the statement's ordering value.
    """
    created = CreatedDefinition(model)
    partitions, generated = KnownPartitions(created.partitions), GeneratedHistory(created.generated)
    indexes, collations = KeyIndexHistory(created.indexes), CollationHistory(created.collations)
    for effect in effects:
        if effect.event.order < order and effect.action in (Action.CREATE, Action.ALTER):
            for known in (partitions, generated, indexes, collations):
                known.note(effect.event.order, effect.action, effect.clauses)
    computed, parts, held = generated.before(order), partitions.before(order), indexes.before(order)
    compared = collations.before(order)
    clauses: list[Clause] = []
    for name, kind in definition.columns:
        column = computed.get(name.lower()) or ColumnDefinition(name, kind.text, kind)
        collation = compared.columns.get(name.lower(), UNNAMED_COLLATION)
        clauses.append(AddColumn(replace(column, collation=collation)))
    clauses.append(TableDefault(compared.default))
    clauses.append(ChangeKey(definition.key, by_index=held is not None and not held.has_primary))
    clauses += [AddUnique(name, tuple(sorted(columns))) for name, columns in (held.unique if held else {}).items()]
    if parts is not None and parts.partitioning is not None:
        clauses.append(ChangePartitions(PartitionAction.DEFINE, defined=parts.partitioning))
    return tuple(clauses)
