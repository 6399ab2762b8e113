"""Versions that some columns make, after each of many small batches: against the model of the log in plain Python."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from binlake.decode.changes import Op
from binlake.rows.merging.engines.versions import Versions
from binlake.rows.merging.states import KeyStates
from binlake.rows.merging.truncate import ended, ends_of
from binlake.rows.upsert.merge import Place
from binlake.rows.upsert.route import KEY
from binlake.rows.upsert.target import ORDER_FIELD
from binlake.rows.upsert.version_columns import VERSION_FIELDS, with_version_columns
from hudilake.format.definition.merging import Merging
from tests.binlake.stream.test_history import FILE, Model, Version
from tests.hypothesis_profile import scaled

SCHEMA = pa.schema(
    [("id", pa.int64()), ("owner", pa.string()), ("region", pa.string()), *VERSION_FIELDS, (ORDER_FIELD, pa.int64())]
)
COLUMNS = {"owner": Merging("scd2", tracked=("owner",)), "region": Merging("scd2", untracked=("owner",))}
#: place, key, row: None for a delete; key None for a TRUNCATE.
Event = tuple[int, int | None, dict[str, Any] | None]


@dataclass
class Group:
    """A file group: its rows by record key, and what lies beside its files."""

    merging: Merging
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    beside: dict[str, dict[str, Any]] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)

    def of(self, place: Place, file_id: str, keys: pa.Array, columns: Sequence[str]) -> KeyStates:
        raise AssertionError("versions ask for whole file groups")

    def live(self, file_id: str, columns: Sequence[str]) -> pa.Table:
        return self._table(self.rows, columns)

    def dead(self, file_id: str, columns: Sequence[str]) -> pa.Table:
        return self._table(self.beside, columns)

    def _table(self, rows: dict[str, dict[str, Any]], columns: Sequence[str]) -> pa.Table:
        schema = pa.schema([pa.field(KEY, pa.string()), *(SCHEMA.field(name) for name in columns)])
        return pa.Table.from_pylist([{KEY: key, **row} for key, row in rows.items()], schema=schema)

    def commit(self, events: Sequence[tuple[int, Event]]) -> None:
        """Events with their numbers in the log; TRUNCATEs among them count for all rows."""
        news = {FILE + place: place for _, (place, key, _) in events if key is None and FILE + place not in self.ends}
        self.ends |= news
        rows = _rows([(number, event) for number, event in events if event[1] is not None])
        parts = [ended(rows, self.ends)] if len(rows) else []
        if news and self.rows:
            parts.append(ends_of(self.live("", ("start_at", "end_at")), news))
        if not parts or not sum(map(len, parts)):
            return
        made = Versions(self.merging, SCHEMA, self).merge(
            ("", 0), "", pa.concat_tables(parts, promote_options="permissive")
        )
        for gone in made.write.deletes.column(KEY).to_pylist() if made.write.deletes is not None else ():
            del self.rows[gone]
        for into, rows in ((self.rows, made.write.upserts), (self.beside, made.tombstones)):
            into |= {row.pop(KEY): row for row in (rows.to_pylist() if rows is not None else ())}

    def versions(self) -> list[Version]:
        names = ("id", "owner", "start_at", "end_at", "is_current", "region")
        return sorted((tuple(row[n] for n in names) for row in self.rows.values()), key=lambda v: (v[0], v[2]))


def _rows(events: Sequence[tuple[int, Event]]) -> pa.Table:
    orders = np.array([FILE + place for _, (place, _, _) in events], dtype=np.int64)
    keys = [f"id:{key},start_at:{FILE + place}" for _, (place, key, _) in events]
    images = [{"id": key, "owner": None, "region": None} | (row or {}) for _, (_, key, row) in events]
    values = pa.Table.from_pylist(images, schema=pa.schema(list(SCHEMA)[:3])).add_column(
        0, KEY, pa.array(keys, pa.string())
    )
    table = with_version_columns(values, 4, orders, np.array([place for _, (place, _, _) in events], dtype=np.int64))
    meta = {
        "__op": pa.array([Op.DELETE if row is None else Op.UPSERT for _, (_, _, row) in events], pa.int8()),
        "__order": pa.array(orders),
        "__row": pa.array([0] * len(events), pa.int32()),
        "__offset": pa.array([number for number, _ in events], pa.int64()),
        "__partition": pa.array([0] * len(events), pa.int32()),
    }
    for name, column in meta.items():
        table = table.append_column(name, column)
    return table


def log_of(rng: random.Random) -> list[Event]:
    log, place = list[Event](), 100
    row: dict[str, str | None] = {"owner": "a", "region": "x"}
    for _ in range(rng.randint(3, 25)):
        chance = rng.random()
        last = log[-1][1] if log else None
        place += 0 if chance > 0.8 and last is not None else 10
        if chance < 0.06:
            log.append((place, None, None))
            continue
        row = {"owner": rng.choice("ab"), "region": rng.choice(["x", "y", None])} if chance > 0.3 else row
        log.append((place, rng.randint(1, 2), None if chance < 0.2 else dict(row)))
    return log


def begun_before(order: list[list[tuple[int, Event]]], rng: random.Random) -> list[list[tuple[int, Event]]]:
    """The deliveries of transactions, before some of which their first events come alone: a batch ends there."""
    parts = list[list[tuple[int, Event]]]()
    for transaction in order:
        alone = len(transaction) > 1 and transaction not in parts and rng.random() < 0.5
        parts += [transaction[: rng.randrange(1, len(transaction))], transaction] if alone else [transaction]
    return parts


@pytest.mark.full
@pytest.mark.parametrize("tracked", COLUMNS)
def test_after_each_batch_the_versions_are_those_of_the_events_by_then(tracked: str) -> None:
    cut = 0
    for seed in range(scaled(1500)):
        rng = random.Random(seed)
        log = log_of(rng)
        places = sorted({event[0] for event in log})
        groups = [[(number, event) for number, event in enumerate(log) if event[0] == place] for place in places]
        order = [*groups, *rng.choices(groups, k=len(groups) // 3)]
        order.sort(key=lambda group: group[0][0] / 10 + rng.choice([0, 0, 4, len(log)]) * rng.random())
        order = begun_before(order, rng)
        group, there = Group(COLUMNS[tracked]), list[tuple[int, Event]]()
        while order:
            size = rng.randint(1, 4)
            batch = [one for some in order[:size] for one in some]
            order, there = order[size:], [*there, *batch]
            group.commit(batch)
            model = Model()
            for _, (place, key, row) in sorted(set(map(_frozen, there))):
                if key is None:
                    model.truncates.add(place)
                else:
                    model.put(place, key, None if row is None else {"id": key, **dict(row)})
            assert group.versions() == model.versions("region", tracked=[tracked]), seed
            cut += len(group.versions()) < len(model.versions())
    assert cut > 100


def _frozen(one: tuple[int, Event]) -> tuple[int, tuple[int, int | None, tuple[tuple[str, Any], ...] | None]]:
    number, (place, key, row) = one
    return number, (place, key, None if row is None else tuple(row.items()))
