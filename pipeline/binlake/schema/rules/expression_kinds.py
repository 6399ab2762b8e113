"""Which MySQL expressions over which MySQL types have the same value in DuckDB: what is not listed here has not.

The type of a lake's column does not say what its values mean to the server: a TIME is microseconds in the lake and
HHMMSS as a number, a BIT(1) is a byte as text, an ENUM is its place in the list as a number, a YEAR of 0 is 0000 as
text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum

import pyarrow as pa
from sqlglot import exp

from binlake.decode.types.mysql_types import MysqlType, charset_of
from binlake.schema.rules.conversion.declared import zerofill_width


class Kind(StrEnum):
    """What the values of an expression are; for those of a column that fits no other kind, ``OTHER``."""

    WHOLE = "whole number"
    DECIMAL = "decimal"
    COUNTED = "number that the server prints or compares by rules of its own"
    TRUTH = "condition"
    TEXT = "text"
    DATE = "date"
    MOMENT = "date with a time"
    NULL = "null"
    OTHER = "value of another type"


class NotListedError(Exception):
    """An expression of which it is not known that its value is the server's; the text says why."""


_KIND_OF_BASE = {
    **dict.fromkeys(["tinyint", "smallint", "mediumint", "int", "bigint", "bool"], Kind.WHOLE),
    "decimal": Kind.DECIMAL,
    "year": Kind.COUNTED,
    **dict.fromkeys(["char", "varchar", "text"], Kind.TEXT),
    "date": Kind.DATE,
    "datetime": Kind.MOMENT,
}
_DATES = frozenset({"date", "datetime", "timestamp"})
_CHARACTERS = frozenset({"char", "varchar", "text"})
#: Types whose values are printed with as many digits, or bits, as the type has.
_PRINTED_BY_LENGTH = frozenset({"datetime", "timestamp", "time", "bit", "float", "double"})
_EXACT = frozenset({Kind.WHOLE, Kind.DECIMAL})
_COUNTS = frozenset({Kind.WHOLE, Kind.COUNTED})
_TRUTHS = frozenset({Kind.WHOLE, Kind.COUNTED, Kind.TRUTH})
_PRINTED = frozenset({Kind.WHOLE, Kind.DECIMAL, Kind.TEXT})
#: The kinds of the values that a column takes; they are converted to its type as a number, a text or a date is.
RESULTS = frozenset({Kind.WHOLE, Kind.DECIMAL, Kind.TRUTH, Kind.TEXT, Kind.DATE, Kind.NULL})
_MOST_WHOLE = (1 << 63) - 1
_POINT = re.compile(r"\d*\.\d*")

#: What an operation takes, and what it makes of it: None is the kind that its arguments have together.
_OPERATIONS: dict[type[exp.Expression], tuple[frozenset[Kind], Kind | None]] = {
    **dict.fromkeys((exp.Add, exp.Sub, exp.Neg, exp.Abs), (_EXACT | _COUNTS, None)),
    # a product of decimals may have more digits than fit here; DIV of decimals is rounded by rules of the server
    **dict.fromkeys((exp.Mul, exp.IntDiv), (_COUNTS, None)),
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In), (_EXACT, Kind.TRUTH)),
    **dict.fromkeys((exp.And, exp.Or, exp.Not), (_TRUTHS, Kind.TRUTH)),
    exp.Concat: (_PRINTED, Kind.TEXT),
    **dict.fromkeys((exp.Year, exp.Month, exp.Day, exp.DayOfMonth), (frozenset({Kind.DATE, Kind.MOMENT}), Kind.WHOLE)),
    exp.TsOrDsToDate: (frozenset({Kind.DATE, Kind.MOMENT}), Kind.DATE),
}
#: Of other nodes, those that the rules below know.
_LISTED = (exp.Column, exp.Identifier, exp.Literal, exp.Null, exp.Boolean, exp.Paren, exp.If, exp.Case, exp.Coalesce)
LISTED = (*_OPERATIONS, *_LISTED, exp.Nullif, exp.Is)


