"""Several writers at once: the stream's cells, others' cells, and processes that derive beside each other."""

from __future__ import annotations

import contextlib
import multiprocessing
import random
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from hudilake.errors import TransientError
from tests.binlake.hbase.derive.cells_lake import WIDE, Cell, CellsLake, delete, number, put

_ROWS, _COMMITS = 12, 12


def cells(number_: int) -> list[Cell]:
    """Of one commit."""
    draw = random.Random(number_)
    made: list[Cell] = []
    for _ in range(4):
        row, timestamp = f"r{draw.randrange(_ROWS)}", draw.randrange(100)
        column = draw.choice(["d:user_id", "d:status", "m:x"])
        if draw.random() < 0.3:
            made.append(delete(row, draw.choice([column, "d:"]), timestamp))
        else:
            value = number(timestamp) if column == "d:user_id" else f"{number_}"
            made.append(put(row, column, timestamp, value))
    return list({cell[:5]: cell for cell in made}.values())


def derive_until(uri: str, done: Event, started: Event) -> None:
    """A process that derives again and again."""
    lake = CellsLake.at(uri, lock="file")
    started.set()
    while not done.is_set():
        try:
            lake.deriver.derive(lake.pair)
        except TransientError:
            continue


@pytest.mark.full
def test_processes_that_derive_beside_a_writer(tmp_path: Path) -> None:
    uri = str(tmp_path / "lake")
    here = CellsLake.at(uri, lock="file")
    here.write(*cells(0))
    here.deriver.derive(here.pair)
    context = multiprocessing.get_context("spawn")
    done, started = context.Event(), context.Event()
    other = context.Process(target=derive_until, args=(uri, done, started))
    other.start()
    assert started.wait(60)
    for at in range(1, _COMMITS):
        here.write(*cells(at))
        with contextlib.suppress(TransientError):
            here.deriver.derive(here.pair)
    done.set()
    other.join(60)
    assert other.exitcode == 0
    here.reopen()
    here.deriver.derive(here.pair)
    assert here.rows() == here.wanted()
    assert here.hudi(WIDE).timeline.pending() == []
