"""What may stand at a place in an SQL text: tables and columns of the lake, keywords and functions of DuckDB.

The text is unfinished while a person types, so no parser reads it: its tokens tell the word at the place, what stands
before it, and which tables the query names. Keywords and functions are those that DuckDB itself lists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from typing import Final

import duckdb
import pyarrow as pa
from sqlglot import tokenize
from sqlglot.tokenizer_core import TokenType

from hudilake.format.definition.schema import META_FIELDS

#: Proposals of one answer, tables whose columns are looked up for one, and characters of a text that are read.
MOST, TABLES, READ = 50, 8, 12_000
_DETAIL = 160
_TOKEN: Final = re.compile(
    r"(?P<gap>\s+|--[^\n]*\n?|/\*.*?(?:\*/|\Z))|(?P<text>'(?:[^']|'')*(?P<shut>')?)"
    r'|(?P<name>"(?:[^"]|"")*"?|[^\W\d]\w*)|(?P<number>\d[\w.]*)|(?P<sign>.)',
    re.S,
)
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_BEFORE_TABLES = frozenset({"from", "join", "into", "update", "table"})
_ENDS_TABLES = frozenset({"where", "group", "order", "having", "limit", "on", "using", "select", "union", "qualify"})
_NO_ALIAS = frozenset({*_ENDS_TABLES, "join", "left", "right", "inner", "full", "cross", "natural", "asof", "semi"})
_NO_TABLE = frozenset({*_BEFORE_TABLES, *_ENDS_TABLES})
#: Of the words that DuckDB does not reserve, those that queries have.
_OF_QUERIES = frozenset({"over", "partition", "by", "rows", "range", "groups", "preceding", "following", "unbounded"})
_OF_QUERIES |= {"current", "row", "first", "last", "nulls", "recursive", "within", "filter", "exclude", "replace"}
_OF_QUERIES |= {"interval", "epoch", "respect", "ignore", "ordinality"}
#: What a word cannot follow without a blank.
_CLOSES = frozenset({")", "]", "}"})
_NO_ALIAS |= {"anti", "outer", "window", "intersect", "except", "offset", "sample", "pivot", "positional", "lateral"}


@dataclass(frozen=True, slots=True)
class SqlWord:
    """A word that may stand at the place.

    Args:
        text: as it is written there.
        kind: ``table``, ``column``, ``name`` (of rows within the query), ``function`` or ``keyword``.
        detail: the type of a column, the arguments of a function, ...
    """

    text: str
    kind: str
    detail: str = ""


@dataclass(frozen=True)
class Completion:
    """The proposals for the place after ``word``, which they replace. ``whole``: whether all tables were known."""

    word: str = ""
    proposals: Sequence[SqlWord] = ()
    whole: bool = True


@dataclass(frozen=True)
class KnownTables:
    """The tables of a lake. ``names``: ``database.table``. ``schema_of``: the columns of one, None if they cannot be
    read."""

    names: Sequence[str]
    schema_of: Callable[[str], pa.Schema | None]

    @cached_property
    def _by_name(self) -> Mapping[str, str]:
        return {name.lower(): name for name in self.names}

    def called(self, name: str) -> str | None:
        """The table that a query calls so; letters may be large or small."""
        return self._by_name.get(name.lower())


@dataclass(frozen=True, slots=True)
class _Token:
    """A name, a word or a sign; ``value`` without quotes; ``quoted``: whether it has some."""

    kind: str
    value: str
    written: str
    quoted: bool = False


@dataclass
class _Rows:
    """The rows that a query names: what it calls them in lower case -> the table, None for those of a WITH clause."""

    tables: dict[str, str | None] = field(default_factory=dict)


def completion(before: str, after: str, known: KnownTables) -> Completion:
    """What may stand between two parts of a text.

    Args:
        before, after: the text up to the place and behind it; of long ones the nearest characters are read.
        known: the tables.
    """
    before, after = before[-READ:], after[:READ]
    tokens = _tokens(before)
    if tokens is None or _is_closed(tokens, before):
        return Completion()
    path, rest = _path_at_end(tokens, before)
    prefix, owners = path[-1], [part.value for part in path[:-1]]
    rows = _named_rows([*rest, *(_tokens(after) or ())], known)
    word = prefix.written
    if owners:
        choices = _owned(owners, known, rows)
    elif _tables_stand_here(rest):
        choices = [*_names(rows, tables=False), *_table_names(known)]
    else:
        choices = [*_columns_of(rows, known), *_names(rows), *_engine(), *_table_names(known)]
    wanted = _matching(choices, prefix.value)
    if word.isupper() and not prefix.quoted:
        wanted = [SqlWord(p.text.upper(), p.kind, p.detail) if p.kind == "keyword" else p for p in wanted]
    return Completion(word, [p for p in wanted if p.text != word][:MOST])


@lru_cache(1 << 14)
def identifier(name: str) -> str:
    """A name as it is written in a query: in quotes unless DuckDB and the parser take it for a name without them."""
    plain = _PLAIN.match(name) is not None and name.lower() not in _reserved()
    if plain and tokenize(name, read="duckdb")[0].token_type is TokenType.VAR:
        return name
    return '"' + name.replace('"', '""') + '"'


def written_table(name: str) -> str:
    """``database.table`` as it is written in a query."""
    return ".".join(identifier(part) for part in name.split(".", 1))


def _tokens(text: str) -> list[_Token] | None:
    """The tokens but for blanks and comments; None if the text ends within a string or a comment."""
    tokens = []
    for match in _TOKEN.finditer(text):
        kind, written = str(match.lastgroup if match.lastgroup != "shut" else "text"), match.group()
        if kind == "text":
            if match.end() == len(text) and (match.group("shut") is None or len(written) < 2):
                return None
            tokens.append(_Token("text", written, written))
        elif kind == "gap":
            open_line = written.startswith("--") and not written.endswith("\n")
            open_block = written.startswith("/*") and not (written.endswith("*/") and len(written) >= 4)
            if match.end() == len(text) and (open_line or open_block):
                return None
        elif kind == "name":
            quoted = written.startswith('"')
            value = written[1:].removesuffix('"').replace('""', '"') if quoted else written
            tokens.append(_Token("name", value, written, quoted))
        else:
            tokens.append(_Token(kind, written, written))
    return tokens


def _is_closed(tokens: Sequence[_Token], text: str) -> bool:
    """Whether no word can stand right after a text: it ends with a number, a string, a name in quotes or a bracket."""
    if not tokens or text[-1].isspace():
        return False
    last = tokens[-1]
    closed_name = last.quoted and last.written.endswith('"') and len(last.written) > 1
    return last.kind in ("number", "text") or closed_name or last.value in _CLOSES


def _path_at_end(tokens: Sequence[_Token], text: str) -> tuple[list[_Token], Sequence[_Token]]:
    """The names joined by dots at the end of a text, the last one maybe empty; and the tokens before them."""
    nothing, place = _Token("name", "", ""), len(tokens)
    if not tokens or text[-1].isspace() or (tokens[-1].kind != "name" and tokens[-1].value != "."):
        return [nothing], tokens
    path = [nothing]
    if tokens[-1].kind == "name":
        path, place = [tokens[-1]], place - 1
    while place >= 2 and tokens[place - 1].value == "." and tokens[place - 2].kind == "name":
        path, place = [tokens[place - 2], *path], place - 2
    return path, tokens[:place]


def _tables_stand_here(tokens: Sequence[_Token]) -> bool:
    """Whether a table is to follow: after FROM or JOIN, or after a comma in that list."""
    words = [token.value.lower() for token in tokens]
    if not words or words[-1] not in (*_BEFORE_TABLES, ","):
        return False
    if words[-1] != ",":
        return not tokens[-1].quoted
    depth = 0
    for token, word in zip(reversed(tokens), reversed(words), strict=True):
        depth += (word == ")") - (word == "(")
        if depth < 0 or (depth == 0 and word in _ENDS_TABLES and not token.quoted):
            return False
        if depth == 0 and word in _BEFORE_TABLES and not token.quoted:
            return True
    return False


def _named_rows(tokens: Sequence[_Token], known: KnownTables) -> _Rows:
    """What the query names: tables after FROM, JOIN and commas with their aliases, and names of WITH clauses."""
    rows = _Rows()
    for place, token in enumerate(tokens):
        word = token.value.lower()
        if word in _BEFORE_TABLES and not token.quoted and token.kind == "name":
            _take_tables(tokens, place + 1, known, rows)
        follows = [one.value.lower() for one in tokens[place + 1 : place + 3]]
        before = tokens[place - 1].value.lower() if place else ""
        if token.kind == "name" and follows == ["as", "("] and before in ("with", "recursive", ","):
            rows.tables.setdefault(word, None)
    return rows


def _take_tables(tokens: Sequence[_Token], place: int, known: KnownTables, rows: _Rows) -> None:
    """Take in the list of tables that begins at a place."""
    while place < len(tokens) and tokens[place].kind == "name":
        name = tokens[place].value
        if not tokens[place].quoted and name.lower() in _NO_TABLE:
            return
        place += 1
        if place + 1 < len(tokens) and tokens[place].value == "." and tokens[place + 1].kind == "name":
            name, place = f"{name}.{tokens[place + 1].value}", place + 2
        table, called = known.called(name), name.rpartition(".")[2]
        if place < len(tokens) and tokens[place].value.lower() == "as":
            place += 1
        if place < len(tokens) and tokens[place].kind == "name":
            alias = tokens[place]
            if alias.quoted or alias.value.lower() not in _NO_ALIAS:
                called, place = alias.value, place + 1
        if table is not None:
            rows.tables[called.lower()] = table
        if place >= len(tokens) or tokens[place].value != ",":
            return
        place += 1


def _owned(owners: Sequence[str], known: KnownTables, rows: _Rows) -> list[SqlWord]:
    """What may follow names with a dot: columns of a table or of what the query calls so, tables of a database."""
    name = ".".join(owners)
    table = rows.tables.get(name.lower()) or known.called(name)
    if table is not None:
        return list(_columns(table, known))
    pairs = [one.split(".", 1) for one in known.names if "." in one]
    return [SqlWord(identifier(t), "table", d) for d, t in pairs if d.lower() == name.lower()]


def _columns_of(rows: _Rows, known: KnownTables) -> Iterator[SqlWord]:
    tables = list(dict.fromkeys(table for table in rows.tables.values() if table is not None))[:TABLES]
    counts: dict[str, int] = {}
    several = [list(_columns(table, known)) for table in tables]
    for columns in several:
        for one in columns:
            counts[one.text.lower()] = counts.get(one.text.lower(), 0) + 1
    for table, columns in zip(tables, several, strict=True):
        for one in columns:
            of = f" of {table}" if len(tables) > 1 else ""
            both = " (in several tables)" if counts[one.text.lower()] > 1 else ""
            yield SqlWord(one.text, one.kind, f"{one.detail}{of}{both}")


def _columns(table: str, known: KnownTables) -> Iterator[SqlWord]:
    schema = known.schema_of(table)
    if schema is None:
        return
    own = [one for one in schema if one.name not in META_FIELDS]
    for one in [*own, *(one for one in schema if one.name in META_FIELDS)]:
        yield SqlWord(identifier(one.name), "column", str(one.type))


def _names(rows: _Rows, *, tables: bool = True) -> Iterator[SqlWord]:
    """What the query calls its rows. ``tables``: those of tables too, not of WITH clauses alone."""
    for name, table in rows.tables.items():
        if table is None or tables:
            yield SqlWord(identifier(name), "name", table or "of this query")


def _table_names(known: KnownTables) -> Iterator[SqlWord]:
    return (SqlWord(written_table(name), "table") for name in known.names)


def _matching(choices: Iterable[SqlWord], prefix: str) -> list[SqlWord]:
    """Those that begin with the prefix, then those with a part that does, then those that have it; in their order."""
    wanted = prefix.lower()
    ranked: list[tuple[int, int, SqlWord]] = []
    for one in dict.fromkeys(choices):
        plain = one.text.replace('"', "").lower()
        parts = re.split(r"[._]", plain)
        rank = 0 if plain.startswith(wanted) else 1 if any(part.startswith(wanted) for part in parts) else 2
        if rank < 2 or (wanted in plain and one.kind in ("table", "column")):
            ranked.append((rank, len(ranked), one))
    return [one for _, _, one in sorted(ranked)[: MOST + 1]]


@cache
def _engine() -> Sequence[SqlWord]:
    """The functions and keywords that DuckDB lists, but for what a SELECT cannot have."""
    with duckdb.connect() as connection:
        functions = connection.execute(
            "select function_name, any_value(parameters), any_value(return_type), any_value(description) "
            "from duckdb_functions() where function_type in ('scalar', 'aggregate', 'macro') "
            "and regexp_matches(function_name, '^[a-z][a-z0-9_]*$') and function_name not like 'pg\\_%' escape '\\' "
            "group by 1 order by 1"
        ).fetchall()
    words = [word for word in sorted(_keywords()) if word in _reserved() or word in _OF_QUERIES]
    proposals = [SqlWord(word, "keyword") for word in words]
    for name, parameters, returned, described in functions:
        detail = f"({', '.join(map(str, parameters or ()))}){f' {returned}' if returned else ''}"
        detail += f": {described}" if described else ""
        proposals.append(SqlWord(f"{name}(", "function", detail[:_DETAIL]))
    return tuple(proposals)


@cache
def _keywords() -> Mapping[str, str]:
    """The keywords of DuckDB, with what each is."""
    with duckdb.connect() as connection:
        rows = connection.execute("select keyword_name, keyword_category from duckdb_keywords()").fetchall()
    return dict(rows)


@cache
def _reserved() -> frozenset[str]:
    return frozenset(name for name, category in _keywords().items() if category != "unreserved")
