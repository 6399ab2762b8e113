"""Whether a partial row is worth it: the bytes it saves against what it costs its readers.

A reader merges a partial row with the row below it, which costs more than taking a whole row, so a partial row must be
at most half as wide. The measurement is in ``docs/stitching.md``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa

#: The width of a row's key and meta columns, and that of a value without a fixed width, in bytes.
_ROW_BYTES: Final = 24.0
_TEXT_BYTES: Final = 16.0


def saves_bytes(schema: pa.Schema, written: Iterable[str]) -> bool:
    """Whether rows with only the columns ``written`` have at most half the width of whole rows.

    Args:
        schema: the table's columns without meta fields.
        written: names of the columns that change.
    """
    partial = _ROW_BYTES + sum(_width(schema.field(name).type) for name in written)
    return 2 * partial <= _ROW_BYTES + sum(_width(field.type) for field in schema)


def _width(kind: pa.DataType) -> float:
    try:
        return float(kind.bit_width) / 8
    except ValueError:  # no fixed width
        return _TEXT_BYTES
