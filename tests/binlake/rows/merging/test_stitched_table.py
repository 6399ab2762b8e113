"""Stitched tables through the driver's write path, judged after every commit."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from binlake.rows.upsert.truncates import Truncates
from hudilake.commit.commit import OvertakenError
from hudilake.errors import ConfigError
from hudilake.format.definition.merging import Merging, OnDelete
from hudilake.policies import Conflicts
from hudilake.read import Incremental, TableReader
from tests.binlake.rows.merging.stitched import COLUMNS, TYPES, Event, Model, Values, merging
from tests.binlake.rows.merging.stitched_table import StitchedTable
from tests.hypothesis_profile import scaled
from tests.judges import hudi_rs
from tests.judges.agreement import assert_same, read_ourselves
from tests.logged import events

COLUMN_NAMES = list(TYPES)


def judged(here: StitchedTable, model: Model) -> None:
    """Our reader and hudi-rs show the model's rows."""
    assert_same("binlake", read_ourselves(here.uri), model.rows(), COLUMN_NAMES)
    assert_same("hudi-rs", hudi_rs.snapshot(here.uri), model.rows(), COLUMN_NAMES)


def test_rows_of_two_groups_come_together(tmp_path: Path) -> None:
    here, model = StitchedTable.at(tmp_path, merging()), Model(merging())
    for batch in (
        [Event(0, 1, 10, {"a": 1, "b": "x"}), Event(1, 2, 10, {"c": 5})],
        [Event(1, 1, 11, {"c": 6}), Event(0, 2, 11, {"a": 2, "b": None})],
        [Event(0, 1, 12, None), Event(1, 2, 3, {"c": 0})],
        [Event(1, 1, 13, None), Event(0, 1, 11, {"a": 9, "b": "late"})],
    ):
        here.run(batch)
        model.take(batch)
        judged(here, model)
    assert model.rows() == [dict.fromkeys(TYPES) | {"id": 2, "a": 2, "c": 5}]


