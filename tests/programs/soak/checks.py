"""The checks of the soak: each table against the model through every reader, against itself, and within its bounds."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from demo.truth import TruthTable
from demo.verdict import judge
from hudilake.format.definition.column_names import lake_name
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.timeline.instant import CLEAN, COMMIT
from hudilake.read import Eq, TableReader
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.binlake.stream.soundness import ChangesNothing, check_offsets, errors_in
from tests.judges import hudi_rs
from tests.judges.agreement import assert_same
from tests.judges.hudi_spark import HudiSpark

#: Of a table's growth between the first and the last half of the samples.
_GROWTH = 1.5
_LEAST_SAMPLES = 8
_LOOKED_UP = 12


class Size(NamedTuple):
    """What a table takes: active commits, files of the metadata table's timeline, data files, all bytes without the
    history of the timeline, and that, which grows for ever."""

    instants: int
    index_timeline: int
    files: int
    bytes: int
    history_bytes: int


@dataclass
class TableChecks:
    """The checks of one table.

    Args:
        name: of the table.
        path: its root.
        most_instants: the upper bound of the active timeline.
        most_seen: how long the active timeline has been at most.
    """

    name: str
    path: Path
    most_instants: int
    sizes: list[Size] = field(default_factory=list)
    most_seen: int = 0

    def against(self, truth: TruthTable, changes_nothing: ChangesNothing, chance: random.Random) -> None:
        """Everything that needs no JVM; the table must have caught up. Raises AssertionError."""
        self.readers_show(truth)
        self.index_agrees(chance)
        check_offsets(self.path, changes_nothing)
        found = errors_in(self.path)
        assert not found, f"fsck of {self.name}: {found[:5]}"
        self.stays_small()

    def readers_show(self, truth: TruthTable) -> None:
        """Our reader and hudi-rs show the source's rows, cell by cell."""
        for who, rows in (("binlake", self.read()), ("hudi-rs", hudi_rs.snapshot(self.path))):
            rows = rows if truth.rows or rows.num_columns else self.read()  # no rows, no columns: hudi-rs
            verdict = judge(truth, rows, lake_name=lake_name)
            assert verdict.equal, f"{who} shows another {self.name} than the source: {verdict}"

    def read(self, *, use_index: bool = True) -> pa.Table:
        """All rows through our reader."""
        return TableReader.open(str(self.path), use_index=use_index).read().read_all()

    def index_agrees(self, chance: random.Random) -> None:
        """With the metadata table and without it all rows are the same, and so are single ones looked up by key."""
        by_files = self.read(use_index=False)
        assert_same(f"binlake, by the index of {self.name}", self.read(), by_files)
        reader = TableReader.open(str(self.path))
        keys = by_files.column(RECORD_KEY_FIELD).to_pylist()
        for key in chance.sample(keys, min(_LOOKED_UP, len(keys))):
            plan = reader.plan(condition=Eq(RECORD_KEY_FIELD, key))
            plan.require_exact()
            assert sum(batch.num_rows for batch in reader.batches(plan)) == 1, f"{self.name}: the index loses row {key}"

    def readers_agree(self) -> None:
        """Whatever a killed process left, all readers show the same."""
        if (self.path / ".hoodie" / "hoodie.properties").exists():
            rows = self.read()
            assert_same(f"binlake without the index of {self.name}", self.read(use_index=False), rows)
            seen = hudi_rs.snapshot(self.path)
            if rows.num_rows or seen.num_rows:
                assert_same(f"hudi-rs, of {self.name}", seen, rows)

    def spark_agrees(self, spark: HudiSpark) -> None:
        """Hudi Spark shows what our reader shows (which was compared with the source), by its index and without."""
        rows = self.read()
        assert_same(f"Hudi Spark, of {self.name}", spark.snapshot(str(self.path)), rows)
        by_listing = spark.with_options(hoodie__metadata__enable="false")
        assert_same(f"Hudi Spark without the index of {self.name}", by_listing.snapshot(str(self.path)), rows)

    def stays_small(self) -> None:
        """The active timeline is within its bound, and what the table takes does not go on growing."""
        self.sizes.append(self.size())
        self.watch()
        for what in ("files", "bytes", "index_timeline"):
            grown = growth([getattr(size, what) for size in self.sizes])
            assert grown <= _GROWTH, f"{self.name} grows: {what} by {grown:.2f}, {self.sizes}"

    def watch(self) -> None:
        """The active timeline is within its bound; to be asked at any moment."""
        if not self.path.exists():
            return
        names = [f.name for f in (self.path / ".hoodie" / "timeline").glob("*_*.*commit")]
        self.most_seen = max(self.most_seen, len(names))
        assert len(names) <= self.most_instants, f"{self.name} has {len(names)} active commits of {self.most_instants}"

    def size(self) -> Size:
        """What it takes now."""
        table = HudiTable.open(open_storage(str(self.path)))
        index = list((self.path / ".hoodie" / "metadata" / ".hoodie" / "timeline").glob("*_*.*"))
        every = [(f, f.stat().st_size) for f in self.path.rglob("*") if f.is_file()]
        found = [(f, size) for f, size in every if f.parent.name != "history"]
        history = sum(size for _, size in every) - sum(size for _, size in found)
        data = sum(".hoodie" not in f.relative_to(self.path).parts for f, _ in found)
        return Size(len(table.timeline.completed()), len(index), data, sum(size for _, size in found), history)

    def compactions(self) -> Iterator[tuple[str, str]]:
        """(requested, completed) of all compactions, archived ones too."""
        timeline = HudiTable.open(open_storage(str(self.path))).timeline
        for instant in timeline.completed():
            if instant.action == COMMIT and instant.completion_time is not None:
                yield instant.requested_time, instant.completion_time
        history = timeline.history()
        for entry in history.entries:
            for row in history.read(entry, ["instantTime", "completionTime", "action"]).to_pylist():
                if row["action"] == COMMIT:
                    yield row["instantTime"], row["completionTime"]

    def services(self) -> dict[str, int]:
        """How many compactions and cleans there were, and how many instants were archived."""
        timeline = HudiTable.open(open_storage(str(self.path))).timeline
        history = timeline.history()
        old = [row["action"] for entry in history.entries for row in history.read(entry, ["action"]).to_pylist()]
        active = [instant.action for instant in timeline.completed_actions({COMMIT, CLEAN})]
        both = Counter(old + active)
        return {"compactions": both[COMMIT], "cleans": both[CLEAN], "archived": len(old)}


def growth(values: Sequence[int]) -> float:
    """The greatest value of the last half over that of the half before, the very first quarter left aside; 1 of few."""
    if len(values) < _LEAST_SAMPLES:
        return 1.0
    settled = values[len(values) // 4 :]
    half = len(settled) // 2
    return max(settled[half:]) / max(1, *settled[:half])


def spanned(spans: Iterable[tuple[str, str]]) -> Callable[[str], bool]:
    """Whether an instant lies in one of the spans."""
    known = list(spans)
    return lambda instant: any(start <= instant <= end for start, end in known)
