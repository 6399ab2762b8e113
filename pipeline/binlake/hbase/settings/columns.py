"""The columns of a wide table, by declaration in the syntax of Hive's HBase storage handler.

``:key`` is the row key, ``:timestamp`` the newest timestamp of the row's cells, ``cf:col`` a column, ``cf:`` the map of
a family's undeclared qualifiers, ``cf:pre.*`` the map of those that begin with ``pre``. ``#b`` behind a name says that
the store holds the value's bytes as HBase's ``Bytes`` writes them, ``#s`` that it holds its text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

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
