"""TPC-C as a part of the proofs: live runs, and a recorded one with deaths that seeds draw."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path

from hudilake.errors import ConfigError, TransientError
from tests.paths import DATA
from tests.programs.proofs.part import Outcome, Task, Verdict
from tests.programs.tpcc.cuts import CutReader
from tests.programs.tpcc.live import judged
from tests.programs.tpcc.player import TpccStream, play
from tests.programs.tpcc.recording import DATABASE, TABLES, TpccRecording
from tests.programs.tpcc.workload import program

RECORDING = DATA / "tpcc" / "recording.xz"
#: How many seeds, and how many live runs a whole run takes.
_SEEDS, _LIVE = 200, 3


class TpccPart:
    """Histories of TPC-C, in whose cuts the conditions of its specification must hold."""

    name = "tpcc"
    owner = "PingCAP"
    inputs = "runs of TPC-C"
    about = """go-tpc's TPC-C, whose tables have a hundredth of their rows, runs at an embedded MariaDB that Debezium
follows; `binlake run` streams whole transactions while the stream, the connector and the broker are killed, and a
little more when nobody dies. The stream may neither end by itself nor wait for what never comes. The consistency
conditions 3.3.2.1 to 3.3.2.12 hold in every cut of the lake ([Transactions](transactions.md)), of which there are three
at least, read by time travel; and CH-benCHmark's 22 queries answer in the end as the server does. Go builds the program
from its source (`live`). A recorded run is played with a storage that dies at random calls (`seed`)."""

    def run(self, task: Task) -> Iterator[Verdict]:
        """Live runs first; with the option ``recorded`` none. Then one seed after the other."""
        logging.disable(logging.WARNING)
        left = task.limit if task.limit is not None else _SEEDS + _LIVE
        if "recorded" not in task.options:
            for number in [n for n in range(1, _LIVE + 1) if f"live {n}" not in task.judged][:left]:
                left -= 1
                yield _live(number, task.place)
        recording = TpccRecording.load(RECORDING)
        seeds = (seed for seed in count(task.start) if f"seed {seed}" not in task.judged)
        for seed in islice(seeds, left):
            yield played(recording, seed)


def played(recording: TpccRecording, seed: int) -> Verdict:
    """A verdict on the recording with the deaths of a seed."""
    with tempfile.TemporaryDirectory() as directory:
        stream = TpccStream(recording, Path(directory))
        play(stream, seed)
        reader = CutReader(str(stream.place / DATABASE), TABLES)
        cuts = reader.cuts(recording.snapshot())
        return _verdict(f"seed {seed}", reader.broken(cuts), f"{len(cuts)} cuts, {stream.deaths} deaths")


def _live(number: int, place: Path) -> Verdict:
    """One run. What it leaves stays at the place if it is wrong: logs, lake, and the records of all topics."""
    cache = Path(os.environ.get("BINLAKE_CACHE", Path.home() / ".cache/binlake")) / "go-tpc"
    try:
        go_tpc = program(cache)
    except (ConfigError, TransientError) as error:
        return Verdict(f"live {number}", Outcome.SKIPPED, "go-tpc cannot be built", str(error))
    directory = place / f"live-{number}"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    wrong, done = judged(cache, go_tpc, directory, number)
    if not wrong:
        shutil.rmtree(directory)
    return _verdict(f"live {number}", wrong, done)


def _verdict(source: str, wrong: list[str], done: str) -> Verdict:
    if wrong:
        return Verdict(source, Outcome.WRONG, wrong[0].partition(": ")[2][:60], f"{done}; {'; '.join(wrong)}"[:2000])
    return Verdict(source, Outcome.EQUAL, detail=done)
