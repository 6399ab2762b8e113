"""A small database that changes continuously: it generates Debezium's envelopes and knows its own final rows.

A seed and a clock determine everything: inserts, updates, deletes, changed keys, rows that return after a delete,
transactions, binlog files that rotate past number one million (where a comparison of names as text is wrong), and
occasionally a connector that fails and sends its last events again.
"""

from __future__ import annotations

import json
import random
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from demo.live_columns import WIDE
from demo.live_tables import DATABASE, PREFIX, Key, LiveTable, Row, accounts, events
from demo.messages import Message
from demo.truth import TruthTable

PARTITIONS = 3
SERVER_ID = 4711

_ROTATE_BYTES = 40_000
_FIRST_FILE = 999_997
_REMEMBERED = 120
_WORDS = ("Ada", "Grace", "Łukasz", "雪", "naïve", "O'Brien", "🧪", "a,b", "x:y", 'q"q', "back\\slash")


@dataclass
class Binlog:
    """The position of the next event."""

    file_number: int = _FIRST_FILE
    position: int = 4
    transaction: int = 0

    @property
    def file(self) -> str:
        """The file's name as the server spells it."""
        return f"mysql-bin.{self.file_number:06d}"

    def advance(self, size: int) -> None:
        """Move past an event of ``size`` bytes, to the next file when this one is full."""
        self.position += size
        if self.position > _ROTATE_BYTES:
            self.file_number, self.position = self.file_number + 1, 4


