"""The workload: Debezium JSON change events of one table, about 540 bytes each, twelve columns.

200,000 keys, 80 % of the changes on 20 % of them, 3 % deletes; positions ascend as in a binlog. A ``Shape`` makes the
rows wider, spreads them over partitions, draws the keys by another law or gives the table another name.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

DATABASE, TABLE = "bench", "orders"
COLUMNS = {
    "id": "bigint",
    "customer_id": "int",
    "status": "enum('new','paid','shipped','cancelled')",
    "amount": "decimal(12,2)",
    "currency": "char(3)",
    "country": "char(2)",
    "note": "varchar(60)",
    "quantity": "int",
    "weight": "double",
    "created_at": "datetime(6)",
    "updated_at": "timestamp(6)",
    "flag": "tinyint",
}
_STATUS = ("new", "paid", "shipped", "cancelled")
_START_US = 1_760_000_000_000_000
_ROW = (
    '{{"id":{id},"customer_id":{customer},"status":"{status}","amount":"{amount}","currency":"EUR","country":"{country}",'
    '"note":"{note}","quantity":{quantity},"weight":{weight},"created_at":{created},"updated_at":"{updated}","flag":1{extra}}}'
)
_ENVELOPE = (
    '{{"before":null,"after":{after},"source":{{"version":"3.4.0.Final","connector":"mysql","name":"bench",'
    '"ts_ms":{ts},"snapshot":"false","db":"bench","table":"orders","server_id":1,"gtid":null,'
    '"file":"mysql-bin.{file:06d}","pos":{pos},"row":0}},"op":"{op}","ts_ms":{ts}}}'
)
_DELETE = _ENVELOPE.replace('"before":null,"after":{after}', '"before":{after},"after":null')


def amount_text(cents: int) -> str:
    """An unscaled decimal as Debezium writes it: base64 of its shortest two's complement."""
    size = (cents.bit_length() + 8) // 8
    return base64.b64encode(cents.to_bytes(size, "big", signed=True)).decode()


#: Types of the columns after the first twelve, in rotation.
EXTRA = ("bigint", "varchar(24)", "double", "datetime(6)", "decimal(12,2)")
_VARIANTS = 500
#: 80 % of the changes on 20 % of the keys; all keys alike; or as LakeLoader draws updates (``key_drawer``).
Skew = Literal["80/20", "uniform", "zipf"]
#: LakeLoader's exponent, and the parts of a table that its example of a fact table updates.
ZIPF_EXPONENT, ZIPF_PARTS = 2.93, 90


@dataclass(frozen=True)
class Shape:
    """How the rows differ from the plain ones: ``columns`` in all, ``partitions`` values of ``country`` (0: one).
    ``inserts``: every event adds a row of its own. ``skew``: the law by which keys are drawn."""

    columns: int = len(COLUMNS)
    partitions: int = 0
    table: str = TABLE
    inserts: bool = False
    skew: Skew = "80/20"

    def types(self) -> dict[str, str]:
        """The columns with their MySQL types."""
        more = range(self.columns - len(COLUMNS))
        return COLUMNS | {f"extra_{n:02d}": EXTRA[n % len(EXTRA)] for n in more}

    def extras(self) -> list[str]:
        """The additional columns of a row as JSON, in variants."""
        rng = random.Random(self.columns)
        names = [name for name in self.types() if name not in COLUMNS]
        rows = range(_VARIANTS if names else 1)
        return ["".join(f',"{name}":{_extra(n % len(EXTRA), rng)}' for n, name in enumerate(names)) for _ in rows]


PLAIN = Shape()


def _extra(kind: int, rng: random.Random) -> str:
    value = rng.randrange(1 << 40)
    if kind == 1:
        return f'"text {value:012x}"'
    if kind == 2:
        return str(value / 64)
    if kind == 3:
        return str(_START_US + value)
    return f'"{amount_text(value % 1_000_000)}"' if kind == 4 else str(value)


def key_drawer(rng: random.Random, keys: int, skew: Skew) -> Callable[[], int]:
    """What draws the key of the next event.

    LakeLoader's law is one of partitions: the part of rank r has a share of r to the power of minus its exponent, and
    the keys within a part are alike. Here a part is a range of keys, the first of them the most frequent.
    """
    if skew == "uniform":
        return lambda: rng.randrange(keys)
    if skew == "zipf":
        shares = list(accumulate(rank**-ZIPF_EXPONENT for rank in range(1, ZIPF_PARTS + 1)))
        (parts, size) = (range(ZIPF_PARTS), keys // ZIPF_PARTS)
        return lambda: rng.choices(parts, cum_weights=shares)[0] * size + rng.randrange(size)
    hot = keys // 5
    return lambda: rng.randrange(hot) if rng.random() < 0.8 else hot + rng.randrange(keys - hot)


def events(
    count: int, keys: int = 200_000, seed: int = 7, first: int = 0, shape: Shape = PLAIN, loaded: int = 0
) -> Iterator[tuple[bytes, bytes]]:
    """(key, value) of ``count`` change events; ``first`` is the number of events before them.

    The first ``loaded`` of all events insert the keys from 0 on, each once.
    """
    extras = shape.extras()
    plain = '"table":"orders"'
    envelope, delete = (t.replace(plain, f'"table":"{shape.table}"') for t in (_ENVELOPE, _DELETE))
    rng = random.Random(seed + first)
    draw = key_drawer(rng, keys, shape.skew)
    notes = [f"order note {n:03d} with some words in it, and then some" for n in range(200)]
    amounts = [amount_text(rng.randrange(-50_000, 5_000_000)) for _ in range(2_000)]
    for n in range(first, first + count):
        key = draw()
        key = n if shape.inserts or n < loaded else key
        us = _START_US + n * 500
        row = _ROW.format(
            id=key,
            customer=key % 9973,
            status=_STATUS[n & 3],
            amount=amounts[n % 2000],
            note=notes[n % 200],
            quantity=n % 17,
            weight=round(n % 1000 * 0.37, 2),
            created=us,
            updated=f"2025-10-09T08:{n // 60 % 60:02d}:{n % 60:02d}.{n % 1_000_000:06d}Z",
            country=f"{key % shape.partitions:02d}" if shape.partitions else "DE",
            extra=extras[n % len(extras)],
        )
        kind = rng.random()
        kind = 0.1 if shape.inserts or n < loaded else kind
        template, op = (delete, "d") if kind < 0.03 else (envelope, "c" if kind < 0.3 else "u")
        file, pos = divmod(n * 600 + 4, 1 << 30)
        value = template.format(after=row, ts=us // 1000, file=file + 1, pos=pos, op=op)
        yield b'{"id":%d}' % key, value.encode()
