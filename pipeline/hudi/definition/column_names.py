"""Names of columns as Avro allows them: Hudi keeps a table's columns in an Avro schema."""

from __future__ import annotations

import re


def lake_name(column: str) -> str:
    """A column name as Avro allows it: other ASCII signs become ``_``, other letters ``_u`` and their code in hex."""
    text = "".join(c if re.fullmatch(r"[A-Za-z0-9_]", c) else "_" if c.isascii() else f"_u{ord(c):04x}" for c in column)
    return f"_{text}" if not text or text[0].isdigit() else text