class LiveSource:
    """The database and its connector.

    Args:
        seed: two sources with the same seed and clock generate the same messages.
        now_us: microseconds since the epoch.
    """

    def __init__(self, seed: int, now_us: Callable[[], int]) -> None:
        self._random = random.Random(seed)  # noqa: S311 - reproducible, not secret
        self._now_us = now_us
        self._binlog = Binlog()
        self._sent: deque[Message] = deque(maxlen=_REMEMBERED)
        self._gone: deque[tuple[str, Key]] = deque(maxlen=_REMEMBERED)
        self.accounts, self.events = accounts(), events()
        self.changes = 0

    @property
    def tables(self) -> tuple[LiveTable, ...]:
        """All tables."""
        return self.accounts, self.events

    def snapshot(self, rows: int) -> list[Message]:
        """The connector's snapshot of ``rows`` accounts: records with op r, all at one position."""
        messages = []
        for number in range(rows):
            row = self._new_account(number + 1)
            self.accounts.rows[self.accounts.key_of(row)] = row
            messages.append(self._message(self.accounts, "r", None, row))
        self._binlog.advance(500)
        return messages

    def transaction(self) -> list[Message]:
        """One transaction's messages, in order; sometimes the last messages before it are sent again first."""
        again = self._redelivered() if self._random.random() < 0.004 else []
        self._binlog.transaction += 1
        changes = [m for _ in range(self._random.randint(1, 3)) for m in self._change()]
        self._sent.extend(changes)
        return again + changes

    def truth(self) -> list[TruthTable]:
        """The current result of ``SELECT *``."""
        return [t.truth() for t in self.tables]

    def _redelivered(self) -> list[Message]:
        count = self._random.randint(1, _REMEMBERED)
        return list(self._sent)[-count:]

    def _change(self) -> Iterator[Message]:
        self.changes += 1
        pick = self._random.random()
        if pick < 0.45:
            yield from self._update_account()
        elif pick < 0.50:
            yield from self._insert(self.accounts, self._new_account(*self._fresh(self.accounts, self._draw_id)))
        elif pick < 0.53:
            yield from self._delete(self.accounts)
        elif pick < 0.56:
            yield from self._change_account_id()
        elif pick < 0.58:
            yield from self._delete(self.events)
        elif pick < 0.68:
            yield from self._correct_event()
        else:
            yield from self._insert(self.events, self._new_event())

    def _any(self, table: LiveTable) -> Row | None:
        return table.rows[self._random.choice(list(table.rows))] if table.rows else None

    def _insert(self, table: LiveTable, row: Row) -> Iterator[Message]:
        table.rows[table.key_of(row)] = row
        yield self._message(table, "c", None, row)
        self._step()

    def _delete(self, table: LiveTable) -> Iterator[Message]:
        row = self._any(table)
        if row is not None:
            del table.rows[table.key_of(row)]
            self._gone.append((table.name, table.key_of(row)))
            yield self._message(table, "d", row, None)
            yield self._tombstone(table, row)
            self._step()

    def _update_account(self) -> Iterator[Message]:
        before = self._any(self.accounts)
        if before is not None:
            moved = Decimal(self._random.randint(-99_999, 99_999)).scaleb(-2)
            after = {**before, "balance": before["balance"] + moved, "updated": self._moment()}
            if self._random.random() < 0.2:
                after["tier"] = self._random.choice(("basic", "silver", "gold"))
            self.accounts.rows[self.accounts.key_of(after)] = after
            yield self._message(self.accounts, "u", before, after)
            self._step()

    def _change_account_id(self) -> Iterator[Message]:
        """A changed primary key: delete, tombstone and create, all at one position."""
        before = self._any(self.accounts)
        if before is not None:
            after = {**before, "id": self._fresh(self.accounts, self._draw_id)[0], "updated": self._moment()}
            del self.accounts.rows[self.accounts.key_of(before)]
            self.accounts.rows[self.accounts.key_of(after)] = after
            newkey = (("__debezium.newkey", _json(self.accounts.wire(after, ("id",)))),)
            oldkey = (("__debezium.oldkey", _json(self.accounts.wire(before, ("id",)))),)
            yield self._message(self.accounts, "d", before, None, newkey)
            yield self._tombstone(self.accounts, before, newkey)
            yield self._message(self.accounts, "c", None, after, oldkey)
            self._step()

    def _correct_event(self) -> Iterator[Message]:
        before = self._any(self.events)
        if before is not None:
            after = {**before, "reading": self._random.gauss(20, 5), "payload": {"corrected": True, "by": self._name()}}
            self.events.rows[self.events.key_of(after)] = after
            yield self._message(self.events, "u", before, after)
            self._step()

    def _fresh(self, table: LiveTable, draw: Callable[[], Key]) -> Key:
        """A key that no row has; sometimes that of a row deleted before."""
        if self._gone and self._random.random() < 0.15:
            name, key = self._gone.pop()
            if name == table.name and key not in table.rows:
                return key
        while (key := draw()) in table.rows:
            pass
        return key

    def _draw_id(self) -> Key:
        """Small ids, and sometimes one above 2**63."""
        number = self._random.randint(1, 1_000_000)
        return ((1 << 64) - number if self._random.random() < 0.1 else number,)

    def _draw_event_key(self) -> Key:
        return f"dev-{self._random.randint(0, 40):03d}", self._random.randint(0, 1_000_000)

    def _new_account(self, number: int) -> Row:
        return {
            "id": number,
            "owner": self._name(),
            "balance": Decimal(self._random.randint(-(10**7), 10**9)).scaleb(-2),
            "rate": Decimal(self._random.randint(-(10**30) + 1, 10**30 - 1)).scaleb(-12, WIDE),
            "tier": self._random.choice(("basic", "silver", "gold")),
            "vip": self._random.choice((True, False, None)),
            "opened": date(1969, 1, 1) + timedelta(days=self._random.randint(0, 30_000)),
            "updated": self._moment(),
        }

    def _new_event(self) -> Row:
        late = timedelta(days=self._random.choice((0, 0, 0, 0, 1, 2)))
        value = self._random.choice((None, self._random.gauss(20, 5), -0.0, 1e-300, float(self._random.randint(0, 9))))
        device, seq = self._fresh(self.events, self._draw_event_key)
        return {
            "device": device,
            "seq": seq,
            "at": self._moment() - late,
            "kind": self._random.choice(("start", "reading", "reading", "stop")),
            "payload": {"who": self._name(), "list": [1, 2.5, None, True], "text": "line\nbreak"},
            "reading": value,
            "shift": timedelta(milliseconds=self._random.randint(-3_000_000_000, 3_000_000_000)),
            "raw": self._random.randbytes(self._random.randint(0, 24)),
        }

    def _name(self) -> str:
        return " ".join(self._random.choice(_WORDS) for _ in range(self._random.randint(1, 3)))

    def _moment(self) -> datetime:
        """The current time as MySQL's UTC digits; one in eight without a fraction."""
        micros = self._now_us()
        whole = datetime.fromtimestamp(micros // 1_000_000, tz=UTC).replace(tzinfo=None)
        return whole if self._random.random() < 0.125 else whole.replace(microsecond=micros % 1_000_000)

    def _step(self) -> None:
        self._binlog.advance(self._random.randint(150, 700))

    def _tombstone(self, table: LiveTable, row: Row, headers: tuple[tuple[str, bytes | None], ...] = ()) -> Message:
        key = _json(table.wire(row, table.key))
        return Message(table.topic, _partition(key), self._now_us() // 1000, key, None, headers)

    def _message(
        self,
        table: LiveTable,
        op: str,
        before: Row | None,
        after: Row | None,
        headers: tuple[tuple[str, bytes | None], ...] = (),
    ) -> Message:
        row = after if after is not None else before
        key = _json(table.wire(row or {}, table.key))
        micros = self._now_us()
        envelope = {
            "before": None if before is None else table.wire(before),
            "after": None if after is None else table.wire(after),
            "source": self._source(table, op, micros),
            "transaction": None,
            "op": op,
            "ts_ms": micros // 1000,
        }
        return Message(table.topic, _partition(key), micros // 1000, key, _json(envelope), headers)

    def _source(self, table: LiveTable, op: str, micros: int) -> dict[str, Any]:
        """Debezium's source block; the binlog's own time is in whole seconds."""
        seconds, first_look = micros // 1_000_000, op == "r"
        return {
            "version": "3.4.0.Final",
            "connector": "mysql",
            "name": PREFIX,
            "ts_ms": seconds * 1000,
            "snapshot": "true" if first_look else "false",
            "db": DATABASE,
            "sequence": None,
            "table": table.name,
            "server_id": 0 if first_look else SERVER_ID,
            "gtid": None if first_look else f"0-{SERVER_ID}-{self._binlog.transaction}",
            "file": self._binlog.file,
            "pos": self._binlog.position,
            "row": 0,
            "thread": None,
            "query": None,
        }


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _partition(key: bytes) -> int:
    """The partition of a key; a key always has the same one."""
    return zlib.crc32(key) % PARTITIONS
