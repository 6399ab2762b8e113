"""What lookups cost, and a control: a filter that loses a key is noticed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from hudilake.index.base_file_index import BaseFileIndex, KeyProbe
from hudilake.index.key_files import Longs
from hudilake.index.key_filters import KeyFilters
from hudilake.index.open import open_index
from hudilake.metadata.config import MetadataConfig
from hudilake.read import TableReader
from tests.hudilake.index.looked_up import LookedUpTable, Place

#: Four files with runs of keys of their own, two whose ranges overlap.
FILES: dict[Place, set[str]] = {
    **{(f"day={n % 2}", f"run{n}-0"): {f"k{i:04d}" for i in range(100 * n, 100 * n + 100)} for n in range(4)},
    ("day=0", "even-0"): {f"m{i:04d}" for i in range(0, 400, 2)},
    ("day=0", "odd-0"): {f"m{i:04d}" for i in range(1, 400, 2)},
}


@pytest.mark.parametrize("metadata", [MetadataConfig(), None])
def test_ranges_and_filters_leave_the_files_that_hold_the_keys(tmp_path: Path, metadata: MetadataConfig | None) -> None:
    lake = LookedUpTable.make(tmp_path, "global_bloom", metadata)
    lake.write(FILES)
    index = open_index(lake.table)
    cost = lake.check(index, ["k0150", "k0399", "m0010"], ["day=0"] * 3, is_global=True).cost
    assert (cost.files, cost.candidates, cost.files_read, cost.false_positives) == (6, 3, 3, 0)
    again = lake.check(index, ["k0150", "k0399", "m0010"], ["day=0"] * 3, is_global=True).cost
    read = sum((tmp_path / f"{day}").stat().st_size for day in _paths(tmp_path, ("run1", "run3", "even")))
    assert again.bytes_read == read, "ranges and filters are kept, and listing is in memory"
    assert cost.bytes_read > again.bytes_read if metadata is None else cost.bytes_read >= again.bytes_read
    none = lake.check(index, ["k0150x", "a", "z"], ["day=0"] * 3, is_global=True).cost
    assert (none.candidates, none.bytes_read, none.false_positives) == (0, 0, 0)


def _paths(root: Path, names: Sequence[str]) -> list[str]:
    files = [path.relative_to(root) for path in root.rglob("*.parquet")]
    return [str(path) for path in files if path.name.split("-")[0] in names]


def test_simple_reads_every_file_of_the_partitions(tmp_path: Path) -> None:
    lake = LookedUpTable.make(tmp_path, "simple")
    lake.write(FILES)
    cost = lake.check(open_index(lake.table), ["k0050", "m0010"], ["day=0"] * 2, is_global=False).cost
    assert (cost.files, cost.candidates, cost.files_read, cost.false_positives) == (4, 4, 4, 2)
    cost = lake.check(open_index(lake.table), ["k0050"], ["day=7"], is_global=False).cost
    assert (cost.files, cost.files_read, cost.bytes_read) == (0, 0, 0)


class Forgetful(KeyFilters):
    """Loses the last candidate key of each file."""

    def candidates(self, questions: Sequence[KeyProbe]) -> list[list[Longs]]:
        return [[places[:-1] for places in one] for one in super().candidates(questions)]


def test_a_filter_that_loses_a_key_is_noticed(tmp_path: Path) -> None:
    lake = LookedUpTable.make(tmp_path, "global_bloom")
    lake.write(FILES)
    index = BaseFileIndex(lake.table, Forgetful(lake.table))
    with pytest.raises(AssertionError):
        lake.check(index, ["k0150", "k0160"], ["day=0"] * 2, is_global=True)


def test_a_filter_that_was_opened_for_log_files_is_taken_from_the_footer(tmp_path: Path) -> None:
    lake = LookedUpTable.make(tmp_path, "global_bloom", MetadataConfig())
    lake.write(FILES)
    lake.write({}, {place: {min(keys)} for place, keys in FILES.items()})
    keys = [f"m{i:04d}" for i in range(1, 100, 2)]
    cost = lake.check(open_index(lake.table), keys, ["day=0"] * 50, is_global=True).cost
    assert cost.candidates == 1


def test_no_keys_cost_nothing(tmp_path: Path) -> None:
    lake = LookedUpTable.make(tmp_path, "bloom")
    lake.write(FILES)
    nothing = pa.array([], pa.string())
    answer = open_index(lake.table).locate(nothing, nothing)
    assert (len(answer.file_ids), answer.cost.bytes_read, answer.cost.files) == (0, 0, 0)


def test_readers_use_ranges_and_filters_of_tables_without_buckets(tmp_path: Path) -> None:
    lake = LookedUpTable.make(tmp_path, "global_bloom", MetadataConfig())
    lake.write(FILES)
    lake.write({}, {("day=0", "even-0"): {"m0010"}})
    reader = TableReader.open(str(tmp_path))
    asked = [("id = 'k0150'", 1, 1), ("id IN ('k0250', 'k0001')", 2, 2), ("id = 'm0010'", 1, 0), ("id = 'm0401'", 0, 0)]
    asked.append(("id = 'm0011'", 2, 1))  # the filter of a base file under log files rules nothing out
    for condition, slices, rows in asked:
        plan = reader.plan(condition=condition)
        assert not plan.warnings
        assert not slices or [step.name for step in plan.steps][-2:] == ["key range", "bloom filters"]
        assert (len(plan.slices), sum(b.num_rows for s in plan.slices for b in plan.scan.read(s))) == (slices, rows)
