"""Which rows are in named partitions, by the table's partition definition and the rows' values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from binlake.decode.ddl.partitions import MAXVALUE, Method, Partitioning
from binlake.decode.ddl.tokens import Reader, split_at_commas, text_of, tokens_of
from binlake.schema.rules.partitions.expression import Row, constant, expression
from hudilake.errors import UnsupportedError
from hudilake.format.definition.column_names import lake_name

#: The place of a row in one level of partitions; None if it is in none.
Place = Callable[[Row], int | None]
#: The number that stands for NULL in HASH: the least of 64 bits (measured with MariaDB).
_NULL = -(1 << 63)
_COMPARED = (pa.types.is_integer, pa.types.is_date32, pa.types.is_timestamp, pa.types.is_boolean)


@dataclass(frozen=True, slots=True)
class Removal:
    """The partitions whose rows a statement removes. ``names`` empty: all of them."""

    partitioning: Partitioning
    names: tuple[str, ...]


def check_removal(removal: Removal, schema: pa.Schema, open_columns: Collection[str] = ()) -> None:
    """Raise UnsupportedError, with the reason, if it is not known exactly which rows the partitions have.

    ``schema``: the lake's columns. ``open_columns``: those (in lower case) that are not determined in all rows.
    """
    level = removal.partitioning
    for name in removal.names:
        if not any(True for _ in level.named(name)):
            raise UnsupportedError(f"partition {name} is not in the table's known definition", do_next=_KEEP)
    if not removal.names:
        return
    needed = {name for one in _levels(removal) for name in _place(one, _kinds(schema))[1]}
    for name in sorted(needed):
        if lake_name(name).lower() not in {n.lower() for n in schema.names}:
            raise UnsupportedError(f"partition column {name} is not in the lake", do_next=_KEEP)
        if name.lower() in open_columns:
            raise UnsupportedError(f"partition column {name} is not determined in all rows", do_next=_KEEP)


_KEEP = "set schema_changes.partitions to keep, and load the table again"


def members(rows: pa.Table, removal: Removal) -> npt.NDArray[np.bool_]:
    """A mask of the rows that are in the partitions."""
    if not removal.names:
        return np.ones(len(rows), dtype=bool)
    level, kinds = removal.partitioning, _kinds(rows.schema)
    place, columns = _place(level, kinds)
    sub, more = _place(level.sub, kinds) if level.sub is not None else (None, ())
    wanted = {spot for name in removal.names for spot in level.named(name)}
    names = tuple(dict.fromkeys((*columns, *more)))
    mask = np.zeros(len(rows), dtype=bool)
    known: dict[tuple[Any, ...], bool] = {}
    for row_index, values in enumerate(_values(rows, names)):
        if values not in known:
            row = dict(zip((n.lower() for n in names), values, strict=True))
            at_place = place(row)
            inner = sub(row) if sub is not None and any(s is not None for _, s in wanted) else None
            known[values] = at_place is not None and ((at_place, None) in wanted or (at_place, inner) in wanted)
        mask[row_index] = known[values]
    return mask


def _levels(removal: Removal) -> Iterator[Partitioning]:
    yield removal.partitioning
    spots = (spot for name in removal.names for spot in removal.partitioning.named(name))
    if removal.partitioning.sub is not None and any(inner is not None for _, inner in spots):
        yield removal.partitioning.sub


def _kinds(schema: pa.Schema) -> dict[str, pa.DataType]:
    return {field.name.lower(): field.type for field in schema}


def _values(rows: pa.Table, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    by_name = {n.lower(): n for n in rows.column_names}
    columns = []
    for name in names:
        column = rows.column(by_name[lake_name(name).lower()])
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", tz="UTC"))
        columns.append(column.to_pylist())
    return zip(*columns, strict=True) if columns else iter([()] * len(rows))


def _place(level: Partitioning, kinds: dict[str, pa.DataType]) -> tuple[Place, tuple[str, ...]]:
    """The place of a row in one level, and the columns that it depends on."""
    if level.method is Method.KEY or level.method is Method.OTHER:
        raise UnsupportedError(
            f"rows of partitions by {level.method} are found by a function that only the server has", do_next=_KEEP
        )
    if level.columns:
        names = level.columns
        kind_of = [kinds.get(lake_name(name).lower()) for name in names]
        comparable = [_comparable(kind, level.method) for kind in kind_of if kind is not None]

        def value(row: Row) -> Any:  # noqa: ANN401 - a tuple of values
            return tuple(make(row[n.lower()]) for n, make in zip(names, comparable, strict=True))

        return (_in_range if level.method is Method.RANGE else _in_list)(level, value, comparable), names
    evaluate, needed = expression(level.expression)
    for name in needed:
        kind = kinds.get(lake_name(name).lower())
        if kind is not None and not any(check(kind) for check in _COMPARED):
            raise UnsupportedError(f"partition column {name} is {kind} in the lake", do_next=_KEEP)
    if level.method is Method.HASH:
        return _hashed(level, evaluate), needed
    one: list[Callable[[Any], Any]] = [_as_is]
    of_row = _single(evaluate)
    return (_in_range if level.method is Method.RANGE else _in_list)(level, of_row, one), needed


def _single(evaluate: Callable[[Row], Any]) -> Callable[[Row], Any]:
    return lambda row: (evaluate(row),)


def _as_is(value: Any) -> Any:  # noqa: ANN401 - any value
    return value


def _comparable(kind: pa.DataType, method: Method) -> Callable[[Any], Any]:
    """Makes a column's values, and the texts of bounds, comparable."""
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return lambda value: None if value is None else int(value)
    if pa.types.is_date32(kind):
        return lambda value: None if value is None else str(value)[:10]
    if pa.types.is_timestamp(kind):
        return lambda value: None if value is None else _moment_text(value)
    if pa.types.is_string(kind) and method is Method.LIST:
        return lambda value: None if value is None else str(value)
    raise UnsupportedError(
        f"the order of {kind} values in partitions depends on a collation that the log does not name", do_next=_KEEP
    )


