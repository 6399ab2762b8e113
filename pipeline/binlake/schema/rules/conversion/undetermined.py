"""Conversions whose result the log does not determine, or that are not known here."""

from __future__ import annotations

from binlake.decode.types.mysql_types import UNDETERMINED_CHARSET, MysqlType, charset_of
from binlake.schema.rules.conversion.declared import TypeGroup, codec_of, kind_of
from binlake.schema.rules.conversion.lossless import keeps_values
from binlake.schema.rules.conversion.session import Session

#: What takes the number of an ENUM's member.
_NUMBERED = (TypeGroup.EXACT, TypeGroup.REAL, TypeGroup.MOMENT)
_TEXTS = frozenset({"char", "varchar", "text"})
_HOLDS_TEXT = (TypeGroup.TEXT, TypeGroup.CHOICE)
_HOLDS_BYTES = frozenset({"binary", "varbinary", "blob", "bit"})
_DATES = frozenset({"date", "datetime", "timestamp"})
#: Types with a fraction of a second.
_CLOCKS = frozenset({"datetime", "timestamp", "time"})


def why_undetermined(old: MysqlType, new: MysqlType, session: Session) -> str | None:
    """Why the values of ``old`` as ``new`` cannot be computed exactly; None if they can."""
    if old.base == new.base == "geometry":
        return None
    bases = {old.base, new.base}
    if "geometry" in bases:
        return "a spatial value has no form in other types"
    same = old.base == new.base and old.text.lower().split()[:1] == new.text.lower().split()[:1]
    if "uuid" in bases and not same and not (old.base == "uuid" and new.base in _TEXTS):
        return "values that are no UUID or address become null or zero by rules of their own"
    if kind_of(old) is TypeGroup.REAL and kind_of(new) is TypeGroup.MOMENT and not _printed(old, new, session):
        return "the server reads a real number as a date by the form in which it prints it"
    if old.base == "time" and new.base in ("date", "datetime", "timestamp") and session.seconds is None:
        return "a TIME becomes a time of the statement's day, and the log does not give the day"
    if old.base == "bit" and kind_of(new) in (TypeGroup.TEXT, TypeGroup.BYTES) and not session.mariadb:
        return "how MySQL writes bits as text is known for MariaDB alone"
    if new.base == "json" and not session.mariadb and old.base != "json":
        return "MySQL writes a document in an order and with blanks of its own"
    if charset_of(old.text) != charset_of(new.text) and _lacks_members(new):
        return "its character set lacks a character of its members, and others become the error value, too"
    return _why_characters(old, new)


def why_ambiguous(old: MysqlType, new: MysqlType) -> str | None:
    """Why a value of ``old`` has no known value as ``new``: '', or a date whose month or day is zero; None if every
    value has one.

    The lake holds '' for the error value of an ENUM, whose number is 0, and for a member of that text.
    """
    if old.base == "enum" and "" in old.options and kind_of(new) in _NUMBERED:
        return "'' of an ENUM that lists '' is its member or the error value 0: the log does not tell which"
    same = old.base == new.base and (old.length or 0) <= (new.length or 0)
    if old.dates_as_text and not same:
        return "a date whose month or day is zero has another form, which sql_mode decides"
    if new.dates_as_text and kind_of(old) is not TypeGroup.MOMENT:
        return "what is no date becomes a date whose month or day is zero, as sql_mode decides"
    return None


def lacks_zero_dates(kind: MysqlType) -> bool:
    """Whether the lake has null for the type's dates that no calendar has."""
    return kind.base in _DATES and not kind.dates_as_text


def why_zero_dates(old: MysqlType, new: MysqlType) -> str | None:
    """Why dates that no calendar has may have become something else than null, which they are in the lake; None if they
    are null in the new type too, or the lake has dates as text."""
    if not lacks_zero_dates(old) or new.base in _DATES:
        return None
    return "a date whose month or day is zero is null in the lake, and at the source it becomes another value"


def why_mode_decides(old: MysqlType, new: MysqlType) -> str | None:
    """Why fractions of seconds may be others than computed, as ``sql_mode`` is not in the log; None if it has no say.

    MariaDB rounds them with TIME_ROUND_FRACTIONAL, MySQL cuts them off with TIME_TRUNCATE_FRACTIONAL. Neither is a
    default, and neither counts for DATE (measured with MariaDB 11.4).
    """
    if new.base not in _CLOCKS:
        return None
    digits = new.length or 0
    if old.base in _CLOCKS:
        loses = (old.length or 0) > digits
    elif old.base == "decimal":
        loses = (old.scale or 0) > digits
    else:
        loses = kind_of(old) is TypeGroup.REAL or old.base in _TEXTS
    if not loses:
        return None
    return "fractions of seconds are as without TIME_ROUND_FRACTIONAL or TIME_TRUNCATE_FRACTIONAL: no log has sql_mode"


def _printed(old: MysqlType, new: MysqlType, session: Session) -> bool:
    """Whether it is known how a real number is printed and read as a date: MariaDB, DOUBLE and FLOAT without digits."""
    return session.mariadb and old.scale is None and new.base != "time"


def _why_characters(old: MysqlType, new: MysqlType) -> str | None:
    """Why it is not known which characters a column takes, or which bytes they are."""
    if kind_of(old) not in _HOLDS_TEXT and old.base not in _HOLDS_BYTES:
        return None
    if new.base in _HOLDS_BYTES:
        return _unknown_charset(old) if kind_of(old) in _HOLDS_TEXT else None
    if kind_of(new) is not TypeGroup.TEXT:
        return None
    same = charset_of(old.text) == charset_of(new.text) and (new.base != "text" or keeps_values(old, new))
    return None if same else _unknown_charset(new)


def _lacks_members(kind: MysqlType) -> bool:
    """Whether the character set of an ENUM or SET is known to lack a character of its members, or may."""
    if "".join(kind.options).isascii():
        return False
    try:
        codec = codec_of(kind)
    except LookupError:
        return True
    if codec is None or codec == "ucs2":
        return codec is not None and any(character > "\uffff" for character in "".join(kind.options))
    return any(option.encode(codec, "replace").decode(codec) != option for option in kind.options)


def _unknown_charset(kind: MysqlType) -> str | None:
    charset = charset_of(kind.text)
    if charset == UNDETERMINED_CHARSET:
        return "no log says which character set the table has by default"
    try:
        codec_of(kind)
    except LookupError:
        return f"the character set {charset} is not known"
    return None
