"""The workload: Debezium JSON change events of one table, about 540 bytes each, twelve columns.

200,000 keys, 80 % of the changes on 20 % of them, 3 % deletes; positions ascend as a binlog's do.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator

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
    '{{"id":{id},"customer_id":{customer},"status":"{status}","amount":"{amount}","currency":"EUR","country":"DE",'
    '"note":"{note}","quantity":{quantity},"weight":{weight},"created_at":{created},"updated_at":"{updated}","flag":1}}'
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


def events(count: int, keys: int = 200_000, seed: int = 7, first: int = 0) -> Iterator[tuple[bytes, bytes]]:
    """(key, value) of ``count`` change events; ``first`` is how many came before them."""
    rng = random.Random(seed + first)
    hot = keys // 5
    notes = [f"order note {n:03d} with some words in it, and then some" for n in range(200)]
    amounts = [amount_text(rng.randrange(-50_000, 5_000_000)) for _ in range(2_000)]
    for n in range(first, first + count):
        key = rng.randrange(hot) if rng.random() < 0.8 else hot + rng.randrange(keys - hot)
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
        )
        kind = rng.random()
        template, op = (_DELETE, "d") if kind < 0.03 else (_ENVELOPE, "c" if kind < 0.3 else "u")
        file, pos = divmod(n * 600 + 4, 1 << 30)
        value = template.format(after=row, ts=us // 1000, file=file + 1, pos=pos, op=op)
        yield b'{"id":%d}' % key, value.encode()
