"""Tables with rows that are loaded once, before anything is measured; each run changes a copy."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from bench.kafka_load import fill
from bench.process import run_worker
from bench.spec import Spec
from bench.wanted import label_of, of_any_kind, wanted_of
from bench.workloads import LOOKED_UP_IN_FILES, Workload


@dataclass(frozen=True)
class Loaded:
    """The loaded tables below ``work``, from the broker's topics: one topic of rows and one of changes for all."""

    work: Path
    bootstrap: str

    def spec(self, work: Workload, writer: str) -> Spec:
        """A run that changes the table of a workload."""
        return Spec(writer, work, self.bootstrap, self.work / "runs" / f"{work.name}-{writer}")

    def changes(self, spec: Spec) -> Spec:
        """The run with its topic of changes, which is filled."""
        found = dataclasses.replace(spec, prefix=f"{_topics(spec.workload)}-changes")
        fill(self.bootstrap, spec.workload, found.topics(), spec.workload.events, first=spec.workload.loaded)
        return found

    def table(self, spec: Spec) -> Path:
        """The directory of a loaded table. A copy belongs at ``spec.place``, so that paths in it stay valid."""
        kept = self._kept(spec)
        if not kept.exists():
            load = dataclasses.replace(spec, prefix=f"{_topics(spec.workload)}-load", ageing=True)
            shutil.rmtree(spec.place, ignore_errors=True)
            fill(self.bootstrap, spec.workload, load.topics(), spec.workload.loaded)
            run_worker(load)
            for name in ("done", "batches.jsonl", "checkpoint"):
                remove(spec.place / name)
            kept.parent.mkdir(parents=True, exist_ok=True)
            spec.place.rename(kept)
        return kept

    def load(self, specs: Iterable[Spec]) -> None:
        """Load the tables of runs, two at a time, and print how many files they have. The model of what they hold
        in the end is worked out at the same time."""
        distinct = list({self._kept(spec): spec for spec in specs}.values())
        work = distinct[0].workload
        with ProcessPoolExecutor(1, get_context("spawn")) as aside, ThreadPoolExecutor(2) as pool:
            model = aside.submit(wanted_of, work, self.work)
            load = dataclasses.replace(distinct[0], prefix=f"{_topics(work)}-load")
            fill(self.bootstrap, work, load.topics(), work.loaded)
            for table in pool.map(self.table, distinct):
                print(f"{table.name} | {base_files(table)} files", flush=True)
            model.result()

    def _kept(self, spec: Spec) -> Path:
        """The place of a loaded table. Hudi's tables that differ by a lookup in the files alone are one."""
        stored = spec.workload
        if spec.writer == "hudi" and stored.index in LOOKED_UP_IN_FILES:
            stored = dataclasses.replace(stored, name="in-files", index="simple")
        return self.work / "loaded" / f"{label_of(stored)}-{spec.writer}"


def _topics(work: Workload) -> str:
    return label_of(of_any_kind(work))


def base_files(place: Path) -> int:
    """The number of Parquet files of the tables of a run, without those of metadata tables and logs."""
    return sum(1 for file in (place / "lake").rglob("*.parquet") if ".hoodie" not in file.parts)


def remove(path: Path) -> None:
    """Remove a file or a directory, if it is there."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
