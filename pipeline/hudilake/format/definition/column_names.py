"""Names of columns as Avro allows them: Hudi keeps a table's columns in an Avro schema."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache


@lru_cache(maxsize=65_536)  # every batch asks for the names of all columns that it has
def lake_name(column: str) -> str:
    """A column name as Avro allows it: other ASCII signs become ``_``, other letters ``_u`` and their code in hex."""
    text = "".join(map(_in_avro, column))
    return f"_{text}" if not text or text[0].isdigit() else text


def _in_avro(sign: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9_]", sign):
        return sign
    return "_" if sign.isascii() else f"_u{ord(sign):04x}"


def known_as(column: str, known: Iterable[str]) -> str | None:
    """The one of the ``known`` lake names that is a source column's, without regard to case; None if there is none.

    MySQL and the readers of the lake ignore the case of column names.
    """
    name = lake_name(column)
    wanted, lake_match = name.lower(), None
    for one in known:
        if one == name:
            return one
        if one.lower() == wanted:
            lake_match = one
    return lake_match


def respelled(column: str, lake: str) -> str:
    """A source column's name in the letters' case of its lake name ``lake`` (one that ``known_as`` gave)."""
    position, signs = len(lake) - sum(len(_in_avro(sign)) for sign in column), []
    for sign in column:
        signs.append(lake[position] if _in_avro(sign) == sign else sign)
        position += len(_in_avro(sign))
    return "".join(signs)
