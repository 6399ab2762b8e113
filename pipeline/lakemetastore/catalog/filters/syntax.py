"""Conditions on partition columns as text, by the grammar of the Hive Metastore 3.1.3 (Filter.g).

``key op value``, ``value op key`` with ``= != <> < <= > >= LIKE``; ``key [NOT] BETWEEN value AND value``;
``(key) [NOT] IN (value, ...)``; ``(STRUCT(key, ...)) [NOT] IN (CONST STRUCT(value, ...), ...)``; AND binds closer than
OR; parentheses. Values are quoted texts, integers and bare dates. There is no unary NOT. Besides the grammar, the key
of IN may stand without parentheses, and a text after the condition is refused: the Metastore does not read it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import TypeVar

from lakemetastore.catalog.filters.columns import day
from lakemetastore.errors import MetaError


class Op(Enum):
    """A comparison."""

    EQUAL = "="
    UNEQUAL = "<>"
    LESS = "<"
    AT_MOST = "<="
    GREATER = ">"
    AT_LEAST = ">="
    LIKE = "LIKE"


@dataclass(frozen=True, slots=True)
class Day:
    """A date that stands without quotes, as ``yyyy-MM-dd``."""

    text: str


Value = str | int | Day


@dataclass(frozen=True, slots=True)
class Comparison:
    """A key compared with a value. ``reversed``: the value stood first, as in ``5 < key``."""

    key: str
    op: Op
    value: Value
    reversed: bool = False


@dataclass(frozen=True, slots=True)
class Every:
    """All of several conditions."""

    terms: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """At least one of several conditions."""

    terms: tuple[Condition, ...]


Condition = Comparison | Every | Some

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<date>(?:date\s*)?\d{4}-\d{2}-\d{2}) |
    (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*") |
    (?P<word>[A-Za-z0-9]*[A-Za-z][A-Za-z0-9_]*|[0-9]+_[A-Za-z0-9_]*) |
    (?P<integer>-?\d+) |
    (?P<sign><>|!=|<=|>=|[<>=(),])
    )""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_KEYWORDS = frozenset({"NOT", "AND", "OR", "LIKE", "CONST", "STRUCT", "BETWEEN", "IN"})
_OPS = {op.value: op for op in Op} | {"!=": Op.UNEQUAL}
_LONG = 1 << 63
_LONGEST_INTEGER = 100
_KEPT_LENGTH = 2000
_DEEPEST = 100
#: Of comparisons in a condition. Each may look at all partitions.
_MOST_COMPARISONS = 10_000
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


def parse(text: str) -> Condition | None:
    """A condition from its text; None for the empty text, which all partitions meet.

    Raises MetaError for a text that is no condition.
    """
    if len(text) > _KEPT_LENGTH:
        return _Parser(text).whole()
    return _parse_short(text) if text else None


@lru_cache(maxsize=1024)
def _parse_short(text: str) -> Condition:
    return _Parser(text).whole()


@dataclass
class _Parser:
    text: str
    tokens: list[_Token] = field(init=False)
    position: int = 0
    depth: int = 0

    def __post_init__(self) -> None:
        self.tokens = _tokens(self.text)
        values = sum(token.kind in ("text", "integer", "date") for token in self.tokens)
        if values > _MOST_COMPARISONS:
            problem = f"{values} values, and at most {_MOST_COMPARISONS} are compared"
            raise MetaError(f"Error parsing partition filter; lexer error: null; {problem}")

    def whole(self) -> Condition:
        condition = self._any()
        if self._peek().kind != "end":
            raise self._error("the end")
        return condition

    def _any(self) -> Condition:
        return self._joined("OR", self._all, Some)

    def _all(self) -> Condition:
        return self._joined("AND", self._term, Every)

    def _joined(self, word: str, part: Callable[[], Condition], join: type[Some] | type[Every]) -> Condition:
        terms = [part()]
        while self._take(word):
            terms.append(part())
        return terms[0] if len(terms) == 1 else join(tuple(terms))

    def _term(self) -> Condition:
        if self._is("(", "STRUCT"):
            return self._struct_in()
        if self._is("("):
            if self._peek(1).kind == "word" and self._is(")", ahead=2):
                self._need("(")
                key = self._key()
                self._need(")")
                return self._in(key)
            return self._nested()
        if self._peek().kind == "word":
            return self._of_key(self._key())
        value = self._value()
        op = self._operator()
        return Comparison(self._key(), op, value, reversed=True)

    def _nested(self) -> Condition:
        self._need("(")
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self._error(f"at most {_DEEPEST} parentheses in each other")
        inner = self._any()
        self.depth -= 1
        self._need(")")
        return inner

    def _of_key(self, key: str) -> Condition:
        if self._is("IN") or self._is("NOT", "IN"):
            return self._in(key)
        negated = self._take("NOT")
        if self._take("BETWEEN"):
            kind = self._peek().kind
            low = self._value()
            self._need("AND")
            high = self._value(kind)
            if negated:
                return Some((Comparison(key, Op.LESS, low), Comparison(key, Op.GREATER, high)))
            return Every((Comparison(key, Op.AT_LEAST, low), Comparison(key, Op.AT_MOST, high)))
        if negated:
            raise self._error("BETWEEN or IN")
        op = self._operator()
        return Comparison(key, op, self._value())

    def _in(self, key: str) -> Condition:
        negated = self._take("NOT")
        self._need("IN")
        self._need("(")
        kind = self._peek().kind
        values = [self._value()]
        while self._take(","):
            values.append(self._value(kind))
        self._need(")")
        return _one_of([Comparison(key, _equality(negated), value) for value in values], negated)

    def _struct_in(self) -> Condition:
        self._need("(")
        keys = self._struct(self._key)
        self._need(")")
        negated = self._take("NOT")
        self._need("IN")
        self._need("(")
        rows = [self._constant(keys, negated)]
        while self._take(","):
            rows.append(self._constant(keys, negated))
        self._need(")")
        return _one_of(rows, negated)

    def _constant(self, keys: list[str], negated: bool) -> Condition:
        self._need("CONST")
        values = self._struct(self._value)
        if len(values) != len(keys):
            raise self._error(f"{len(keys)} values in each STRUCT")
        parts = [Comparison(key, _equality(negated), value) for key, value in zip(keys, values, strict=True)]
        return _one_of(parts, not negated)

    def _struct(self, part: Callable[[], _T]) -> list[_T]:
        self._need("STRUCT")
        self._need("(")
        parts = [part()]
        while self._take(","):
            parts.append(part())
        self._need(")")
        return parts

    def _operator(self) -> Op:
        op = _OPS.get(self._peek().text.upper())
        if op is None or self._peek().kind not in ("sign", "keyword"):
            raise self._error("a comparison")
        self.position += 1
        return op

    def _key(self) -> str:
        if self._peek().kind != "word":
            raise self._error("a partition key")
        return self._next().text

    def _value(self, kind: str | None = None) -> Value:
        token = self._peek()
        if token.kind not in ("text", "integer", "date") or kind not in (None, token.kind):
            raise self._error("a value" if kind is None else f"a value of the kind {kind}")
        self.position += 1
        return _value_of(token)

    def _peek(self, ahead: int = 0) -> _Token:
        return self.tokens[min(self.position + ahead, len(self.tokens) - 1)]

    def _next(self) -> _Token:
        self.position += 1
        return self.tokens[self.position - 1]

    def _is(self, *texts: str, ahead: int = 0) -> bool:
        following = (self._peek(ahead + i) for i in range(len(texts)))
        return all(
            t.kind in ("sign", "keyword") and t.text.upper() == text for t, text in zip(following, texts, strict=True)
        )

    def _take(self, text: str) -> bool:
        is_present = self._is(text)
        self.position += is_present
        return is_present

    def _need(self, text: str) -> None:
        if not self._take(text):
            raise self._error(text)

    def _error(self, wanted: str) -> MetaError:
        token = self._peek()
        got = f"'{token.text}'" if token.text else "the end"
        problem = f"exception at {token.at}: {wanted} was expected, got {got}"
        return MetaError(f"Error parsing partition filter; lexer error: null; {problem}")


def _tokens(text: str) -> list[_Token]:
    tokens, start = [], 0
    end = len(text.rstrip())
    while start < end:
        match = _TOKEN.match(text, start)
        if match is None:
            raise MetaError(
                f"Error parsing partition filter : line 1:{start} no viable alternative at '{text[start : start + 20]}'"
            )
        kind = match.lastgroup or ""
        lexeme = match[kind]
        is_keyword = kind == "word" and lexeme.upper() in _KEYWORDS
        tokens.append(_Token("keyword" if is_keyword else kind, lexeme, match.start(kind)))
        start = match.end()
    return [*tokens, _Token("end", "", end)]


def _value_of(token: _Token) -> Value:
    if token.kind == "text":
        return token.text[1:-1]
    if token.kind == "integer":
        number = int(token.text[:_LONGEST_INTEGER])
        if len(token.text) > _LONGEST_INTEGER or not -_LONG <= number < _LONG:
            raise MetaError(f'java.lang.NumberFormatException: For input string: "{token.text}"')
        return number
    digits = token.text[-10:]
    if day(digits) is None:
        raise MetaError(f"Error parsing partition filter : line 1:{token.at} {token.text} is no date")
    return Day(digits)


def _equality(negated: bool) -> Op:
    return Op.UNEQUAL if negated else Op.EQUAL


def _one_of(terms: list[Comparison] | list[Condition], all_of: bool) -> Condition:
    if len(terms) == 1:
        return terms[0]
    return Every(tuple(terms)) if all_of else Some(tuple(terms))
