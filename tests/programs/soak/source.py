"""The database under the soak: the demo's live one, and what it has not.

That is a table without a key, columns that are added now and then (told by schema change records), TRUNCATE, and events
that come again long after newer ones. The number of rows stays bounded, so that the tables' size must too.
"""

from __future__ import annotations

import json
import random
import string
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from demo import live_columns as c
from demo.live import PARTITIONS, LiveSource
from demo.live_tables import DATABASE, Key, LiveTable, Row
from demo.messages import Message
from demo.truth import TruthTable

#: Rows of a table from which on as many go as come.
ROWS = 2_000
#: Columns that a table gets in its life, at most.
ADDED_COLUMNS = 5
#: How late an event comes at most when it comes again; well below the tombstones' retention.
LATE_S = 60.0
_LATE_KEPT = 3_000
_ADDED = (
    lambda name: c.text(name, "varchar(40)"),
    lambda name: c.decimal(name, 12, 4),
    lambda name: c.integer(name),
    lambda name: c.double(name),
    lambda name: c.day(name),
)


def visits() -> LiveTable:
    """Rows without a key, many of them equal. ``rows`` is by a number that no event carries."""
    return LiveTable("visits", (c.text("page", "varchar(20)"), c.integer("depth"), c.datetime6("at")), ())


