"""Whether a partial row is worth it: the bytes it saves against what it costs its readers.

A whole row of a table with several groups needs the values of the other groups, which have to be read from the file
slice, so a partial row is nearly always the cheaper one to write; readers were not slower with it (measured, in
``docs/stitching.md``). Where it saves next to nothing a whole row is the simpler one for readers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa

#: The width of a row's key and meta columns, and that of a value without a fixed width, in bytes.
_ROW_BYTES: Final = 24.0
_TEXT_BYTES: Final = 16.0
#: The widest partial row that is written, as a share of the whole row.
_WIDEST: Final = 0.9


def saves_bytes(schema: pa.Schema, written: Iterable[str]) -> bool:
    """Whether rows with only the columns ``written`` are narrower than whole rows by a tenth.

    Args:
        schema: the table's columns without meta fields.
        written: names of the columns that change.
    """
    partial = _ROW_BYTES + sum(_width(schema.field(name).type) for name in written)
    return partial <= _WIDEST * (_ROW_BYTES + sum(_width(field.type) for field in schema))


def _width(kind: pa.DataType) -> float:
    try:
        return float(kind.bit_width) / 8
    except ValueError:  # no fixed width
        return _TEXT_BYTES
