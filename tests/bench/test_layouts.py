"""The measurement of layouts: its rows, its queries, and how files are counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from bench.layouts.counting import Footers, footers, read_by
from bench.layouts.ours import Ours
from bench.layouts.questions import COLUMNS, questions
from bench.layouts.report import keep, write_report
from bench.layouts.rows import SCHEMA, batches
from bench.layouts.run import measure, write_parts
from bench.layouts.sides import Sizes
from hudilake.read import TableReader
from hudilake.read.filters.evaluate import matches
from hudilake.read.filters.expressions import normalised

ROWS, FILES = 24_000, 12


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    return pa.concat_tables(batches(ROWS, FILES))


def cut(place: Path, rows: pa.Table) -> Footers:
    """The footers of the rows in files, each with two row groups."""
    place.mkdir()
    size = ROWS // FILES
    for number in range(FILES):
        pq.write_table(rows.slice(number * size, size), place / f"{number:03d}.parquet", row_group_size=size // 2)
    return footers(place.iterdir())


def test_the_rows_are_what_they_are_said_to_be(rows: pa.Table) -> None:
    assert rows.schema == SCHEMA
    assert rows.num_rows == ROWS
    assert rows.equals(pa.concat_tables(batches(ROWS, FILES)))
    assert pc.all(pc.starts_with(rows["url"], "http://www.")).as_py()
    for name, most in (("url", 0.001), ("customer", 0.05)):
        counts = pc.value_counts(rows[name]).field("counts").to_numpy()
        assert counts.max() > most * ROWS  # skew
        assert len(counts) > 100
    assert np.corrcoef(rows["placed"].to_numpy(), rows["paid"].to_numpy())[0, 1] > 0.99
    assert 0.6 < rows["coupon"].null_count / ROWS < 0.8


def test_every_question_finds_rows_and_files_are_counted_by_their_ranges(rows: pa.Table, tmp_path: Path) -> None:
    """Against reading: a file with a row that passes is always counted, and one that is counted has such a range."""
    found = cut(tmp_path / "as-they-came", rows)
    assert (found.count, len(found.owner), found.rows.tolist()) == (FILES, 2 * FILES, [ROWS // FILES // 2] * 2 * FILES)
    for kind, asked in questions(rows).items():
        read = read_by(asked, found)
        holding = []
        for query in asked:
            passing = matches(normalised(query), rows)
            assert passing.any(), (kind, query)
            holding.append(len(np.unique(np.flatnonzero(passing) // (ROWS // FILES))))
        assert np.mean(holding) <= read.files <= FILES
        assert read.files <= read.row_groups <= 2 * read.files
    assert read_by(questions(rows)["range placed"], found).files < 3
    assert read_by(questions(rows)["range customer"], found).files > 0.9 * FILES


def test_sorted_rows_are_read_from_fewer_files(rows: pa.Table, tmp_path: Path) -> None:
    found = cut(tmp_path / "sorted", rows.sort_by("customer"))
    asked = questions(rows)
    assert read_by(asked["point customer"], found).files < 3
    assert read_by(asked["range placed"], found).files > 0.8 * FILES


def test_columns_of_the_order_are_asked_for(rows: pa.Table) -> None:
    assert set(COLUMNS) < set(rows.schema.names)


@pytest.mark.full
def test_binlakes_side_lays_its_table_out_and_its_plans_read_what_is_counted(tmp_path: Path) -> None:
    """Files counted by footers are those that a plan reads by the metadata table."""
    sizes = Sizes(8_000, 4)
    parts = write_parts(tmp_path, sizes)
    chosen = ["linear", "hilbert sampled"]
    came, linear, laid_out = measure("binlake", Ours(), tmp_path / "run", parts, sizes, chosen)
    assert (came.files, linear.files, laid_out.files) == (4, 4, 4)
    assert laid_out.seconds > 0
    reader = TableReader.open(str(tmp_path / "run" / "copy"))
    for kind, asked in questions(pa.concat_tables(map(pq.read_table, sorted(parts.iterdir())))).items():
        assert laid_out.read[kind].files == np.mean([reader.plan(condition=query).files for query in asked]), kind
    assert linear.read["point url"].files < 2
    assert laid_out.read["point customer"].files < linear.read["point customer"].files
    for one in (came, linear, linear, laid_out):
        keep(tmp_path / "layouts.jsonl", one)
    write_report(tmp_path / "layouts.jsonl")
    assert (tmp_path / "layouts.md").read_text().count("| binlake | linear |") == 2  # files, and shares
