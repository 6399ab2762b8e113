"""Declarations of columns: ``place#storage type``, as ``d:user_id#b long``.

Place and storage are Hive's (HBase storage handler, "Column Mapping"): ``#`` and any beginning of ``binary`` or
``string``, or ``-`` for the table's default. A map may say the storage of its keys before that of its values
(``m:#s:b``). The types are those of ``Bytes``, since the lake's column types follow from them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, get_args

# The columns of a wide table, by declaration in the syntax of Hive's HBase storage handler.
#
# ``:key`` is the row key, ``:timestamp`` the newest timestamp of the row's cells, ``cf:col`` a column, ``cf:`` the map
# of a family's undeclared qualifiers, ``cf:pre.*`` the map of those that begin with ``pre``. ``#b`` behind a name says
# that the store holds the value's bytes as HBase's ``Bytes`` writes them, ``#s`` that it holds its text.

CellType = Literal["utf8", "long", "int", "short", "double", "float", "boolean", "decimal", "bytes"]
CELL_TYPES: tuple[CellType, ...] = get_args(CellType)


@dataclass(frozen=True, slots=True)
class WideColumn:
    """A column of a wide table.

    Args:
        name: in the lake.
        family: None for the row key and the timestamp.
        qualifier: text form (``binlake.decode.cells``); None for the row key, the timestamp and maps.
        type: of the value, or of the map's values.
        as_text: the store holds the value's text (``#s``), not its bytes.
        precision, scale: of a decimal.
        prefix: the bytes that the qualifiers of a map begin with; empty for all of the family's.
        is_timestamp: the column holds the newest timestamp of the row's visible cells, in the store's unit.
    """

    name: str
    family: str | None
    qualifier: str | None
    type: CellType
    as_text: bool = False
    precision: int = 38
    scale: int = 0
    prefix: bytes = b""
    is_timestamp: bool = False

    @property
    def is_key(self) -> bool:
        """Whether it holds the row key."""
        return self.family is None and not self.is_timestamp

    @property
    def is_map(self) -> bool:
        """Whether it holds the undeclared qualifiers of its family."""
        return self.family is not None and self.qualifier is None


# Qualifiers as settings spell them.
#
# They may be written as they are (in UTF-8) or with ``\\xHH`` for any byte. The text form (``binlake.decode.cells``) is
# one of these spellings: printable ASCII as it is, every other byte, the backslash and the comma as ``\\xHH``.

_ESCAPED: Final = re.compile(rb"\\x([0-9A-Fa-f]{2})")
_BARE_BACKSLASH: Final = re.compile(rb"\\(?!x[0-9A-Fa-f]{2})")
#: Texts that Hudi writes into record keys for an empty value and for null; no text form is one of them.
_RESERVED: Final = ("__empty__", "__null__")


def qualifier_bytes(spelled: str) -> bytes | None:
    """The bytes of a qualifier (or of its beginning); None if a backslash begins no ``\\xHH``."""
    data = spelled.encode()
    if _BARE_BACKSLASH.search(data):
        return None
    return _ESCAPED.sub(lambda found: bytes.fromhex(found[1].decode()), data)


def text_form(qualifier: bytes) -> str:
    """The text form of a qualifier."""
    text = "".join(chr(one) if 0x20 <= one <= 0x7E and one not in b"\\," else f"\\x{one:02X}" for one in qualifier)
    return f"\\x5F{text[1:]}" if text in _RESERVED else text


Storage = Literal["binary", "string"]

#: The types that a row key may have: of the others, two stored keys can be one value.
KEY_TYPES: Final[tuple[CellType, ...]] = ("utf8", "bytes", "long", "int", "short")
MAX_DIGITS: Final = 38
_TIMESTAMP: Final = ":timestamp"
_KEY: Final = ":key"
_DECLARED: Final = re.compile(
    r"\s*(?P<place>[^\s#]+)(?:#(?P<storage>[^\s]*))?"
    r"(?:\s+(?P<type>\w+)(?:\s*\(\s*(?P<precision>\d+)\s*(?:,\s*(?P<scale>\d+)\s*)?\))?)?\s*"
)
#: Hive's names of types that are often written here.
_HIVE_TYPES: Final = {"string": "utf8", "varchar": "utf8", "bigint": "long", "smallint": "short", "binary": "bytes"}
_FORM: Final = "must be a place, as :key, family:qualifier or family:, with #b or #s and a type behind it"


class DeclarationError(ValueError):
    """Why a text declares no column. The message does not quote it."""


@dataclass(frozen=True, slots=True)
class _CellPlace:
    family: str | None
    qualifier: str | None = None
    prefix: bytes = b""
    is_timestamp: bool = False

    @property
    def is_map(self) -> bool:
        return self.family is not None and self.qualifier is None


def wide_column(name: str, declared: str, default: Storage | None = None) -> WideColumn:
    """A column by its declaration.

    Args:
        name: in the lake.
        declared: as in the settings.
        default: what ``#-`` and a declaration without ``#`` mean; None if they may only stand where it is all one.

    Raises DeclarationError.
    """
    declaration_match = _DECLARED.fullmatch(declared)
    if declaration_match is None:
        raise DeclarationError(_FORM)
    place = _place(declaration_match["place"])
    type_ = _type(declaration_match["type"], place)
    precision, scale = _digits(type_, declaration_match["precision"], declaration_match["scale"])
    as_text = _as_text(declaration_match["storage"], place, type_, default)
    return WideColumn(
        name, place.family, place.qualifier, type_, as_text, precision, scale, place.prefix, place.is_timestamp
    )


def _place(spelled: str) -> _CellPlace:
    if spelled in (_KEY, _TIMESTAMP):
        return _CellPlace(None, is_timestamp=spelled == _TIMESTAMP)
    family, colon, name = spelled.partition(":")
    if not colon:
        raise DeclarationError(_FORM)
    if not family:
        raise DeclarationError("the places without a family are :key and :timestamp")
    if name.endswith(".*"):
        return _CellPlace(family, prefix=_bytes(name.removesuffix(".*")))
    return _CellPlace(family, text_form(_bytes(name)) if name else None)


def _bytes(spelled: str) -> bytes:
    data = qualifier_bytes(spelled)
    if data is None:
        raise DeclarationError(r"a backslash must begin \xHH, the code of a byte; a backslash itself is \x5C")
    return data


def _type(named: str | None, place: _CellPlace) -> CellType:
    if place.is_timestamp:
        if named not in (None, "long"):
            raise DeclarationError(":timestamp is a long: the number that the store keeps")
        return "long"
    type_ = next((known for known in CELL_TYPES if known == (named or "utf8")), None)
    if type_ is None:
        instead = _HIVE_TYPES.get(named or "")
        hint = f"; Hive's type of that name is {instead} here" if instead else ""
        raise DeclarationError(f"the type must be one of {', '.join(CELL_TYPES)}{hint}")
    if place.family is None and type_ not in KEY_TYPES:
        raise DeclarationError(
            f"the row key must be one of {', '.join(KEY_TYPES)}: of other types, two keys of the store can be one value"
        )
    return type_


def _digits(type_: CellType, precision: str | None, scale: str | None) -> tuple[int, int]:
    if type_ != "decimal":
        if precision is not None:
            raise DeclarationError("only a decimal has digits in ( )")
        return MAX_DIGITS, 0
    if precision is None:
        raise DeclarationError("a decimal needs its digits, as decimal(12,2): a value with more of them is none")
    digits = int(precision), int(scale or 0)
    if not 1 <= digits[0] <= MAX_DIGITS or digits[1] > digits[0]:
        raise DeclarationError(f"a decimal has 1 to {MAX_DIGITS} digits, and no more of them behind the point")
    return digits


def _as_text(spelled: str | None, place: _CellPlace, type_: CellType, default: Storage | None) -> bool:
    if place.is_timestamp:
        if spelled is not None:
            raise DeclarationError(":timestamp is no stored value: leave #b and #s out")
        return False
    storage = _storage(spelled, place, default)
    if type_ == "bytes" and storage == "string" and spelled not in (None, "-"):
        raise DeclarationError("bytes have no text: leave #s out")
    if storage is None and type_ not in ("utf8", "bytes"):
        raise DeclarationError(
            "say #b for bytes as HBase's Bytes writes them, or #s for text: one is easily read as the other; "
            "storage says it for all columns"
        )
    return storage == "string" and type_ != "bytes"


def _storage(spelled: str | None, place: _CellPlace, default: Storage | None) -> Storage | None:
    """The storage of values; None if neither the declaration nor the default says it."""
    if spelled is None:
        return default
    of_keys, colon, of_values = spelled.rpartition(":")
    if colon:
        if not place.is_map:
            raise DeclarationError("only a map has two storages, of its keys and of its values")
        if not of_keys or not ("string".startswith(of_keys) or of_keys == "-"):
            raise DeclarationError("the keys of a map are the texts of qualifiers: say #s:b or #s:s")
    if of_values == "-":
        return default
    if of_values and "binary".startswith(of_values):
        return "binary"
    if of_values and "string".startswith(of_values):
        return "string"
    raise DeclarationError("behind # stands b (binary), s (string) or - (the table's default)")
