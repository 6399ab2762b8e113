"""What TRUNCATE has removed from a lake table: up to an ordering value, of the table, a shard or a column group."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.changes import Op
from binlake.settings.fanout import Part
from binlake.settings.merging import GroupRule
from hudilake.format.definition.column_names import lake_name

Key = TypeVar("Key")
_Flags = npt.NDArray[np.bool_]
#: How many TRUNCATEs of a history table its commits name; each takes thirty bytes.
MOST_ENDS: Final = 1000


@dataclass(frozen=True)
class Truncates:
    """The newest ordering values. ``whole``: of the table, -1 for none. ``shards``: by shard column and its value.
    ``groups``: of a stitched table's column groups, by their names. ``ends``: of a history table, whose versions each
    TRUNCATE ends, with the source's times in milliseconds (0 for none); the newest ones. ``forgotten``: up to which
    ordering value there may have been others, -1 for nowhere: where a version from before it ends is not known."""

    whole: int = -1
    shards: Mapping[tuple[str, str], int] = field(default_factory=dict)
    groups: Mapping[str, int] = field(default_factory=dict)
    ends: Mapping[int, int] = field(default_factory=dict)
    forgotten: int = -1

    def with_one(self, order: int, part: Part | None) -> Truncates:
        """These values with one more TRUNCATE, of the table or of a part of it."""
        if part is None:
            return replace(self, whole=max(self.whole, order))
        if isinstance(part, GroupRule):
            return replace(self, groups=_newest(self.groups, {part.name: order}))
        return replace(self, shards=_newest(self.shards, {(lake_name(part.column), part.value): order}))

    def with_end(self, order: int, source_ms: int) -> Truncates:
        """These values with one more TRUNCATE of a history table."""
        return replace(self, ends={**self.ends, order: source_ms})

    def merged(self, other: Truncates) -> Truncates:
        """The newer of both values, for the table and for each part."""
        shards, groups = _newest(self.shards, other.shards), _newest(self.groups, other.groups)
        forgotten = max(self.forgotten, other.forgotten)
        return Truncates(max(self.whole, other.whole), shards, groups, {**self.ends, **other.ends}, forgotten)

    def bounded(self) -> Truncates:
        """These values with no more than MOST_ENDS in ``ends``: the oldest ones are forgotten."""
        if len(self.ends) <= MOST_ENDS:
            return self
        orders = sorted(self.ends)
        ends = {order: self.ends[order] for order in orders[-MOST_ENDS:]}
        return replace(self, ends=ends, forgotten=max(self.forgotten, orders[-MOST_ENDS - 1]))

    def news_to(self, known: Truncates) -> bool:
        """Whether this has a value that ``known`` does not have."""
        return (
            self.whole > known.whole
            or any(order > known.shards.get(key, -1) for key, order in self.shards.items())
            or any(order > known.groups.get(name, -1) for name, order in self.groups.items())
            or bool(self.ends.keys() - known.ends.keys())
        )

    def order_of(self, part: Part | None) -> int:
        """The ordering value up to which rows of a source table are removed, -1 for none."""
        if part is None:
            return self.whole
        if isinstance(part, GroupRule):  # a stream whose settings know no groups feeds the first one
            return max(self.whole if part.index == 0 else -1, self.groups.get(part.name, -1))
        return max(self.whole, self.shards.get((lake_name(part.column), part.value), -1))

    @property
    def columns(self) -> list[str]:
        """The shard columns that ``order_at`` needs, lake names."""
        return sorted({column for column, _ in self.shards})

    def order_at(self, rows: pa.Table) -> npt.NDArray[np.int64]:
        """For each row the ordering value of the TRUNCATE that may remove it, -1 for none."""
        orders = np.full(len(rows), self.whole, dtype=np.int64)
        for (column, value), until in self.shards.items():
            mine = pc.fill_null(pc.equal(rows.column(column), value), False).to_numpy()
            orders = np.where(mine, np.maximum(orders, until), orders)
        return orders

    def order_for(self, row: Mapping[str, object]) -> int:
        """Returns the ordering value of the TRUNCATE that may remove a row, given by its columns; -1 for none."""
        mine = (until for (column, value), until in self.shards.items() if row.get(column) == value)
        return max(self.whole, *mine, -1)

    def to_text(self) -> str:
        """Returns the text that commits record: a number, or a JSON object where there are shards or groups."""
        if not (self.shards or self.groups or self.ends):
            return str(self.whole)
        said = {"whole": self.whole, "shards": [[*key, order] for key, order in sorted(self.shards.items())]}
        more: dict[str, object] = {"groups": dict(sorted(self.groups.items()))} if self.groups else {}
        if self.ends:
            more["ends"] = {str(order): source_ms for order, source_ms in sorted(self.ends.items())}
            more["forgotten"] = self.forgotten
        return json.dumps({**said, **more}, separators=(",", ":"), ensure_ascii=False)

    @staticmethod
    def from_text(text: str | None) -> Truncates:
        """The reverse of ``to_text``; None gives no TRUNCATE. Raises ValueError."""
        said = json.loads(text or "-1")
        if isinstance(said, int):
            return Truncates(said)
        shards = {(column, value): order for column, value, order in said["shards"]}
        ends = {int(order): source_ms for order, source_ms in said.get("ends", {}).items()}
        return Truncates(said["whole"], shards, said.get("groups", {}), ends, said.get("forgotten", -1))


def as_deletes(rows: pa.Table, gone: _Flags, until: npt.NDArray[np.int64] | int) -> pa.Table:
    """The rows with those that a TRUNCATE removes as deletes at its position.

    Of a column group whose deletes delete the row it counts that the group has known the key, so such a row may not be
    left out: whether it was stored before the TRUNCATE depends on where batches are cut.

    Args:
        rows: n events as parcels hold them.
        gone: bool of n.
        until: the ordering value of the TRUNCATE, one or one a row.
    """
    ops, orders = rows.column("__op").to_numpy(), rows.column("__order").to_numpy()
    changed = {
        "__op": np.where(gone & (ops == Op.UPSERT), np.int8(Op.DELETE), ops),
        "__order": np.where(gone, until, orders),
    }
    for name, values in changed.items():
        column_index = rows.column_names.index(name)
        rows = rows.set_column(
            column_index, rows.schema.field(column_index), pa.array(values, rows.schema.field(column_index).type)
        )
    return rows


def _newest(known: Mapping[Key, int], more: Mapping[Key, int]) -> dict[Key, int]:
    return {key: max(known.get(key, -1), more.get(key, -1)) for key in {**known, **more}}


NOTHING_TRUNCATED = Truncates()