class Source:
    """Random events of three groups, with late and repeated ones."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.orders = [0, 0, 0]
        self.held: list[Event] = []
        self.sent: list[Event] = []

    def batch(self) -> list[Event]:
        """The next events as they are delivered."""
        fresh = [self._event() for _ in range(self.random.randint(1, 6))]
        again = self.random.sample(self.sent, min(len(self.sent), self.random.randint(0, 2)))
        late = [event for event in fresh if self.random.random() < 0.2]
        back = [event for event in self.held if self.random.random() < 0.4]
        self.held = [event for event in self.held if event not in back] + late
        events = [event for event in fresh if event not in late] + back + again
        self.sent += events
        self.random.shuffle(events)
        return events

    def _event(self) -> Event:
        group, key = self.random.randrange(3), self.random.randrange(6)
        self.orders[group] += 1
        values: Values | None = None
        if self.random.random() < 0.7:
            values = {name: self._value(name) for name in COLUMNS[group]}
        return Event(group, key, self.orders[group], values, self.orders[group], values is None and key == 0)

    def _value(self, name: str) -> int | str | None:
        if self.random.random() < 0.2:
            return None
        number = self.random.randrange(100)
        return number if name in ("a", "c", "e") else f"v{number}"


@pytest.mark.first(1)
@pytest.mark.parametrize("policies", [("columns",) * 3, ("row", "columns", "columns")], ids="-".join)
@pytest.mark.parametrize("conflicts", ["queue", "column"], ids=["by width", "always partial"])
@pytest.mark.parametrize("compacted_after", [0, 3])
@pytest.mark.parametrize("seed", range(scaled(1)))
def test_random_events_give_the_models_rows_at_every_commit(
    tmp_path: Path, seed: int, compacted_after: int, policies: tuple[OnDelete, ...], conflicts: Conflicts
) -> None:
    rule = merging(policies)
    here = StitchedTable.at(tmp_path, rule, compacted_after, conflicts)
    model, source = Model(rule), Source(seed)
    for _ in range(14):
        events = source.batch()
        if not events:
            continue
        here.run(events, in_tasks=source.random.random() < 0.5)
        model.take(events)
        judged(here, model)
        if source.random.random() < 0.2:
            here.restart()


@pytest.mark.first(3)
@pytest.mark.parametrize("conflicts", ["queue", "column"], ids=["by width", "always partial"])
@pytest.mark.parametrize("compacted_after", [0, 2])
def test_a_plain_table_becomes_the_first_group(tmp_path: Path, compacted_after: int, conflicts: Conflicts) -> None:
    """Rows and deletes from before keep their orders, and a writer that knows no groups feeds the first one."""
    rule, model = merging(), Model(merging())
    plain = StitchedTable.at(tmp_path, Merging(), compacted_after, conflicts)
    before = [
        [Event(0, 1, 10, {"a": 1, "b": "x"}), Event(0, 2, 11, {"a": 2}), Event(0, 3, 12, {"a": 3})],
        [Event(0, 2, 13, None), Event(0, 3, 14, {"a": 4})],
    ]
    for batch in before:
        plain.run(batch)
        model.take(batch)
    stitched = StitchedTable.at(tmp_path, rule, compacted_after, conflicts)
    for here, batch in (
        (stitched, [Event(1, 1, 5, {"c": 1}), Event(1, 2, 6, {"c": 2}), Event(0, 3, 13, {"a": 0})]),
        (plain, [Event(0, 1, 9, {"a": 0}), Event(0, 2, 12, {"a": 0}), Event(0, 3, 15, {"a": 5}, 1)]),
        (stitched, [Event(0, 1, 16, None), Event(1, 3, 7, {"c": 3})]),
        (plain, [Event(0, 2, 17, {"b": "back"}), Event(0, 1, 15, {"a": 0})]),
    ):
        here.run(batch)
        model.take(batch)
        judged(stitched, model)


def test_a_group_may_come_later_and_other_changes_are_refused(tmp_path: Path) -> None:
    rule = merging()
    two = replace(rule, groups=rule.groups[:2])
    StitchedTable.at(tmp_path, two).run([Event(0, 1, 1, {"a": 1})])
    here, model = StitchedTable.at(tmp_path, rule), Model(rule)
    model.take([Event(0, 1, 1, {"a": 1}), Event(2, 1, 1, {"d": "x"})])
    here.run([Event(2, 1, 1, {"d": "x"})])
    judged(here, model)
    swapped = replace(rule, groups=(rule.groups[0], rule.groups[2]))
    with pytest.raises(ConfigError, match="its group clicks comes where the settings have labels"):
        StitchedTable.at(tmp_path, swapped).run([Event(0, 1, 2, {"a": 2})])


@pytest.mark.first(1)
@pytest.mark.parametrize("conflicts", ["queue", "column"])
@pytest.mark.parametrize("seed", range(scaled(1)))
def test_two_writers_take_in_what_the_other_wrote(tmp_path: Path, seed: int, conflicts: Conflicts) -> None:
    """Each brings its memory forward by the other's log files; compactions make it anew."""
    rule = merging()
    writers = [StitchedTable.at(tmp_path, rule, 4, conflicts, stream=name) for name in ("one", "two")]
    model, source = Model(rule), Source(seed)
    for _ in range(20):
        events = source.batch()
        if not events:
            continue
        source.random.choice(writers).run(events, in_tasks=source.random.random() < 0.2)
        model.take(events)
        judged(writers[0], model)


@pytest.mark.parametrize("policies", [("columns",) * 3, ("row", "columns", "columns")], ids="-".join)
def test_a_truncate_of_a_source_takes_its_columns_away(tmp_path: Path, policies: tuple[OnDelete, ...]) -> None:
    rule = merging(policies)
    here, model = StitchedTable.at(tmp_path, rule), Model(rule)
    before = [Event(1, key, 10 + key, {"c": key}) for key in range(4)] + [Event(0, 1, 5, {"a": 1})]
    before.append(Event(0, 2, 6, None))
    here.run(before)
    model.take(before)
    fresh = [Event(1, 3, 14, {"c": 9}), Event(1, 0, 12, {"c": 8})]
    outcome = here.run(fresh, truncates=Truncates(groups={"clicks": 12}))
    model.take([*(Event(1, key, 12, None) for key in range(3)), fresh[0]])
    judged(here, model)
    assert (outcome.counts.applied, outcome.counts.superseded) == (1, 1)
    back = [Event(0, 2, 7, {"a": 2})]
    here.run(back)
    model.take(back)
    judged(here, model)


