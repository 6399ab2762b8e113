"""The measurement of stitching: its model, what counts as wrong, and binlake's side of it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from bench.stitching.ours import Ours
from bench.stitching.streams import (
    KEY,
    ORDERS,
    STREAMS,
    Sizes,
    canonical,
    expected,
    numbers,
    write_streams,
    wrong_rows,
)
from bench.stitching.worker import measure

SIZES = Sizes(events=2_000, batches=2, warm=1, keys=300, small=2, small_events=40)
ALL = range(len(SIZES.batch_sizes()))


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    write_streams(tmp_path / "inputs", SIZES)
    return tmp_path / "inputs"


def test_the_parts_of_a_run_are_all_batches(inputs: Path) -> None:
    assert [number for _, chosen in numbers(SIZES) for number in chosen] == list(ALL)
    assert len(list(inputs.iterdir())) == len(STREAMS) * len(ALL)


def test_the_model_has_the_event_of_the_greatest_order_and_late_ones_occur(inputs: Path) -> None:
    events = pa.concat_tables(pq.read_table(ORDERS.file(inputs, number)) for number in ALL)
    greatest: dict[int, tuple[int, str]] = {}
    late = 0
    for row in events.to_pylist():
        known = greatest.get(row[KEY])
        late += known is not None and row[ORDERS.order] < known[0]
        if known is None or row[ORDERS.order] >= known[0]:
            greatest[row[KEY]] = row[ORDERS.order], row["status"]
    assert late > 10
    model = expected(inputs, ALL).filter(pc.field("status").is_valid())
    assert dict(zip(model[KEY].to_pylist(), model["status"].to_pylist(), strict=True)) == {
        key: status for key, (_, status) in greatest.items()
    }


def test_each_wrong_cell_missing_and_surplus_row_counts(inputs: Path) -> None:
    wanted = expected(inputs, ALL)
    assert wrong_rows(wanted, wanted) == 0
    assert wrong_rows(wanted.slice(2), wanted) == 2
    assert wrong_rows(wanted, wanted.slice(2)) == 2
    assert wrong_rows(pa.concat_tables([wanted, wanted.slice(0, 1)]).sort_by(KEY), wanted) == 1
    for name in wanted.column_names[1:]:
        cells = wanted.column(name).combine_chunks()
        other = pa.concat_arrays([cells[-1:], cells[1:]]) if cells[0] != cells[-1] else None
        if other is not None:
            changed = wanted.set_column(wanted.column_names.index(name), name, other)
            assert wrong_rows(changed, wanted) == 1, name


def test_our_side_makes_the_models_table(tmp_path: Path, inputs: Path) -> None:
    writer = Ours(tmp_path / "run", inputs)
    found = measure(writer, tmp_path / "run", inputs, SIZES)
    assert (found["wrong_rows"], found["wrong_rows_compacted"]) == (0, 0)
    assert wrong_rows(canonical(writer.rows()), expected(inputs, range(1))) > 0
    assert found["written_mb"] > 0
    writer.close()
