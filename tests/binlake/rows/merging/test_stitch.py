"""The rule of stitched tables against a dict: however the events are delivered and cut, the rows are the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from binlake.rows.merging.mergers import MergedState, StitchMerger, merger_of
from binlake.rows.merging.states import KeyStates, MergeResult
from binlake.rows.merging.stitch import Partial
from binlake.rows.upsert.merge import Place
from binlake.rows.upsert.route import KEY
from binlake.rows.upsert.target import ORDER_FIELD
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.merging import WRITER_ORDER, Merging
from tests.binlake.rows.merging.stitched import COLUMNS, TYPES, Event, Model, Values, events_table, merging
from tests.hypothesis_profile import scaled

POLICIES = [("columns",) * 3, ("row", "columns", "columns"), ("row", "columns", "row"), ("row",) * 3]
CONFIG = TableConfig("t", ("id",), ORDER_FIELD, 1)


def schema(rule: Merging) -> pa.Schema:
    """The table's columns."""
    hidden = [pa.field(name, pa.int64()) for name in (ORDER_FIELD, *rule.hidden_fields)]
    return pa.schema([*(pa.field(n, t) for n, t in TYPES.items()), *hidden])


@dataclass
class Rows:
    """The rows of a table as a dict by key, and its tombstones."""

    rule: Merging
    live: dict[str, dict[str, Any]] = field(default_factory=dict)
    dead: dict[str, dict[str, Any]] = field(default_factory=dict)

    def of(self, place: Place, file_id: str, keys: pa.Array, columns: Sequence[str]) -> KeyStates:
        """As ``RowStates.of``."""
        texts = keys.to_pylist()
        rows = [self.live.get(key) or self.dead.get(key) or {} for key in texts]
        kinds = pa.schema([schema(self.rule).field(name) for name in columns])
        return KeyStates(np.array([key in self.live for key in texts]), pa.Table.from_pylist(rows, schema=kinds))

    def take(self, merged: MergeResult) -> None:
        """The result of a commit."""
        write = merged.write
        self._change(write.partials)
        for row in write.upserts.to_pylist() if write.upserts is not None else []:
            assert row[ORDER_FIELD] == WRITER_ORDER
            self.live[row[KEY]] = row
            self.dead.pop(row[KEY], None)
        gone = write.deletes.column(KEY).to_pylist() if write.deletes is not None else []
        stones = merged.tombstones.to_pylist() if merged.tombstones is not None else []
        assert [row[KEY] for row in stones] == gone
        for row in stones:
            self.live.pop(row[KEY], None)
            self.dead[row[KEY]] = row

    def _change(self, partials: Sequence[pa.Table]) -> None:
        """Partial rows change rows that live, and no hidden column of another group."""
        for row in (row for rows in partials for row in rows.to_pylist()):
            assert row[ORDER_FIELD] == WRITER_ORDER
            self.live[row[KEY]].update(row)

    def values(self) -> list[Values]:
        """The rows by key, without hidden columns."""
        return sorted(({n: row[n] for n in TYPES} for row in self.live.values()), key=lambda row: row["id"])


def merger(rows: Rows, partial: Partial = "by_width") -> StitchMerger:
    """That of a table with these rows."""
    made = merger_of(MergedState(rows.rule, schema(rows.rule), rows, CONFIG.record_key_fields, partial))
    assert isinstance(made, StitchMerger)
    return made


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """Events of three groups in the order of their sources: orders ascend in each group."""
    count, orders, events = draw(st.integers(1, 25)), [0, 0, 0], []
    for offset in range(count):
        group = draw(st.integers(0, 2))
        orders[group] += draw(st.integers(1, 3))
        deletes = draw(st.integers(0, 2)) == 0
        values = None if deletes else {name: _value(draw, name) for name in COLUMNS[group]}
        moved = deletes and draw(st.booleans())
        events.append(Event(group, draw(st.integers(1, 4)), orders[group] - 1, values, offset, moved))
    return events


def _value(draw: st.DrawFn, name: str) -> int | str | None:
    if TYPES[name] == pa.string():
        return draw(st.none() | st.sampled_from(["x", "y", "ä"]))
    return draw(st.none() | st.integers(-3, 99))


@st.composite
def deliveries(draw: st.DrawFn) -> list[list[Event]]:
    """A history in any order, with repeated events, cut into batches."""
    history = draw(histories())
    again = draw(st.lists(st.sampled_from(history), max_size=8))
    events = draw(st.permutations([*history, *again]))
    cuts = sorted(draw(st.sets(st.integers(1, len(events) - 1), max_size=5))) if len(events) > 1 else []
    return [events[a:b] for a, b in zip([0, *cuts], [*cuts, len(events)], strict=True)]


@pytest.mark.parametrize("partial", ["never", "always"])
@pytest.mark.parametrize("policies", POLICIES, ids="-".join)
@settings(max_examples=scaled(120))
@given(batches=deliveries())
def test_any_delivery_gives_the_same_rows(policies: Any, partial: Partial, batches: list[list[Event]]) -> None:  # noqa: ANN401
    rule = merging(policies)
    rows, model = Rows(rule), Model(rule)
    for events in batches:
        merged = merger(rows, partial).merge(("", 0), "f", events_table(events))
        rows.take(merged)
        model.take(events)
        assert rows.values() == model.rows()
        assert 0 <= merged.superseded <= sum(not event.moved for event in events)


def test_events_of_one_position_apply_in_their_order_also_when_they_come_again() -> None:
    """MariaDB gives the events of a transaction one position; a redelivery replays the suffix."""
    rule = merging()
    events = [Event(0, 1, 5, {"a": n}, n) for n in range(4)]
    rows = Rows(rule)
    for batch in (events[:3], events[1:2], events[2:], events):
        rows.take(merger(rows).merge(("", 0), "f", events_table(batch)))
    assert rows.values() == [dict.fromkeys(TYPES) | {"id": 1, "a": 3}]


def test_a_late_event_writes_nothing_and_is_counted() -> None:
    rule = merging()
    rows = Rows(rule)
    rows.take(merger(rows).merge(("", 0), "f", events_table([Event(1, 1, 9, None), Event(0, 1, 3, {"a": 1})])))
    late = merger(rows).merge(("", 0), "f", events_table([Event(1, 1, 8, {"c": 1}), Event(0, 1, 2, None)]))
    assert (late.write.upserts, late.write.deletes, late.tombstones, late.superseded) == (None, None, None, 2)


def test_values_of_other_groups_in_an_event_are_never_looked_at() -> None:
    rule = merging()
    rows = Rows(rule)
    odd = Event(1, 1, 1, {"a": 7, "c": 2})
    rows.take(merger(rows).merge(("", 0), "f", events_table([odd])))
    assert rows.values() == [dict.fromkeys(TYPES) | {"id": 1, "c": 2}]
