"""Tokens of a MySQL or MariaDB statement, without comments. The content of ``/*! */`` counts as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["word", "quoted", "string", "bytes", "number", "sign"]

_TOKEN = re.compile(
    r"""(?P<space>\s+|--(?:[ \t\r][^\n]*)?(?=\n|$)|\#[^\n]*|/\*(?![!M]).*?\*/|/\*M(?!!).*?\*/)
    |(?P<open>/\*M?!\d*)|(?P<close>\*/)
    |(?P<quoted>`(?:[^`]++|``)*`)
    |(?P<bytes>[xX]'[0-9A-Fa-f]*'|0x[0-9A-Fa-f]+\b|[bB]'[01]*'|0b[01]+\b)
    |(?P<string>'(?:[^'\\]++|''|\\.)*'|"(?:[^"\\]++|""|\\.)*")
    |(?P<number>(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?(?![A-Za-z0-9_$\x80-\U0010ffff]))
    |(?P<word>[A-Za-z0-9_$@\x80-\U0010ffff]+)
    |(?P<unended>['"`]|/(?=\*))
    |(?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
#: Each quote or comment without an end costs a search to the end of the text, so a forged text could take hours.
_MOST_UNENDED = 16
#: No server executes a statement beyond these: 65,535 members of an ENUM, or 8,192 partitions, take less. Tokens cost 5
#: to 20 microseconds each (measured), so what is within them is read in seconds at worst.
_MOST_TOKENS = 200_000
_MOST_DEPTH = 100
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "Z": "\x1a"}


class AbsurdStatementError(ValueError):
    """No server executes such a statement: a number, its length or its brackets are beyond every server's bounds."""


@dataclass(frozen=True, slots=True)
class Token:
    """One token. ``text``: as written. ``value``: the content of a string or quoted identifier, else the text."""

    kind: Kind
    text: str
    value: str

    def is_word(self, *words: str) -> bool:
        """Whether the token is one of these keywords (upper case)."""
        return self.kind == "word" and self.text.upper() in words

    def is_sign(self, sign: str) -> bool:
        """Whether the token is this sign."""
        return self.kind == "sign" and self.text == sign

    @property
    def names(self) -> bool:
        """Whether the token can be an identifier. A double-quoted one is an identifier under ANSI_QUOTES."""
        return self.kind in ("word", "quoted") or self.text.startswith('"')


def tokens_of(statement: str) -> list[Token]:
    """The statement's tokens. A character that no rule matches is a sign of its own; nothing raises.

    After 16 quotes and comments without an end, the rest is one sign: no server executes such a statement.
    """
    return list(read_tokens(statement))


def read_tokens(statement: str) -> Iterator[Token]:
    """The same, one after another."""
    unended = 0
    for match in _TOKEN.finditer(statement):
        kind, text = match.lastgroup, match.group()
        if kind in ("space", "open", "close") or kind is None:
            continue
        if kind == "unended":
            unended += 1
            if unended > _MOST_UNENDED:
                yield Token("sign", statement[match.start() :], statement[match.start() :])
                return
            kind = "sign"
        yield Token(kind, text, _value(kind, text))  # type: ignore[arg-type]


def _value(kind: str, text: str) -> str:
    if kind == "quoted":
        return text[1:-1].replace("``", "`")
    if kind != "string":
        return text
    quote = text[0]

    def opened(match: re.Match[str]) -> str:
        return quote if match.group() == quote * 2 else _ESCAPES.get(match.group(1), match.group(1))

    return re.sub(rf"{quote}{quote}|\\(.)", opened, text[1:-1], flags=re.DOTALL)


def statement_tokens(given: Iterable[Token]) -> list[Token]:
    """All tokens of a statement. Raises AbsurdStatementError for one that no server executes."""
    tokens: list[Token] = []
    depth = 0
    for token in given:
        tokens.append(token)
        if len(tokens) > _MOST_TOKENS:
            raise AbsurdStatementError("too long")
        depth += token.is_sign("(") - token.is_sign(")")
        if depth > _MOST_DEPTH:
            raise AbsurdStatementError("too many brackets")
    return tokens


