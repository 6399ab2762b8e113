"""Writers that say what they will write, so that their commits may be made side by side."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pyarrow as pa

from hudilake.commit.commit import OvertakenError
from hudilake.commit.intent import WHOLE_TABLE, GroupIntent, Intent
from hudilake.format.files.file_group_write import WriteResult, write_file_group
from hudilake.table.table import HudiTable
from tests.hudilake.actors.orders import WAITS, Actor
from tests.hudilake.actors.world import POSITIONS, World
from tests.hudilake.lake import Change, deletes, groups, upserts

#: In partition d1 ``left`` writes one bucket (even ids) and ``right`` the other; ``both`` meets each of them, ``left``
#: at an equal ordering value; ``new`` and ``newer`` make the same file group.
BESIDE: dict[str, Sequence[Sequence[Change]]] = {
    "left": [upserts([2, 6], 300, "l") + deletes([4], 299), upserts([2, 4], 310, "m") + deletes([0], 311)],
    "right": [upserts([1, 5], 200, "r") + upserts([7], 300, "r", "d2"), upserts([7], 310, "s", "d2")],
    "both": [upserts([2, 1], 300, "b"), upserts([4], 330, "b") + deletes([7], 330, "d2")],
    "new": [upserts([1, 3], 300, "n", "d9"), upserts([1], 310, "o", "d9")],
    "newer": [upserts([3, 5], 305, "p", "d9"), deletes([3], 315, "d9")],
    "whole": [upserts([5], 400, "w", "d5"), upserts([6], 410, "w", "d6")],
    "adds_x": [upserts([2], 500, "x"), upserts([4], 510, "x")],
    "adds_y": [upserts([1], 500, "y"), upserts([3], 510, "y")],
    "adds_x_as_text": [upserts([1], 500, "t"), upserts([3], 510, "t")],
}
#: The columns that a writer adds with its first commit.
ADDED: Mapping[str, pa.Field] = {
    "adds_x": pa.field("x", pa.int64()),
    "adds_y": pa.field("y", pa.int64()),
    "adds_x_as_text": pa.field("x", pa.string()),
}


def beside(world: World, name: str, rounds: int) -> Actor:
    """Batches of BESIDE, each begun again after a conflict. Every commit adds 1 to its writer's position."""
    yield "start"
    table = world.opened(name)
    table.rollback_pending()
    for changes in BESIDE[name.rpartition(" ")[2]][:rounds]:
        yield from _batch(world, table, name, changes)
        assert table.maintain() is None


def _batch(world: World, table: HudiTable, name: str, changes: Sequence[Change]) -> Actor:
    phase = "begin"
    while True:
        yield phase
        table.refresh()
        schema = _with_column(table.schema, ADDED.get(name.rpartition(" ")[2]))
        intent = WHOLE_TABLE if name == "whole" else _intent(table, changes)
        try:
            instant = table.begin(intent)
        except OvertakenError:
            phase = f"{WAITS}, begin"
            continue
        yield "write"
        results = _write(table, instant, changes, schema)
        yield "commit"
        try:
            completed = table.commit(instant, results, lambda: _position(table, name), schema)
        except OvertakenError:
            yield "abort"
            table.abort(instant)
            phase = "begin again"
            continue
        world.told[completed] = changes
        world.positions[name] = world.positions.get(name, 0) + 1
        return


def _intent(table: HudiTable, changes: Sequence[Change]) -> Intent:
    return Intent.of_groups(GroupIntent(g.partition_path, g.file_id) for g in groups(table, changes))


def _write(table: HudiTable, instant: str, changes: Sequence[Change], schema: pa.Schema) -> list[WriteResult]:
    context = table.write_context(instant, schema)
    return [write_file_group(table.storage, context, group) for group in groups(table, changes)]


def _with_column(schema: pa.Schema, column: pa.Field | None) -> pa.Schema:
    """With a column that may be known by now: then what the table says of its type stays, as a widening does."""
    return schema if column is None or column.name in schema.names else schema.append(column)


def _position(table: HudiTable, name: str) -> dict[str, str]:
    """As the commit record of a stream: what the newest commit recorded, and a step of one's own."""
    known = json.loads(table.extra_metadata(POSITIONS) or "{}")
    return {POSITIONS: json.dumps({**known, name: known.get(name, 0) + 1})}
