"""The steps by which a statement changes rows from before it, and their form in commit records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from binlake.decode.changes import ZeroDates
from binlake.decode.ddl.columns import ColumnDefinition, Default
from binlake.decode.ddl.partitions import parse_partitioning
from binlake.decode.types.mysql_types import MysqlType, parse_type
from binlake.decode.types.zero_dates import lake_form
from binlake.schema.rules.conversion.session import Session
from binlake.schema.rules.partitions.members import Removal
from hudilake.errors import UnsupportedError
from hudilake.format.definition.column_names import lake_name


@dataclass(frozen=True, slots=True)
class Fill:
    """A column was added: rows before it hold its default."""

    column: ColumnDefinition


@dataclass(frozen=True, slots=True)
class Copy:
    """A column was renamed: rows before it hold its values under the new name. ``move``: the old name is removed."""

    old: str
    new: str
    column: ColumnDefinition | None = None
    move: bool = False


@dataclass(frozen=True, slots=True)
class Convert:
    """A column got another type: rows before it hold its values in that type.

    ``old``: the former type; None if it is not known, or its values are not kept: rows before hold null then.
    """

    column: ColumnDefinition
    old: MysqlType | None
    session: Session = field(default_factory=Session)


@dataclass(frozen=True, slots=True)
class Compute:
    """A column is an expression over its row: rows before the statement hold its values. ``expression``: MySQL's.
    ``scales``: the decimal places of the DECIMAL columns that it reads, which stored rows may have with fewer."""

    column: ColumnDefinition
    expression: str
    session: Session = field(default_factory=Session)
    scales: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Follow:
    """A column is an expression that is not known to be computed as at the server: rows before the statement in which
    it changes one of the columns ``bases``, which the expression reads, hold null."""

    column: ColumnDefinition
    bases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Remove:
    """Partitions were dropped or truncated: their rows from before the statement are deleted."""

    removal: Removal


Step = Fill | Copy | Convert | Compute | Follow | Remove


def stored_step(step: Step) -> Step:
    """The step with the names of the lake's columns."""
    if isinstance(step, Remove):
        return step
    if isinstance(step, Copy):
        return replace(step, old=lake_name(step.old), new=lake_name(step.new))
    column = replace(step.column, name=lake_name(step.column.name))
    if isinstance(step, Follow):
        return Follow(column, tuple(map(lake_name, step.bases)))
    return replace(step, column=column)


def step_to_json(step: Step) -> list[Any]:
    """The step as commits record it."""
    if isinstance(step, Fill):
        return ["fill", _definition_to_json(step.column)]
    if isinstance(step, Copy):
        return ["copy", step.old, step.new, step.move, step.column and _definition_to_json(step.column)]
    if isinstance(step, Remove):
        return ["remove", str(step.removal.partitioning), list(step.removal.names)]
    if isinstance(step, Follow):
        return ["follow", _definition_to_json(step.column), list(step.bases)]
    session = step.session
    facts = [session.zone, session.mariadb, session.seconds]
    if isinstance(step, Compute):
        return [
            "compute",
            _definition_to_json(step.column),
            step.expression,
            *facts,
            [list(one) for one in step.scales],
        ]
    return ["convert", _definition_to_json(step.column), step.old and _type_to_json(step.old), *facts]


def step_from_json(said: Sequence[Any]) -> Step:
    """The reverse of ``step_to_json``. Raises ValueError, TypeError for other data."""
    if said[0] == "fill":
        return Fill(_definition_from_json(said[1]))
    if said[0] == "copy":
        return Copy(said[1], said[2], _definition_from_json(said[4]) if said[4] else None, said[3])
    if said[0] == "remove":
        return Remove(Removal(parse_partitioning(said[1]), tuple(said[2])))
    if said[0] == "follow":
        return Follow(_definition_from_json(said[1]), tuple(said[2]))
    if said[0] == "compute":
        scales = tuple((name, scale) for name, scale in (said[6] if len(said) > 6 else ()))  # not in older commits
        return Compute(_definition_from_json(said[1]), said[2], Session(*said[3:6]), scales)
    if said[0] != "convert":
        raise ValueError(f"unknown step {said[0]!r}")
    _, column, old, zone, mariadb, seconds = said
    session = Session(zone, mariadb, seconds)
    return Convert(_definition_from_json(column), _type_from_json(old) if old is not None else None, session)


def _type_to_json(kind: MysqlType) -> str | list[str]:
    """The type's text, in a list if the lake has its dates as text."""
    text = kind.text or kind.base
    return [text] if kind.dates_as_text else text


def _type_from_json(said: str | list[str]) -> MysqlType:
    text = said if isinstance(said, str) else said[0]
    try:
        kind = parse_type(text)
    except UnsupportedError as error:
        raise ValueError(f"unknown type {text!r}") from error
    return kind if isinstance(said, str) else lake_form(kind, ZeroDates.TEXT)


def _definition_to_json(column: ColumnDefinition) -> list[Any]:
    kind: str | list[str] = column.type_text
    if column.type is not None and column.type.dates_as_text:
        kind = [column.type_text]
    return [column.name, kind, column.nullable, column.default.value, column.literal, column.as_bytes]


def _definition_from_json(said: Sequence[Any]) -> ColumnDefinition:
    name, kind, nullable, default, literal, as_bytes = said
    text = kind if isinstance(kind, str) else kind[0]
    return ColumnDefinition(name, text, _type_from_json(kind), nullable, Default(default), literal, as_bytes)