class SoakSource(LiveSource):
    """Args: ``seed`` and ``now_us`` as the live database's; ``prefix`` begins the topics' names."""

    def __init__(self, seed: int, now_us: Callable[[], int], prefix: str) -> None:
        super().__init__(seed, now_us)
        self.visits = visits()
        self.prefix = prefix
        for table in self.tables:
            table.prefix = prefix
        self._visit_number = 0
        self._long_ago: deque[Message] = deque(maxlen=_LATE_KEPT)
        self._altered: list[Message] = []

    @property
    def tables(self) -> tuple[LiveTable, ...]:
        """All tables."""
        return self.accounts, self.events, self.visits

    def topics(self) -> dict[str, int]:
        """The topics of the tables and how many partitions each has; the schema change topic is ``prefix``."""
        return {table.topic: PARTITIONS for table in self.tables}

    def begin(self, rows: int) -> list[Message]:
        """The schema change records of all tables, then the snapshot."""
        return [self._ddl(table, "CREATE") for table in self.tables] + self.snapshot(rows)

    def transaction(self) -> list[Message]:
        """As the live database's; now and then with an event from long ago before it."""
        while self._long_ago and self._long_ago[0].timestamp_ms < self._now_us() // 1000 - LATE_S * 1000:
            self._long_ago.popleft()
        late = [self._random.choice(self._long_ago)] if self._long_ago and self._random.random() < 0.02 else []
        messages = super().transaction()
        self._long_ago.extend(m for m in messages if m.key is not None and m.value and self._random.random() < 0.05)
        told, self._altered = self._altered, []
        return told + late + messages

    def alter(self) -> bool:
        """Add a column to a table, and fill it in one row: a column that no event carries does not reach the lake.

        False where every table has enough of them.
        """
        open_to = [t for t in self.tables if t.rows and len(added(t)) < ADDED_COLUMNS]
        if not open_to:
            return False
        table = self._random.choice(open_to)
        name = f"added_{len(added(table))}"
        table.columns = (*table.columns, self._random.choice(_ADDED)(name))
        for row in table.rows.values():
            row[name] = None
        self._altered.append(self._ddl(table, "ALTER"))
        self._step()
        self._altered.extend(self._fill_added(table))
        return True

    def _change(self) -> Iterator[Message]:
        self.changes += 1
        pick = self._random.random()
        if pick < 0.25:
            yield from self._update_account()
        elif pick < 0.35:
            yield from self._come_or_go(self.accounts, self._insert_account)
        elif pick < 0.40:
            yield from self._change_account_id()
        elif pick < 0.60:
            yield from self._come_or_go(self.events, lambda: self._insert(self.events, self._new_event()))
        elif pick < 0.70:
            yield from self._correct_event()
        elif pick < 0.75:
            yield from self._fill_added(self._random.choice(self.tables))
        elif pick < 0.9997:
            yield from self._visit()
        else:
            yield self._truncate(self.visits)

    def _come_or_go(self, table: LiveTable, come: Callable[[], Iterator[Message]]) -> Iterator[Message]:
        share = 0.15 + 0.7 * (len(table.rows) >= ROWS)
        yield from self._delete(table) if self._random.random() < share else come()

    def _insert_account(self) -> Iterator[Message]:
        yield from self._insert(self.accounts, self._new_account(*self._fresh(self.accounts, self._draw_id)))

    def _new_account(self, number: int) -> Row:
        return {**super()._new_account(number), **self._values_of_added(self.accounts)}

    def _new_event(self) -> Row:
        return {**super()._new_event(), **self._values_of_added(self.events)}

    def _values_of_added(self, table: LiveTable) -> Row:
        return {column.name: self._value(column) for column in added(table)}

    def _value(self, column: c.LiveColumn) -> Any:  # noqa: ANN401 - a value of any column type
        if self._random.random() < 0.2:
            return None
        account = super()._new_account(0)
        kind = column.type.split("(")[0]
        by_kind = {"varchar": "owner", "date": "opened"}
        if kind in by_kind:
            return account[by_kind[kind]][:40] if kind == "varchar" else account[by_kind[kind]]
        if kind == "decimal":
            return account["balance"].scaleb(-2) % 10**8
        return self._random.gauss(0, 1) if kind == "double" else self._random.randint(-(1 << 31), (1 << 31) - 1)

    def _fill_added(self, table: LiveTable) -> Iterator[Message]:
        """A value in an added column of an old row."""
        if not (added(table) and table.rows):
            return
        key = self._random.choice(list(table.rows))
        column = self._random.choice(added(table))
        before = table.rows[key]
        after = table.rows[key] = {**before, column.name: self._value(column)}
        yield self._event(table, "u", before, after)
        self._step()

    def _visit(self) -> Iterator[Message]:
        """Something happens to the table without a key."""
        rows, pick = self.visits.rows, self._random.random()
        key: Key = self._random.choice(list(rows)) if rows else ()
        if rows and pick < 0.2:
            before, after = rows[key], {**rows[key], "depth": self._random.randint(0, 3)}
            rows[key] = after
            yield self._event(self.visits, "u", before, after)
        elif rows and pick < 0.35 + 0.4 * (len(rows) >= ROWS):
            yield self._event(self.visits, "d", rows.pop(key), None)
        else:
            self._visit_number += 1
            after = rows[(self._visit_number,)] = self._new_visit()
            yield self._event(self.visits, "c", None, after)
        self._step()

    def _new_visit(self) -> Row:
        page = "/" + self._random.choice(string.ascii_lowercase)
        at = self._moment().replace(second=0, microsecond=0)
        return {"page": page, "depth": self._random.randint(0, 3), "at": at, **self._values_of_added(self.visits)}

    def _event(self, table: LiveTable, op: str, before: Row | None, after: Row | None) -> Message:
        """A message; without a key it goes to any partition."""
        message = self._message(table, op, before, after)
        if table.key:
            return message
        return replace(message, key=None, partition=self._random.randrange(PARTITIONS))

    def _truncate(self, table: LiveTable) -> Message:
        table.rows.clear()
        micros = self._now_us()
        body = {"before": None, "after": None, "source": self._source(table, "t", micros), "op": "t"}
        self._step()
        return Message(table.topic, 0, micros // 1000, None, json.dumps(body).encode())

    def _ddl(self, table: LiveTable, kind: str) -> Message:
        """What Debezium writes to the schema change topic."""
        micros = self._now_us()
        columns = [
            {"name": column.name, "typeName": column.type, "typeExpression": column.type} for column in table.columns
        ]
        described = {"columns": columns, "primaryKeyColumnNames": list(table.key)}
        change = {"type": kind, "id": f'"{DATABASE}"."{table.name}"', "table": described}
        body = {
            "source": self._source(table, "c", micros),
            "databaseName": DATABASE,
            "ddl": f"{kind} TABLE {table.name}",
            "tableChanges": [change],
        }
        return Message(self.prefix, 0, micros // 1000, None, json.dumps(body, ensure_ascii=False).encode())


def added(table: LiveTable) -> list[c.LiveColumn]:
    """The columns that ``alter`` has added."""
    return [column for column in table.columns if column.name.startswith("added_")]


def wrong(truth: TruthTable, chance: random.Random) -> TruthTable:
    """The same table with one cell changed: what a check of it must notice."""
    at, row = chance.randrange(len(truth.columns)), chance.randrange(len(truth.rows))
    cells = list(truth.rows[row])
    cells[at] = truth.rows[row - 1][at] if truth.rows[row - 1][at] != cells[at] else None
    rows = list(truth.rows)
    rows[row] = tuple(cells)
    return replace(truth, rows=rows)
