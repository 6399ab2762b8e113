"""Changes of a column's type: the former type, the type of the lake's column, and the step for rows from before."""

from __future__ import annotations

import pyarrow as pa

from binlake.decode.ddl.columns import ColumnDefinition
from binlake.decode.types.mysql_types import MysqlType, parse_type
from binlake.schema.rules.conversion.declared import TypeGroup, kind_of, zerofill_width
from binlake.schema.rules.conversion.lossless import keeps_values
from binlake.schema.rules.conversion.numbers import INTEGERS
from binlake.schema.rules.conversion.session import Session
from binlake.schema.rules.conversion.undetermined import (
    lacks_zero_dates,
    why_ambiguous,
    why_mode_decides,
    why_undetermined,
    why_zero_dates,
)
from binlake.schema.rules.evolution import common_type
from binlake.schema.rules.steps import Convert
from binlake.schema.rules.undetermined import UndeterminedEffect

#: MySQL types to assume where only the lake's type is known: each converts as all types with that lake type do.
_ASSUMED = {
    pa.int32(): "int",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "longtext",
    pa.date32(): "date",
    pa.bool_(): "bit(1)",
}
_NO_IMPLICIT_DEFAULT = frozenset({"date", "datetime", "timestamp", "geometry"})
_TEXTS = frozenset({"char", "varchar", "text"})
#: Characters of the longest whole number, with its sign.
_DIGITS = 20


def assumed_type(kind: pa.DataType) -> MysqlType | None:
    """The MySQL type that a lake type stands for; None if it may stand for types that convert differently."""
    if pa.types.is_decimal(kind):
        return parse_type(f"decimal({kind.precision},{kind.scale})")
    text = _ASSUMED.get(kind)
    return parse_type(text) if text is not None else None


def _stands_for_one(kind: pa.DataType, new: MysqlType) -> bool:
    """Whether all MySQL types with a lake type become the same values in a new type: text may be an ENUM's, which is a
    number too, and a whole number may be a TIME's."""
    if kind in (pa.date32(), pa.bool_()):
        return True
    if kind == pa.string():
        return new.base in _TEXTS
    if kind == pa.int32() or pa.types.is_decimal(kind):
        return kind_of(new) in (TypeGroup.EXACT, TypeGroup.REAL)
    return bool(pa.types.is_floating(kind) and kind_of(new) is TypeGroup.REAL and new.scale is None)


def conversion(
    column: ColumnDefinition,
    old: MysqlType | None,
    before: pa.DataType,
    after: pa.DataType,
    session: Session,
    *,
    rekeys: bool = False,
    never_null: bool = False,
) -> tuple[Convert | None, UndeterminedEffect | None]:
    """The step that gives rows from before a statement the values of the new type; None if they stay as they are.

    Args:
        column: the new definition, of a supported type.
        old: the former MySQL type; None if it is not known.
        before: the type of the lake's column before the statement.
        after: its type from then on.
        session: of the statement.
        rekeys: whether rows that come late need the new type for the text of their key.
        never_null: whether the column is known to have had no null: what is null in the lake is a zero date.
    """
    new = column.type
    assert new is not None
    former = old or assumed_type(before) or (new if before == after == new.lake_type else None)
    if former is None:
        return Convert(column, None, session), UndeterminedEffect(column.name, "its former type is not known")
    why = why_undetermined(former, new, session)
    if why is not None:
        return Convert(column, former, session), UndeterminedEffect(column.name, why)
    alike = after == before or common_type(before, after)[0] == after
    fills = not column.nullable and (new.base not in _NO_IMPLICIT_DEFAULT or becomes_now(column, session))
    unsure = why_ambiguous(former, new) or why_zero_dates(former, new) or why_mode_decides(former, new)
    if becomes_now(column, session) and not never_null:
        unsure = why_not_now(former, new) or unsure
    if old is None and not _stands_for_one(before, new):
        unsure = f"its former type is not known, and {former.text} is assumed"
    if keeps_values(former, new) and alike and not fills and not rekeys and unsure is None:
        return None, None
    return Convert(column, former, session), UndeterminedEffect(column.name, unsure) if unsure is not None else None


def becomes_now(column: ColumnDefinition, session: Session) -> bool:
    """Whether a null becomes the time of the statement: in a TIMESTAMP of MariaDB that is NOT NULL, also in a strict
    session (recorded with 11.4). A MySQL with its defaults refuses the statement."""
    is_timestamp = column.type is not None and column.type.base == "timestamp"
    return is_timestamp and not column.nullable and session.mariadb and session.seconds is not None


def why_not_now(old: MysqlType, new: MysqlType) -> str | None:
    """Why a null that becomes the time of the statement has no known value; None if it has."""
    if lacks_zero_dates(old):
        return "null becomes the time of the statement, but a date whose month or day is zero is null in the lake too"
    return "null becomes the time of the statement, whose fraction of a second no log has" if new.length else None


def is_rewritten(before: pa.DataType, after: pa.DataType) -> bool:
    """Whether files with the one type cannot be read as the other, so that all rows are written anew."""
    return bool(before != after and common_type(before, after)[0] != after)


def keeps_key_texts(column: ColumnDefinition, old: MysqlType | None, before: pa.DataType) -> bool:
    """Whether every record key of a key column, or partition path of a partition column, is the same in the new type.

    Args:
        column: the new definition.
        old: the former MySQL type; None if it is not known.
        before: the type of the lake's column before the statement.
    """
    new = column.type
    former = old or assumed_type(before)
    if new is None or former is None:
        return new is None or before == new.lake_type
    if former.base in INTEGERS and new.base in ("varchar", "char"):
        return zerofill_width(former) is None and (new.length or 1) >= _DIGITS
    return keeps_values(former, new) and (former.base != "decimal" or former.scale == new.scale)


def takes_key_texts(
    column: ColumnDefinition, old: MysqlType | None, before: pa.DataType, after: pa.DataType, session: Session
) -> bool:
    """Whether rows from before the statement can get the record keys of the new type. ``after``: the lake column's type
    from then on; other arguments as ``conversion``."""
    new, former = column.type, old or assumed_type(before)
    if new is None or former is None or why_undetermined(former, new, session) is not None:
        return False
    return bool(after == new.lake_type or (pa.types.is_integer(after) and pa.types.is_integer(new.lake_type)))