class Kinds:
    """The kinds of expressions over a table. ``types``: of its source's columns, by name in lower case; ``lake``: the
    types that the lake has for them."""

    def __init__(self, types: Mapping[str, MysqlType], lake: Mapping[str, pa.DataType]) -> None:
        self._types, self._lake = types, lake

    def of(self, node: exp.Expression) -> Kind:
        """The kind of an expression. Raises NotListedError."""
        if isinstance(node, exp.Paren):
            return self.of(node.this)
        if isinstance(node, exp.Null):
            return Kind.NULL
        if isinstance(node, exp.Boolean):
            return Kind.TRUTH
        if isinstance(node, exp.Literal):
            return _literal(node)
        if isinstance(node, exp.Column):
            return self._column(node.name)
        if isinstance(node, exp.Is):
            return self._is(node)
        if isinstance(node, exp.If):
            self._all([node.this], _TRUTHS, node)
            return self._together([node.args.get("true"), node.args.get("false")], node)
        if isinstance(node, exp.Case):
            return self._case(node)
        if isinstance(node, exp.Coalesce):
            return self._coalesce(node)
        if isinstance(node, exp.Nullif):
            first, second = self.of(node.this), self.of(node.expression)
            _check({first, second}, _EXACT, node)
            return first
        taken, made = _OPERATIONS[type(node)]
        kinds = self._all(_arguments(node), taken, node)
        return made or (Kind.DECIMAL if Kind.DECIMAL in kinds else Kind.WHOLE)

    def _column(self, name: str) -> Kind:
        kind, lake = self._types.get(name.lower()), self._lake.get(name.lower())
        if kind is None:
            raise NotListedError(f"the type of {name} at the source is not known")
        if kind.dates_as_text:
            raise NotListedError(f"it reads {name}, which is text in the lake")
        listed = _KIND_OF_BASE.get(kind.base, Kind.OTHER)
        if lake is not None and not _holds(lake, kind):
            raise NotListedError(f"{name} is {kind.text or kind.base} at the source and {lake} in the lake")
        if kind.base == "decimal" and not pa.types.is_decimal(kind.lake_type):
            return Kind.OTHER
        if kind.base == "bigint" and kind.unsigned:
            listed = Kind.DECIMAL
        padded = listed in _EXACT and zerofill_width(kind) is not None
        return Kind.COUNTED if padded and listed is Kind.WHOLE else Kind.OTHER if padded else listed

    def _is(self, node: exp.Is) -> Kind:
        if isinstance(node.expression, exp.Boolean):
            self._all([node.this], _TRUTHS, node)
        elif isinstance(node.expression, exp.Null):
            self._refuse_dates([node.this])
            self.of(node.this)
        else:
            raise NotListedError("IS is known for NULL, TRUE and FALSE alone")
        return Kind.TRUTH

    def _case(self, node: exp.Case) -> Kind:
        branches: list[exp.Expression] = node.args["ifs"]
        conditions = [branch.this for branch in branches]
        if node.this is not None:
            self._all([node.this, *conditions], _EXACT, node)
        else:
            self._all(conditions, _TRUTHS, node)
        return self._together([*(branch.args.get("true") for branch in branches), node.args.get("default")], node)

    def _coalesce(self, node: exp.Coalesce) -> Kind:
        self._refuse_dates([node.this, *node.expressions])
        return self._together([node.this, *node.expressions], node)

    def _refuse_dates(self, nodes: Iterable[exp.Expression]) -> None:
        for column in (column for node in nodes for column in node.find_all(exp.Column)):
            kind = self._types.get(column.name.lower())
            if kind is not None and kind.base in _DATES:
                raise NotListedError(f"{column.name} may have dates whose month or day is zero, null in the lake")

    def _together(self, nodes: Iterable[exp.Expression | None], above: exp.Expression) -> Kind:
        """The kind of a value that is one of several."""
        given = [(node, self.of(node)) for node in nodes if node is not None]
        kinds = {kind for _, kind in given} - {Kind.NULL}
        texts = {node.sql() for node, kind in given if kind is Kind.DECIMAL}
        if len(kinds) > 1 or len(texts) > 1:
            # the server prints each decimal with the digits of its own branch
            raise NotListedError(f"{_name(above)} of {_listing(kinds)} has a type by rules of the server")
        (kind,) = kinds or {Kind.NULL}
        return kind

    def _all(self, nodes: Iterable[exp.Expression], taken: frozenset[Kind], above: exp.Expression) -> set[Kind]:
        kinds = {self.of(node) for node in nodes}
        _check(kinds, taken, above)
        return kinds


def _check(kinds: set[Kind], taken: frozenset[Kind], above: exp.Expression) -> None:
    """Raise NotListedError for kinds that an operation does not take; all take null."""
    if wrong := kinds - taken - {Kind.NULL}:
        raise NotListedError(f"{_name(above)} of a {_listing(wrong)} follows rules of the server")


def _arguments(node: exp.Expression) -> list[exp.Expression]:
    return [one for one in node.iter_expressions() if isinstance(one, exp.Expression)]


def _literal(node: exp.Literal) -> Kind:
    if node.is_string:
        return Kind.TEXT
    if node.is_int and int(node.this) <= _MOST_WHOLE:
        return Kind.WHOLE
    if _POINT.fullmatch(node.this):
        return Kind.DECIMAL
    raise NotListedError(f"the number {node.this} is rounded by rules of the server")


def _holds(lake: pa.DataType, kind: MysqlType) -> bool:
    """Whether the lake's column has the values in the form of the type, if it is wider too."""
    wanted = kind.lake_type
    if pa.types.is_integer(wanted):
        return bool(pa.types.is_integer(lake))
    if pa.types.is_decimal(wanted):
        return bool(pa.types.is_decimal(lake) and lake.scale == wanted.scale)
    return bool(lake == wanted)


def _name(node: exp.Expression) -> str:
    return str(node.key).upper()


def _listing(kinds: Iterable[Kind]) -> str:
    return " and ".join(sorted(kinds))


def same_meaning(old: MysqlType, new: MysqlType) -> bool:
    """Whether a value that is equal in both types has the same value in every expression."""
    if zerofill_width(old) != zerofill_width(new) or charset_of(new.text) not in (None, charset_of(old.text)):
        return False
    if _KIND_OF_BASE.get(old.base) is Kind.WHOLE and _KIND_OF_BASE.get(new.base) is Kind.WHOLE:
        return True
    if {old.base, new.base} <= _CHARACTERS:
        return True
    digits = old.length == new.length or old.base not in _PRINTED_BY_LENGTH
    members = new.options[: len(old.options)] == old.options
    return old.base == new.base and old.scale == new.scale and members and digits
