"""Column definitions of DDL statements: name, type, nullability and default."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise

from binlake.decode.ddl.tokens import Reader, Token, expression_text, text_of
from binlake.decode.types.mysql_types import TEXT_BASES, MysqlType, charset_of, parse_type
from hudilake.errors import UnsupportedError


class Default(StrEnum):
    """The kind of default that a column definition has."""

    NONE = "none"
    CONSTANT = "constant"
    COMPUTED = "computed"


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """A column as a statement defines it.

    ``type`` is None for a type that the lake does not support. ``literal``: a constant default as written, without
    quotes; None for NULL. ``as_bytes``: the literal is in hexadecimal or bits. ``computed`` says what is computed,
    where the default (or the column, which is ``generated`` then) is; ``expression`` is its text.
    ``collation``: the one that is named; ``UNNAMED_COLLATION`` where the definition names a character set alone, ""
    where it names neither.
    """

    name: str
    type_text: str
    type: MysqlType | None
    nullable: bool = True
    default: Default = Default.NONE
    literal: str | None = None
    as_bytes: bool = False
    computed: str = ""
    expression: str = ""
    generated: bool = False
    collation: str = ""

    @property
    def is_text(self) -> bool:
        """Whether its values are text, which has a collation."""
        return self.type is not None and self.type.base in TEXT_BASES


#: In place of a collation's name: that of a character set by default, which server and session decide.
UNNAMED_COLLATION = "?"
#: Words that stand for a character set.
_CHARSET_WORDS = {"ASCII": "latin1", "UNICODE": "ucs2"} | dict.fromkeys(("NATIONAL", "NCHAR", "NVARCHAR"), "utf8mb3")


#: The first words of attributes that do not belong to a column's type.
_ATTRIBUTES = tuple(
    """NOT NULL DEFAULT AUTO_INCREMENT COMMENT COLLATE PRIMARY UNIQUE KEY REFERENCES CHECK GENERATED AS ON VIRTUAL
    STORED PERSISTENT INVISIBLE VISIBLE FIRST AFTER CONSTRAINT COLUMN_FORMAT STORAGE SRID REF_SYSTEM_ID WITH WITHOUT
    COMPRESSED""".split()  # noqa: SIM905 - a list of thirty lines says no more
)


def column_definition(reader: Reader) -> ColumnDefinition | None:
    """The next column definition (name first); None if the next tokens are none."""
    name = reader.name()
    if name is None or not reader.left:
        return None
    tokens = list(reader.rest)
    end = next((i for i, t in enumerate(tokens) if i and t.is_word(*_ATTRIBUTES)), len(tokens))
    text = text_of(tokens[:end])
    try:
        kind = parse_type(text)
    except UnsupportedError:
        kind = None
    column = _with_attributes(ColumnDefinition(name, text, kind), Reader(tokens[end:]))
    words = tokens[:end]
    charset = _implied_charset(words, column.collation)
    column = column if charset is None else with_charset(column, charset)
    names_charset = charset is not None or _names_charset(words) or any(word.is_word("BINARY") for word in words)
    return replace(column, collation=UNNAMED_COLLATION) if names_charset and not column.collation else column


def with_charset(column: ColumnDefinition, charset: str) -> ColumnDefinition:
    """The column with a character set, if it is text and names none."""
    if column.type is None or column.type.base not in TEXT_BASES or charset_of(column.type_text) is not None:
        return column
    text = f"{column.type_text} character set {charset}"
    return replace(column, type_text=text, type=parse_type(text))


def _implied_charset(words: Sequence[Token], collation: str) -> str | None:
    """The character set that a type names by another word than CHARACTER SET, or by its collation; None if it names
    none so. The names of MariaDB's newest collations have no character set: ``uca1400_ai_ci``."""
    if _names_charset(words):
        return None
    for word, charset in _CHARSET_WORDS.items():
        if any(token.is_word(word) for token in words):
            return charset
    charset = collation.split("_")[0]
    return charset if charset and not charset.startswith("uca") else None


