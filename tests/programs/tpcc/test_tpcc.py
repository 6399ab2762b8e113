"""In every cut of the lake TPC-C's conditions hold; the controls: other states of the same tables break them."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

import hudilake
from binlake.position.cuts import Cut
from tests.hypothesis_profile import scaled
from tests.programs.proofs.part import Outcome
from tests.programs.tpcc.conditions import CONDITIONS, broken
from tests.programs.tpcc.cuts import CutReader
from tests.programs.tpcc.part import RECORDING, played
from tests.programs.tpcc.player import TpccStream, ends, play
from tests.programs.tpcc.recording import DATABASE, TABLES, TpccRecording

#: Of each condition a column that it is about.
_CELLS = {
    "3.3.2.1": ("warehouse", "w_ytd"),
    "3.3.2.2": ("district", "d_next_o_id"),
    "3.3.2.3": ("new_order", "no_o_id"),
    "3.3.2.4": ("orders", "o_ol_cnt"),
    "3.3.2.5": ("orders", "o_carrier_id"),
    "3.3.2.6": ("orders", "o_ol_cnt"),
    "3.3.2.7": ("order_line", "ol_delivery_d"),
    "3.3.2.8": ("history", "h_amount"),
    "3.3.2.9": ("district", "d_ytd"),
    "3.3.2.10": ("customer", "c_balance"),
    "3.3.2.11": ("customer", "c_delivery_cnt"),
    "3.3.2.12": ("customer", "c_ytd_payment"),
}


@pytest.fixture(scope="module")
def recording() -> TpccRecording:
    return TpccRecording.load(RECORDING)


@pytest.fixture(scope="module")
def reader(recording: TpccRecording, tmp_path_factory: pytest.TempPathFactory) -> CutReader:
    """The tables of a stream that died a few times."""
    stream = TpccStream(recording, tmp_path_factory.mktemp("tpcc"))
    play(stream, 1, steps=10, kills=4)
    assert stream.deaths >= 2
    return CutReader(str(stream.place / DATABASE), TABLES)


@pytest.fixture(scope="module")
def cuts(recording: TpccRecording, reader: CutReader) -> list[Cut]:
    return reader.cuts(recording.snapshot())


@pytest.mark.full
def test_the_conditions_hold_in_every_cut(reader: CutReader, cuts: list[Cut]) -> None:
    assert len(cuts) >= 5
    assert [broken(reader.rows(cut)) for cut in cuts] == [{}] * len(cuts)
    assert len({cut.commits["warehouse"] for cut in cuts}) > 2  # else they would all be one


def test_a_state_between_the_commits_of_two_tables_breaks_them(reader: CutReader, cuts: list[Cut]) -> None:
    """The control: of one table the state of the cut before, as while a batch commits."""
    for table, condition in (("orders", "3.3.2.2"), ("history", "3.3.2.8"), ("order_line", "3.3.2.6")):
        between = [
            replace(now, commits={**now.commits, table: before.commits[table]})
            for before, now in pairwise(cuts)
            if before.commits[table] != now.commits[table]
        ]
        assert any(condition in broken(reader.rows(cut)) for cut in between), table


@pytest.mark.first(4)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_planted_cell_breaks_a_condition(reader: CutReader, cuts: list[Cut], condition: str) -> None:
    """The control: one value of one row is another."""
    rows = reader.rows(cuts[-1])
    table, column = _CELLS[condition]
    assert condition in broken({**rows, table: _with_another(rows[table], column)})


@pytest.mark.full
def test_without_whole_transactions_they_break(recording: TpccRecording, tmp_path: Path) -> None:
    """The control: a stream that may split transactions."""
    stream, seen = TpccStream(recording, tmp_path, whole=False), []
    for end in ends(recording, random.Random(1), 4):
        stream.batch(end)
        tables = {name: hudilake.open_table(f"{tmp_path}/{DATABASE}/{name}") for name in TABLES}
        seen.append(broken({name: table.scan().to_arrow() for name, table in tables.items()}))
    stream.stop()
    assert any(seen[:-1])
    assert seen[-1] == {}


def _with_another(rows: pa.Table, column: str) -> pa.Table:
    """The rows with another value in one cell, the greatest of its column."""
    values = rows.column(column).to_pylist()
    greatest = max((n for n, value in enumerate(values) if value is not None), key=lambda n: values[n])
    values[greatest] = None if column in ("o_carrier_id", "ol_delivery_d") else values[greatest] + 1000
    return rows.set_column(
        rows.schema.get_field_index(column), column, pa.array(values, rows.schema.field(column).type)
    )


@pytest.mark.full
@pytest.mark.parametrize("seed", range(scaled(30, least=4)))
def test_further_deaths(recording: TpccRecording, seed: int) -> None:
    verdict = played(recording, 100 + seed)
    assert verdict.outcome is Outcome.EQUAL, verdict.detail