def test_our_incremental_query_shows_rows_that_changed_in_part(tmp_path: Path) -> None:
    here = StitchedTable.at(tmp_path, merging(), 0, "column")
    here.run([Event(0, key, 10, {"a": key, "b": "x"}) for key in range(4)])
    since = here.table.hudi.timeline.completed()[-1].completion_time
    assert since is not None
    here.run([Event(1, 2, 10, {"c": 5})])
    reader = TableReader.open(here.table.storage)
    rows = [
        row
        for batch in reader.batches(reader.plan(Incremental(since), columns=["id", "a", "b", "c"]))
        for row in batch.to_pylist()
    ]
    assert rows == [{"id": 2, "a": 2, "b": "x", "c": 5}]


def test_two_groups_that_forget_a_row_at_once_delete_it(tmp_path: Path) -> None:
    """Each sees the other group know the row, so one of the two has to look again."""
    rule, model = merging(), Model(merging())
    one, two = (StitchedTable.at(tmp_path, rule, 0, "column", stream=name) for name in ("one", "two"))
    for here, batch in ((one, [Event(0, 1, 1, {"a": 1}), Event(1, 1, 1, {"c": 1})]), (two, [Event(0, 2, 2, {"a": 2})])):
        here.run(batch)
        model.take(batch)
    first, second = [Event(0, 1, 3, None)], [Event(1, 1, 2, None)]
    begun = one.begun(first)
    two.run(second)
    with pytest.raises(OvertakenError):
        one.commit(begun)
    one.restart()
    one.run(first)
    model.take([*first, *second])
    judged(one, model)
    assert [row["id"] for row in model.rows()] == [2]


def test_two_groups_of_a_row_change_side_by_side(tmp_path: Path) -> None:
    rule, model = merging(), Model(merging())
    one, two = (StitchedTable.at(tmp_path, rule, 0, "column", stream=name) for name in ("one", "two"))
    for here, batch in ((one, [Event(0, 1, 1, {"a": 1}), Event(1, 1, 1, {"c": 1})]), (two, [Event(0, 2, 2, {"a": 2})])):
        here.run(batch)
        model.take(batch)
    first, second = [Event(0, 1, 3, {"a": 3})], [Event(1, 1, 2, {"c": 2})]
    begun = one.begun(first)
    two.run(second)
    one.commit(begun)
    late = [Event(0, 1, 2, {"a": 0}), Event(1, 1, 1, {"c": 0})]
    two.run(late)
    model.take([*first, *second, *late])
    judged(one, model)


@pytest.mark.parametrize(("policy", "again"), [("column", False), ("row", True), ("queue", True)])
def test_writers_of_two_groups_do_not_wait_under_column(
    tmp_path: Path, policy: Conflicts, again: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One writer commits to the file group of a row while the other one has written to it and not committed."""
    caplog.set_level("INFO")
    rule, model = merging(), Model(merging())
    one, two = (StitchedTable.at(tmp_path, rule, 0, policy, stream=name) for name in ("one", "two"))
    for here, batch in ((one, [Event(0, 1, 1, {"a": 1}), Event(1, 1, 1, {"c": 1})]), (two, [Event(0, 2, 2, {"a": 2})])):
        here.run(batch)
        here.own_columns = True
        model.take(batch)
    first, second = [Event(0, 1, 3, {"a": 3})], [Event(1, 1, 2, {"c": 2})]
    table, commit = two.table, two.table.commit

    def after_the_other(*args: Any, **more: Any) -> str:  # noqa: ANN401 - the arguments of the commit
        monkeypatch.setattr(table, "commit", commit)
        one.run(first)
        return commit(*args, **more)

    monkeypatch.setattr(table, "commit", after_the_other)
    if policy == "row":  # the first check would wait for the other writer's instant
        monkeypatch.setattr("binlake.tables.table_commit._intent", lambda *_, **__: None)
    two.run(second)
    model.take([*first, *second])
    judged(one, model)
    assert ("overtaken" in events(caplog)) is again
