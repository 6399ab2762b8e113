"""The two streams and the table that they must make: orders of 12 columns, tracking of 6, one key.

Three events in five are orders. Every fiftieth event is late: it has a lower order than an event of its key that was
written in an earlier batch, and must change nothing. Nothing is deleted: partial updates of both peers have no delete
of a part of a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

KEY = "id"
_START_US = 1_760_000_000_000_000
_MICROS = pa.timestamp("us", tz="UTC")
_CENTS = pa.decimal128(12, 2)


@dataclass(frozen=True)
class Stream:
    """A source: its name, which is that of its topic and column group, and its columns without the key."""

    name: str
    schema: pa.Schema

    @property
    def order(self) -> str:
        """The column with the order of an event."""
        return f"{self.name}_order"

    def file(self, place: Path, number: int) -> Path:
        """The events of a batch."""
        return place / f"{self.name}-{number:03d}.parquet"


ORDERS = Stream(
    "orders",
    pa.schema(
        [
            pa.field("customer_id", pa.int64()),
            pa.field("status", pa.string()),
            pa.field("amount", _CENTS),
            pa.field("currency", pa.string()),
            pa.field("country", pa.string()),
            pa.field("note", pa.string()),
            pa.field("quantity", pa.int32()),
            pa.field("weight", pa.float64()),
            pa.field("created_at", _MICROS),
            pa.field("updated_at", _MICROS),
            pa.field("flag", pa.int32()),
        ]
    ),
)
TRACKING = Stream(
    "tracking",
    pa.schema(
        [
            pa.field("carrier", pa.string()),
            pa.field("place", pa.string()),
            pa.field("scans", pa.int32()),
            pa.field("temperature", pa.float64()),
            pa.field("seen_at", _MICROS),
        ]
    ),
)
STREAMS = (ORDERS, TRACKING)


@dataclass(frozen=True)
class Sizes:
    """The number of events, of batches, and of keys. ``small`` batches of ``small_events`` follow the others."""

    events: int = 200_000
    batches: int = 5
    warm: int = 1
    keys: int = 40_000
    small: int = 4
    small_events: int = 500

    def batch_sizes(self) -> list[int]:
        """Events of each batch."""
        each = self.events // self.batches
        return [each] * (self.warm + self.batches) + [self.small_events] * self.small


def write_streams(place: Path, sizes: Sizes) -> None:
    """Write the batches of both streams as Parquet files."""
    place.mkdir(parents=True)
    random = np.random.default_rng(7)
    first = 0
    for number, count in enumerate(sizes.batch_sizes()):
        order = first + np.arange(count, dtype=np.int64)
        keys = random.integers(0, sizes.keys, count)
        of_orders = random.random(count) < 0.6
        order = np.where(random.random(count) < 0.02, order // 2 * 2 + 1, order * 2)  # late ones are odd
        for stream, chosen in ((ORDERS, of_orders), (TRACKING, ~of_orders)):
            pq.write_table(events_of(stream, keys[chosen], order[chosen]), stream.file(place, number))
        first += count


def events_of(stream: Stream, keys: npt.NDArray[np.int64], order: npt.NDArray[np.int64]) -> pa.Table:
    """n events: the key, the order, and columns that are functions of both. No two events of a key are equal."""
    mixed = (keys * 2_654_435_761 + order * 40_503) & 0x7FFFFFFF
    columns = {
        "customer_id": pa.array(keys % 9973),
        "status": _texts("status", mixed % 4),
        "amount": pa.array([Decimal(n).scaleb(-2) for n in range(5000)], _CENTS).take(pa.array(mixed % 5000)),
        "currency": _texts("EUR", mixed % 3),
        "country": _texts("C", keys % 40),
        "note": pc.if_else(pa.array(mixed % 7 == 0), None, _texts("order note with some words in it", mixed % 200)),
        "quantity": pa.array(mixed % 17).cast(pa.int32()),
        "weight": pa.array(mixed % 1000 / 8),
        "created_at": pa.array(_START_US + keys * 500).cast(_MICROS),
        "updated_at": pa.array(_START_US + order * 500).cast(_MICROS),
        "flag": pa.array(mixed % 2).cast(pa.int32()),
        "carrier": _texts("carrier", keys % 5),
        "place": pc.if_else(pa.array(mixed % 11 == 0), None, _texts("place", mixed % 1000)),
        "scans": pa.array(mixed % 30).cast(pa.int32()),
        "temperature": pa.array(mixed % 400 / 16),
        "seen_at": pa.array(_START_US + order * 700).cast(_MICROS),
    }
    own = {name: columns[name] for name in stream.schema.names}
    return pa.table({KEY: pa.array(keys), stream.order: pa.array(order), **own})


def _texts(word: str, numbers: npt.NDArray[np.int64]) -> pa.Array:
    distinct, places = np.unique(numbers, return_inverse=True)
    return pa.array([f"{word} {number}" for number in distinct.tolist()]).take(pa.array(places))


def expected(place: Path, batches: Sequence[int]) -> pa.Table:
    """The table after these batches: of each key and stream the event of the greatest order, in key order."""
    parts = [
        _newest(stream, pa.concat_tables(pq.read_table(stream.file(place, n)) for n in batches)) for stream in STREAMS
    ]
    return canonical(parts[0].join(parts[1], KEY, join_type="full outer", coalesce_keys=True))


def _newest(stream: Stream, events: pa.Table) -> pa.Table:
    events = events.append_column("arrival", pa.array(np.arange(events.num_rows)))
    events = events.sort_by([(KEY, "ascending"), (stream.order, "descending"), ("arrival", "descending")])
    keys = events.column(KEY).to_numpy()
    first = np.concatenate([[True], keys[1:] != keys[:-1]])
    return events.filter(pa.array(first)).drop_columns(["arrival"])


def canonical(table: pa.Table) -> pa.Table:
    """The value columns in their own types and in key order, so that two tables can be compared."""
    fields = [pa.field(KEY, pa.int64()), *(field for stream in STREAMS for field in stream.schema)]
    columns = {field.name: table.column(field.name).cast(field.type) for field in fields}
    return pa.table(columns).sort_by(KEY).combine_chunks()


def numbers(sizes: Sizes) -> Iterator[tuple[str, range]]:
    """The parts of a run and the numbers of their batches."""
    ingest = sizes.warm + sizes.batches
    yield "warm", range(sizes.warm)
    yield "ingest", range(sizes.warm, ingest)
    yield "small", range(ingest, ingest + sizes.small)


def wrong_rows(found: pa.Table, wanted: pa.Table) -> int:
    """The number of rows in which a canonical table is not as another one, missing and surplus rows included."""
    both = pc.is_in(found.column(KEY), value_set=wanted.column(KEY).combine_chunks())
    there = found.filter(both)
    right = wanted.filter(pc.is_in(wanted.column(KEY), value_set=found.column(KEY).combine_chunks()))
    missing: int = wanted.num_rows - right.num_rows + found.num_rows - there.num_rows
    if there.num_rows != right.num_rows:  # a key occurs twice
        return int(missing + abs(there.num_rows - right.num_rows))
    differs = np.zeros(there.num_rows, dtype=np.bool_)
    for name in wanted.column_names:
        mine, theirs = there.column(name), right.column(name)
        same = pc.fill_null(pc.equal(mine, theirs), False)
        nulls = pc.and_(pc.is_null(mine), pc.is_null(theirs))
        differs |= ~np.asarray(pc.or_(same, nulls).combine_chunks().to_numpy(zero_copy_only=False), dtype=np.bool_)
    return int(missing + differs.sum())