def split_at_commas(tokens: Sequence[Token]) -> list[list[Token]]:
    """The parts between commas that are not inside brackets."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += token.is_sign("(") - token.is_sign(")")
        if token.is_sign(",") and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def text_of(tokens: Sequence[Token]) -> str:
    """The tokens as a text of the same meaning."""
    parts: list[str] = []
    for token in tokens:
        apart = parts and not parts[-1].endswith(("(", ",")) and token.text not in ("(", ")", ",")
        parts.append(f" {token.text}" if apart else token.text)
    return "".join(parts)


def expression_text(tokens: Sequence[Token]) -> str:
    """The tokens of an expression as a text of the same meaning: signs of one operator stay together."""
    parts: list[str] = []
    former = None
    for token in tokens:
        joined = former is None or (former.kind == "sign" and token.kind == "sign") or "." in (former.text, token.text)
        bracket = token.is_sign("(") and former is not None and former.kind == "word"
        parts.append(token.text if joined or bracket else f" {token.text}")
        former = token
    return "".join(parts)


def renamed_in(expression: str, names: Mapping[str, str]) -> str:
    """An expression with other names of columns. ``names``: the new ones, by the former ones in lower case."""
    tokens = tokens_of(expression)
    if not any(token.kind in ("word", "quoted") and token.value.lower() in names for token in tokens):
        return expression
    changed = list(tokens)
    for index, token in enumerate(tokens):
        called = token.kind == "word" and index + 1 < len(tokens) and tokens[index + 1].is_sign("(")
        if token.kind in ("word", "quoted") and token.value.lower() in names and not called:
            changed[index] = _quoted(names[token.value.lower()])
    return expression_text(changed)


def _quoted(name: str) -> Token:
    return Token("quoted", f"`{name.replace('`', '``')}`", name)


class Reader:
    """Reads tokens from left to right."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def rest(self) -> Sequence[Token]:
        """The tokens that have not been read."""
        return self._tokens[self._at :]

    @property
    def left(self) -> bool:
        """Whether there are tokens that have not been read."""
        return self._at < len(self._tokens)

    @property
    def next(self) -> Token:
        """The next token. Raises IndexError if none is left."""
        return self._tokens[self._at]

    def ahead(self, count: int) -> Sequence[Token]:
        """The next tokens, fewer at the end."""
        return self._tokens[self._at : self._at + count]

    def take(self, *words: str) -> bool:
        """Skip these keywords if all of them come next; whether they did."""
        coming = self._tokens[self._at : self._at + len(words)]
        matches = len(coming) == len(words) and all(t.is_word(w) for t, w in zip(coming, words, strict=True))
        self._at += len(words) if matches else 0
        return matches

    def take_any(self, *words: str) -> bool:
        """Skip the next keyword if it is one of these; whether it was."""
        return any(self.take(word) for word in words)

    def take_sign(self, sign: str) -> bool:
        """Skip a sign if it comes next; whether it did."""
        matches = self.left and self.next.is_sign(sign)
        self._at += matches
        return matches

    def name(self) -> str | None:
        """Read an identifier; None if the next token is not one."""
        if not self.left or not self.next.names:
            return None
        self._at += 1
        return self._tokens[self._at - 1].value

    def bracketed(self) -> list[Token] | None:
        """Read the tokens inside the next pair of brackets; None if no bracket comes next."""
        if not self.take_sign("("):
            return None
        start, depth = self._at, 1
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            self._at += 1
            depth += token.is_sign("(") - token.is_sign(")")
            if depth == 0:
                return list(self._tokens[start : self._at - 1])
        return list(self._tokens[start:])

    def skip(self) -> None:
        """Skip one token."""
        self._at += 1
