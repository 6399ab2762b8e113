"""The whole measurement: every writer on every workload, in turns; each run is checked before it counts."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from bench import others
from bench.hudi_tagging import tagging_ms, tags
from bench.kafka_load import LiveProducer, delete_topics, fill, table_events, times, topic_ends
from bench.loaded import Loaded
from bench.peers import PEERS
from bench.process import WorkerFailed, run_worker, tree_bytes
from bench.spec import Spec, read_batches
from bench.summary import Metrics, freshness, full_batches, summarise
from bench.todays.libraries import SINKS
from bench.wanted import label_of, wanted_of
from bench.workloads import INGEST, OTHERS, Workload

WRITERS = ("binlake", *PEERS, "floor")
#: Those without Kafka: they generate the events in their own process.
PLAIN = ("floor", *SINKS)


@dataclass(frozen=True)
class Plan:
    """The runs to measure, and their place.

    Args:
        workloads, writers: names.
        rounds: the number of runs of each pair.
        scale: below 1 for a trial.
        results: the directory of ``runs.jsonl``; finished runs in it are not repeated.
        work: a directory for broker, lakes and logs.
    """

    workloads: Sequence[str]
    writers: Sequence[str]
    rounds: int
    scale: float
    results: Path
    work: Path

    @property
    def log(self) -> Path:
        return self.results / "runs.jsonl"


def read_runs(log: Path) -> list[dict[str, Any]]:
    """All recorded runs. A last line that was cut off by a kill does not count."""
    lines = log.read_text().split("\n")[:-1] if log.exists() else []
    return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]


def in_turns(writers: Sequence[str], rounds: int) -> Iterator[tuple[int, str]]:
    """(round, writer): all writers once before any runs again; each round begins with another writer."""
    for number in range(rounds):
        at = number % len(writers)
        yield from ((number, writer) for writer in (*writers[at:], *writers[:at]))


def writers_of(work: Workload, wanted: Sequence[str]) -> list[str]:
    """The writers that support the workload: the floor has no live events, no earlier commits and no idle tables.

    The earlier commits of an old table of Delta or Paimon are created by their own writers, which takes hours. Both
    must be requested by name.
    """
    left_out = {"floor"} if work.live_events or work.age or work.idle else set()
    if work.age and set(wanted) == set(WRITERS):
        left_out |= {"delta", "paimon"}
    return [w for w in wanted if w not in left_out]


class Suite:
    """Runs a plan against a broker."""

    def __init__(self, plan: Plan, bootstrap: str, facts: Mapping[str, Any]) -> None:
        self._plan, self._bootstrap, self._facts = plan, bootstrap, facts
        plan.results.mkdir(parents=True, exist_ok=True)
        _end_cut_line(plan.log)
        self._done = {
            (r["workload"], r["writer"], r["round"], r["scale"]) for r in read_runs(plan.log) if not r["error"]
        }

    def run(self) -> None:
        """Run everything that is not finished yet."""
        for workload in INGEST:
            if workload.name in self._plan.workloads:
                self.ingest(workload.scaled(self._plan.scale))
        for name in OTHERS:
            if name in self._plan.workloads:
                self._other(name)

    def ingest(self, work: Workload) -> None:
        """Run one workload with every writer, as often as the plan says, without the runs that are finished."""
        for number, writer in in_turns(writers_of(work, self._plan.writers), self._plan.rounds):
            if not self._is_done(work.name, writer, number):
                self._note(work.name, writer, number, *self._measured(work, writer, number))

    def _is_done(self, workload: str, writer: str, number: int) -> bool:
        return (workload, writer, number, self._plan.scale) in self._done

    def _other(self, name: str) -> None:
        sides = others.SIDES[name]
        missing = [n for n in range(self._plan.rounds) if not all(self._is_done(name, s, n) for s in sides)]
        if not missing:
            return
        place = self._plan.work / "runs" / name
        shutil.rmtree(place, ignore_errors=True)
        try:
            found = others.run(name, place, len(missing), self._plan.scale)
        except WorkerFailed as error:
            for side in sides:
                self._note(name, side, missing[0], {}, str(error))
            return
        for at, number in enumerate(missing):
            for side in sides:
                self._note(name, side, number, found[side][at], None)
        shutil.rmtree(place)

    def _measured(self, work: Workload, writer: str, number: int) -> tuple[Metrics, str | None, str]:
        """One run: its numbers, the reason if it does not count, and the version of the writer."""
        alone = bool(work.live_events or (work.age and not work.loaded))  # its topic gets more events during the run
        prefix = f"{label_of(work)}-{writer}-{number}" if alone else label_of(work)
        place = self._plan.work / "runs" / f"{work.name}-{writer}"
        spec = Spec(writer, work, self._bootstrap, place, prefix=prefix, until=self._all_of(work) if alone else 0)
        shutil.rmtree(place, ignore_errors=True)
        try:
            metrics = self._by_kind(spec)
        except (WorkerFailed, ValueError) as error:
            return {}, str(error), ""
        wrong, version = self._wrong(spec), (spec.place / "version").read_text()
        if wrong is None:
            shutil.rmtree(place)
        return metrics, wrong, version

    def _by_kind(self, spec: Spec) -> Metrics:
        work = spec.workload
        if work.loaded:
            return self._on_loaded(spec)
        return self._aged(spec) if work.age else self._live(spec) if work.live_events else self._plain(spec)

    def _on_loaded(self, spec: Spec) -> Metrics:
        """Changes to a table that was loaded before: each run has a copy of it, and all writers share the topics."""
        loaded = Loaded(self._plan.work, self._bootstrap)
        changes = loaded.changes(spec)
        shutil.copytree(loaded.table(spec), spec.place)
        metrics = self._run(changes)
        if tags(spec):
            full = full_batches(read_batches(spec.place), spec.workload)
            metrics["stage_tag_ms"] = tagging_ms(spec.place, [batch.number for batch in full])
        return metrics

    def _all_of(self, work: Workload) -> int:
        return work.age_events + work.events // work.tables * work.tables + work.live_events

    def _plain(self, spec: Spec) -> Metrics:
        if spec.writer not in PLAIN:
            fill(self._bootstrap, spec.workload, spec.topics(), upto=spec.workload.events // spec.workload.tables)
        return self._run(spec)

    def _live(self, spec: Spec) -> Metrics:
        """A live run: the live events begin when the warm-up is over."""
        work = spec.workload
        delete_topics(self._bootstrap, spec.topics())
        fill(self._bootstrap, spec.workload, spec.topics(), upto=work.events)
        ((topic, shape),) = spec.topics().items()
        live = islice(table_events(work, shape), work.events, None)
        producer = LiveProducer(self._bootstrap, topic, live, work.live_per_s)

        def begin() -> None:
            seen = read_batches(spec.place)
            if producer.ident is None and seen and seen[-1].end.total >= work.events:
                producer.start()

        metrics = self._run(spec, begin)
        producer.join()
        return metrics | freshness(read_batches(spec.place), times(self._bootstrap, topic), work)

    def _aged(self, spec: Spec) -> Metrics:
        """A run on an old table. The earlier commits are created once per writer; each run continues a copy of them."""
        work = spec.workload
        template = self._plan.work / "aged" / f"{label_of(work)}-{spec.writer}"
        spec = dataclasses.replace(spec, prefix=f"{label_of(work)}-{spec.writer}", until=0)
        if not template.exists():
            delete_topics(self._bootstrap, spec.topics())
            fill(self._bootstrap, spec.workload, spec.topics(), upto=work.age_events)
            run_worker(dataclasses.replace(spec, ageing=True))
            template.parent.mkdir(parents=True, exist_ok=True)
            positions = topic_ends(self._bootstrap, spec.topics())
            (spec.place / "starting_offsets").write_text(positions.to_text())
            for name in ("done", "batches.jsonl"):
                (spec.place / name).unlink(missing_ok=True)
            spec.place.rename(template)
        fill(self._bootstrap, spec.workload, spec.topics(), upto=work.age_events + work.events)
        shutil.copytree(template, spec.place)  # to the path where it was created, so that paths in it stay valid
        return self._run(spec)

    def _run(self, spec: Spec, begin: Any = None) -> Metrics:  # noqa: ANN401 - a callable or None
        spec.lake.mkdir(parents=True, exist_ok=True)
        before = tree_bytes(spec.lake)
        memory = run_worker(spec, begin)
        metrics = summarise(read_batches(spec.place), spec.workload, busy=spec.writer in PLAIN)
        written = tree_bytes(spec.lake) - before
        return metrics | {
            "peak_rss_mb": memory.rss / 2**20,
            "peak_pss_mb": memory.pss / 2**20,
            "bytes_per_byte": written / wanted_of(spec.workload, self._plan.work)["bytes"],
        }

    def _wrong(self, spec: Spec) -> str | None:
        found = json.loads((spec.place / "digests.json").read_text())
        wanted = wanted_of(spec.workload, self._plan.work)["tables"]
        wrong = {t: (found.get(t), wanted[t]) for t in wanted if found.get(t) != wanted[t]}
        return (
            f"{len(wrong)} tables are not right, (found, wanted): {dict(islice(wrong.items(), 2))}" if wrong else None
        )

    def _note(
        self, workload: str, writer: str, number: int, metrics: Metrics, error: str | None, version: str = ""
    ) -> None:
        run = {"workload": workload, "writer": writer, "round": number, "scale": self._plan.scale}
        run |= {"version": version} if version else {}
        line = json.dumps({**run, "error": error, "metrics": metrics, "facts": self._facts})
        with self._plan.log.open("a") as log:
            log.write(line + "\n")
        told = error or ", ".join(f"{name} {value:,.1f}" for name, value in metrics.items() if "stage" not in name)
        print(f"{workload} | {writer} | round {number + 1} | {told}", flush=True)


def _end_cut_line(log: Path) -> None:
    """End a line that a kill cut off, so that it stays a line of its own."""
    if log.exists() and (text := log.read_text()) and not text.endswith("\n"):
        log.write_text(text + "\n")