def _moment_text(value: Any) -> str:  # noqa: ANN401 - a datetime or a text
    text = str(value).removesuffix("+00:00")
    text = text if len(text) > 10 else f"{text} 00:00:00"
    return text if "." in text else f"{text}.000000"


def _in_range(level: Partitioning, value: Callable[[Row], Any], make: Sequence[Callable[[Any], Any]]) -> Place:
    bounds = [
        tuple(
            None if text.upper() == MAXVALUE else one(constant(text))
            for text, one in zip(part.values, make, strict=True)
        )
        for part in level.parts
    ]

    def place(row: Row) -> int | None:
        given = value(row)
        return next((index for index, bound in enumerate(bounds) if _below(given, bound)), None)

    return place


def _below(given: Sequence[Any], bound: Sequence[Any]) -> bool:
    """Whether a tuple is less than a bound; null is less than any value, and None in a bound is MAXVALUE."""
    for value, limit in zip(given, bound, strict=True):
        if limit is None:
            return True
        if value is None or value < limit:
            return True
        if value > limit:
            return False
    return False


def _in_list(level: Partitioning, value: Callable[[Row], Any], make: Sequence[Callable[[Any], Any]]) -> Place:
    places: dict[tuple[Any, ...], int] = {}
    default: int | None = None
    for index, part in enumerate(level.parts):
        if part.values == ("DEFAULT",):
            default = index
            continue
        for text in part.values:
            texts = [text] if len(make) == 1 else _inside(text)
            places[tuple(one(constant(t)) for t, one in zip(texts, make, strict=True))] = index
    if not any(isinstance(one, str) for listed in places for one in listed):
        return lambda row: places.get(value(row), default)
    return _in_texts(level, value, places, default)


def _in_texts(
    level: Partitioning, value: Callable[[Row], Any], places: Mapping[tuple[Any, ...], int], default: int | None
) -> Place:
    """The place by listed texts. A collation that the log does not name decides which texts are equal. A row that is in
    a partition has one of the listed values, whatever it is; so a plain one that has one counterpart is that one."""
    alike: dict[tuple[Any, ...], set[int]] = {}
    for listed, index in places.items():
        alike.setdefault(_folded(listed), set()).add(index)
    plain = all(_is_plain(listed) for listed in places)

    def place(row: Row) -> int | None:
        given = value(row)
        if given in places or not any(isinstance(one, str) for one in given):
            return places.get(given, default)
        counterparts = alike.get(_folded(given), set())
        if plain and _is_plain(given) and (not counterparts or (default is None and len(counterparts) == 1)):
            return next(iter(counterparts), default)
        raise UnsupportedError(
            f"which partition by {', '.join(level.columns)} has the value {', '.join(map(str, given))!r} depends on a "
            "collation that the log does not name",
            do_next=_KEEP,
        )

    return place


def _folded(values: Sequence[Any]) -> tuple[Any, ...]:
    """The same for texts that differ in case and spaces at the end alone."""
    return tuple(one.rstrip(" ").casefold() if isinstance(one, str) else one for one in values)


def _is_plain(values: Sequence[Any]) -> bool:
    """Whether texts have no letter that a collation may take for one of ASCII, and no character that it may ignore."""
    return all(not isinstance(one, str) or (one.isascii() and (one.isprintable() or not one)) for one in values)


def _inside(text: str) -> list[str]:
    return [text_of(part) for part in split_at_commas(Reader(tokens_of(text)).bracketed() or [])]


def _hashed(level: Partitioning, evaluate: Callable[[Row], Any]) -> Place:
    count = len(level.parts)
    mask = 1
    while mask < count:
        mask *= 2

    def place(row: Row) -> int | None:
        number = evaluate(row)
        number = _NULL if number is None else int(number)
        if not level.linear:
            return abs(number) % count
        partition = number & (mask - 1)
        return partition if partition < count else partition & (mask // 2 - 1)

    return place
