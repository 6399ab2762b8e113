"""Defaults that are the time of the statement: rows that existed hold the time at which the statement began.

The log gives this time in whole seconds. DATETIME and DATE hold it in the time zone of the session, which the log does
not give: ``source.time_zone`` is assumed. TIMESTAMP is an instant.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.decode.ddl.columns import ColumnDefinition, Default
from pipeline.errors import UnsupportedError
from pipeline.schema_changes.rules.conversion.session import Session

_NOW = re.compile(r"(?:CURRENT_TIMESTAMP|NOW|LOCALTIME|LOCALTIMESTAMP)(?:\s*\(\s*(\d?)\s*\))?", re.IGNORECASE)
_TODAY = re.compile(r"(?:CURRENT_DATE|CURDATE)(?:\s*\(\s*\))?", re.IGNORECASE)


def is_time(column: ColumnDefinition) -> bool:
    """Whether the default is the time or day of the statement."""
    text = column.expression.strip()
    return not column.generated and bool(_NOW.fullmatch(text) or _TODAY.fullmatch(text))


def at_time(column: ColumnDefinition, session: Session) -> ColumnDefinition:
    """The column with the statement's time as a constant default.

    Raises UnsupportedError, with the reason, where the log does not determine it.
    """
    if session.seconds is None:
        raise UnsupportedError(f"DEFAULT {column.expression} is the statement's time, which the log does not give")
    found = _NOW.fullmatch(column.expression.strip())
    if found is not None and int(found[1] or 0) > 0:
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