def _names_charset(words: Sequence[Token]) -> bool:
    return any(
        one.is_word("CHARSET") or (one.is_word("CHARACTER") and other.is_word("SET")) for one, other in pairwise(words)
    )


def _with_attributes(plain: ColumnDefinition, reader: Reader) -> ColumnDefinition:
    nullable, default, literal, as_bytes, computed = True, Default.NONE, None, False, ""
    expression, generated, collation = "", False, ""
    while reader.left:
        if reader.take("NOT", "NULL") or reader.take("PRIMARY"):
            nullable = False
        elif reader.take("DEFAULT"):
            start = reader.rest if not generated and default is Default.NONE else ()  # a column has one default
            expression = _expression(start)
            default, literal, as_bytes, computed = _default(reader)
        elif reader.take("GENERATED") or reader.take("AS"):
            default, computed, generated = Default.COMPUTED, "a generated column", True
            reader.take("ALWAYS")
            reader.take("AS")
            expression = expression_text(reader.bracketed() or [])
        elif reader.take("AUTO_INCREMENT"):
            default, computed = Default.COMPUTED, "AUTO_INCREMENT"
        elif reader.take("COLLATE"):
            collation = named_collation(reader)
        elif reader.take("CHECK"):
            reader.bracketed()
        elif reader.take_any("COMMENT", "ON", "FIRST", "AFTER"):
            reader.skip()  # a word of the comment, or of ON UPDATE, is not an attribute
        else:
            reader.skip()
    if plain.type_text.upper().startswith("SERIAL"):
        default, computed = Default.COMPUTED, "AUTO_INCREMENT"
    expression = expression if default is Default.COMPUTED and computed != "AUTO_INCREMENT" else ""
    made = (nullable, default, literal, as_bytes, computed, expression, generated, collation)
    return ColumnDefinition(plain.name, plain.type_text, plain.type, *made)


def named_collation(reader: Reader) -> str:
    """What comes behind COLLATE, in lower case."""
    reader.take_sign("=")
    name = reader.next.value.lower() if reader.left else ""
    return UNNAMED_COLLATION if name == "default" else name


def _expression(tokens: Sequence[Token]) -> str:
    """The text of a default: what its brackets hold, or a name with its arguments."""
    reader = Reader(tokens)
    inside = reader.bracketed()
    if inside is not None or not reader.left:
        return expression_text(inside or [])
    first = reader.next
    reader.skip()
    arguments = reader.bracketed()
    return first.text if arguments is None else f"{first.text}({expression_text(arguments)})"


def _default(reader: Reader) -> tuple[Default, str | None, bool, str]:
    inside = reader.bracketed()
    tokens = inside if inside is not None else list(reader.ahead(4))  # a sign or an introducer, a value, a bracket
    sign = ""
    if tokens and (tokens[0].is_sign("-") or tokens[0].is_sign("+")):
        sign, tokens = tokens[0].text.replace("+", ""), tokens[1:]
    if tokens and tokens[0].kind == "word" and tokens[0].text.startswith("_") and tokens[1:2]:
        tokens = tokens[1:]  # a character set's introducer: _utf8mb4'x'
    if (inside is not None and len(tokens) != 1) or not tokens:
        return Default.COMPUTED, None, False, f"DEFAULT ({text_of(tokens)})"
    first = tokens[0]
    called = len(tokens) > 1 and tokens[1].is_sign("(")
    if inside is None:
        reader.skip()
    if first.is_word("NULL"):
        return Default.CONSTANT, None, False, ""
    if first.is_word("TRUE", "FALSE"):
        return Default.CONSTANT, "1" if first.is_word("TRUE") else "0", False, ""
    if first.kind in ("string", "number", "bytes") and not called:
        return Default.CONSTANT, sign + first.value, first.kind == "bytes", ""
    return Default.COMPUTED, None, False, f"DEFAULT {first.text}"
