"""The rows that TRUNCATE has removed from a lake table: up to an ordering value, of the table or of one shard."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.hudi.definition.column_names import lake_name
from pipeline.settings.fanout import ShardRule


@dataclass(frozen=True)
class Truncates:
    """The newest ordering values. ``whole``: of the table, -1 for none. ``shards``: by shard column and its value."""

    whole: int = -1
    shards: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def with_one(self, order: int, shard: ShardRule | None) -> Truncates:
        """These values with one more TRUNCATE, of the table or of a shard of it."""
        if shard is None:
            return Truncates(max(self.whole, order), self.shards)
        key = (lake_name(shard.column), shard.value)
        return Truncates(self.whole, {**self.shards, key: max(order, self.shards.get(key, -1))})

    def merged(self, other: Truncates) -> Truncates:
        """The newer of both values, for the table and for each shard."""
        shards = dict(self.shards)
        for key, order in other.shards.items():
            shards[key] = max(order, shards.get(key, -1))
        return Truncates(max(self.whole, other.whole), shards)

    def news_to(self, known: Truncates) -> bool:
        """Whether this has a value that ``known`` does not have."""
        return self.whole > known.whole or any(o > known.shards.get(k, -1) for k, o in self.shards.items())

    def order_of(self, shard: ShardRule | None) -> int:
        """The ordering value up to which rows of a source table are removed, -1 for none."""
        if shard is None:
            return self.whole
        return max(self.whole, self.shards.get((lake_name(shard.column), shard.value), -1))

    @property
    def columns(self) -> list[str]:
        """The shard columns that ``order_at`` needs, lake names."""
        return sorted({column for column, _ in self.shards})

    def order_at(self, rows: pa.Table) -> npt.NDArray[np.int64]:
        """For each row the ordering value of the TRUNCATE that may remove it, -1 for none."""
        at = np.full(len(rows), self.whole, dtype=np.int64)
        for (column, value), until in self.shards.items():
            mine = pc.fill_null(pc.equal(rows.column(column), value), False).to_numpy()
            at = np.where(mine, np.maximum(at, until), at)
        return at

    def order_for(self, row: Mapping[str, object]) -> int:
        """As ``order_at`` for one row, by its columns."""
        mine = (until for (column, value), until in self.shards.items() if row.get(column) == value)
        return max(self.whole, *mine, -1)

    def to_text(self) -> str:
        """As commits record it: a number, or JSON where there are shards."""
        if not self.shards:
            return str(self.whole)
        shards = [[*key, order] for key, order in sorted(self.shards.items())]
        return json.dumps({"whole": self.whole, "shards": shards}, separators=(",", ":"), ensure_ascii=False)

    @staticmethod
    def from_text(text: str | None) -> Truncates:
        """The reverse of ``to_text``; None gives no TRUNCATE. Raises ValueError."""
        said = json.loads(text or "-1")
        if isinstance(said, int):
            return Truncates(said)
        return Truncates(said["whole"], {(column, value): order for column, value, order in said["shards"]})


NOTHING_TRUNCATED = Truncates()
