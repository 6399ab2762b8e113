"""Defaults whose value depends on the statement's session: its time, and its time zone.

The log gives the time at which the statement began in whole seconds. It does not give the session's time zone:
``source.time_zone`` is assumed. A DATETIME or DATE holds the statement's time in that zone, and the text of a TIMESTAMP
is in that zone.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.ddl.columns import ColumnDefinition, Default
from binlake.decode.types.mysql_types import MysqlType
from binlake.schema.rules.conversion.columns import converted
from binlake.schema.rules.conversion.session import Session
from hudilake.errors import UnsupportedError

_NOW = re.compile(r"(?:CURRENT_TIMESTAMP|NOW|LOCALTIME|LOCALTIMESTAMP)(?:\s*\(\s*(\d?)\s*\))?", re.IGNORECASE)
_TODAY = re.compile(r"(?:CURRENT_DATE|CURDATE)(?:\s*\(\s*\))?", re.IGNORECASE)
_DATETIME = MysqlType("datetime", 6, text="datetime(6)")


def with_session(column: ColumnDefinition, session: Session) -> ColumnDefinition:
    """The column with a constant default that no longer depends on the session.

    Raises UnsupportedError, with the reason, where the log does not determine it.
    """
    if is_time(column):
        return _at_time(column, session)
    if column.type is not None and column.type.base == "timestamp" and column.literal is not None:
        return _in_zone(column, column.type, column.literal, session)
    return column


def is_time(column: ColumnDefinition) -> bool:
    """Whether the default is the time or day of the statement."""
    text = column.expression.strip()
    return not column.generated and bool(_NOW.fullmatch(text) or _TODAY.fullmatch(text))


def _in_zone(column: ColumnDefinition, kind: MysqlType, literal: str, session: Session) -> ColumnDefinition:
    """A TIMESTAMP with its text in UTC."""
    try:
        local = datetime.fromisoformat(literal)
    except ValueError as error:
        raise UnsupportedError(f"{literal!r} cannot be read as {kind.text}") from error
    if local.tzinfo is None:
        stamp = replace(kind, dates_as_text=False)
        instant = converted(_DATETIME, stamp, pa.array([local], pa.timestamp("us", tz="UTC")), session)[0].as_py()
    else:
        instant = local.astimezone(UTC)
    if instant is None:
        raise UnsupportedError(f"{literal!r} is no moment that {kind.text} holds")
    return replace(column, literal=instant.isoformat(sep=" "))


def _at_time(column: ColumnDefinition, session: Session) -> ColumnDefinition:
    """The column with the statement's time as a constant default."""
    if session.seconds is None:
        raise UnsupportedError(f"DEFAULT {column.expression} is the statement's time, which the log does not give")
    now_match = _NOW.fullmatch(column.expression.strip())
    if now_match is not None and int(now_match[1] or 0) > 0:
        raise UnsupportedError(f"DEFAULT {column.expression} has fractions of a second, and the log has whole seconds")
    base = column.type.base if column.type is not None else ""
    if base == "timestamp":
        literal = f"{datetime.fromtimestamp(session.seconds, UTC):%Y-%m-%d %H:%M:%S}+00:00"
    elif base in ("datetime", "date"):
        moment = pa.scalar(session.seconds * 1_000_000, pa.timestamp("us", tz=session.zone))
        local: datetime = pc.local_timestamp(moment).as_py()
        literal = f"{local:%Y-%m-%d %H:%M:%S}" if base == "datetime" else f"{local:%Y-%m-%d}"
    else:
        raise UnsupportedError(f"DEFAULT {column.expression} of type {column.type_text}")
    return replace(column, default=Default.CONSTANT, literal=literal, computed="", expression="")
