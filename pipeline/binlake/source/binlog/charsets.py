"""The character sets of text in the binlog, and how Python reads them.

A codec is here only if each character that it reads is the one that MariaDB's own conversion to utf8mb4 gives
(tests/binlake/stream/binlog/test_charsets.py asks a server about every byte and pair of bytes). Python's codecs of
big5, sjis, ujis, eucjpms, cp866, cp1256, greek, hebrew and koi8u differ from it, so columns of these sets, and of sets
that no server was asked about, are refused. Bytes that stand for no character make the row one that is quarantined.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

#: The id of the collation of bytes.
BINARY_COLLATION = 63
_LATIN1 = "binlake_mysql_latin1"

#: Character set -> Python's codec.
CODECS: Mapping[str, str] = MappingProxyType(
    {
        "ascii": "ascii",
        "utf8": "utf-8",
        "utf8mb3": "utf-8",
        "utf8mb4": "utf-8",
        "ucs2": "utf-16-be",
        "utf16": "utf-16-be",
        "utf16le": "utf-16-le",
        "utf32": "utf-32-be",
        "latin1": _LATIN1,
        "latin2": "iso8859-2",
        "latin5": "iso8859-9",
        "latin7": "iso8859-13",
        "cp1250": "cp1250",
        "cp1251": "cp1251",
        "cp1257": "cp1257",
        "cp850": "cp850",
        "cp852": "cp852",
        "koi8r": "koi8-r",
        "tis620": "tis-620",
        "gbk": "gbk",
        "gb2312": "gb2312",
        "cp932": "cp932",
        "euckr": "euc_kr",
    }
)


@dataclass(frozen=True, slots=True)
class Charset:
    """A character set. ``codec``: Python's name of it, "" if it has no exact one. ``width``: the most bytes of a
    character."""

    name: str
    codec: str
    width: int


def charsets_of(known: Mapping[int, tuple[str, int]]) -> dict[int, Charset]:
    """Id of each collation -> its character set.

    ``known``: as ``places.charsets``.
    """
    _register()
    each = {(name, width): Charset(name, CODECS.get(name, ""), width) for name, width in set(known.values())}
    return {i: each[pair] for i, pair in known.items()}


@lru_cache(maxsize=1)
def _register() -> None:
    """Make MySQL's latin1 known to Python: cp1252, whose five bytes without a character are controls."""
    table = "".join(bytes([byte]).decode("cp1252", "replace").replace("�", chr(byte)) for byte in range(256))

    def decode(data: Any, errors: str = "strict") -> tuple[str, int]:  # noqa: ANN401 - any buffer
        return codecs.charmap_decode(bytes(data), errors, table)

    def encode(text: str, errors: str = "strict") -> tuple[bytes, int]:
        return codecs.charmap_encode(text, errors, codecs.charmap_build(table))

    def search(name: str) -> codecs.CodecInfo | None:
        return codecs.CodecInfo(encode, decode, name=_LATIN1) if name == _LATIN1 else None

    codecs.register(search)
