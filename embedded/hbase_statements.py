"""What is written to an HBase table. Bytes are base64 where they become JSON."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Literal

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
#: A marker that a delete writes: of one version, of a column or a family up to a timestamp, of a family at a timestamp.
MarkerKind = Literal["Delete", "DeleteColumn", "DeleteFamily", "DeleteFamilyVersion"]


@dataclass(frozen=True)
class Cell:
    """A value of a column; without a timestamp the region server gives its own time."""

    family: bytes
    qualifier: bytes
    value: bytes
    timestamp_ms: int | None = None


@dataclass(frozen=True)
class Put:
    """Cells of a row. ``ttl_ms``: the cells' own TTL, which no change event tells."""

    row: bytes
    cells: Sequence[Cell]
    ttl_ms: int | None = None


@dataclass(frozen=True)
class Target:
    """What a delete marks. Without a timestamp it is the present, and for ``Delete`` the newest version's."""

    kind: MarkerKind
    family: bytes
    qualifier: bytes = b""
    timestamp_ms: int | None = None


@dataclass(frozen=True)
class Delete:
    """Markers of a row; without targets one of each family, up to the timestamp (the present if None)."""

    row: bytes
    targets: Sequence[Target] = ()
    timestamp_ms: int | None = None


@dataclass(frozen=True)
class Amount:
    """What is added to a column's 64-bit number."""

    family: bytes
    qualifier: bytes
    amount: int


@dataclass(frozen=True)
class Increment:
    """Amounts added to columns of a row, as one."""

    row: bytes
    amounts: Sequence[Amount]


@dataclass(frozen=True)
class Append:
    """Bytes appended to columns of a row, as one; the cells' timestamps are not used."""

    row: bytes
    cells: Sequence[Cell]


@dataclass(frozen=True)
class CheckAndMutate:
    """A put or a delete if a column has the expected value (None: if there is no such column)."""

    row: bytes
    family: bytes
    qualifier: bytes
    expected: bytes | None
    then: Put | Delete


@dataclass(frozen=True)
class RowMutations:
    """Puts and deletes of one row, as one WAL entry."""

    row: bytes
    mutations: Sequence[Put | Delete]


Statement = Put | Delete | Increment | Append | CheckAndMutate | RowMutations


def as_json(value: object) -> Json:
    """A statement, or another dataclass of plain values.

    ``kind`` is the name of its class, unless it has a field of that name. Raises TypeError for any other value.
    """
    match value:
        case None | bool() | int() | str():
            return value
        case bytes():
            return base64.b64encode(value).decode()
        case list() | tuple():
            return [as_json(one) for one in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {"kind": type(value).__name__} | {one.name: as_json(getattr(value, one.name)) for one in fields(value)}
    raise TypeError(f"no JSON for {type(value).__name__}")
