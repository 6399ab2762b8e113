"""The part ``spark``: what Hudi's writer made is what binlake reads."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import hudilake
from hudilake.errors import LakeError, UnsupportedError
from tests.judges.agreement import Rows
from tests.judges.hudi_spark import HudiSpark
from tests.programs.proofs.part import Outcome, Task, Verdict
from tests.programs.proofs.rules import rule_of
from tests.programs.proofs.spark.drawing import DrawnTable, draw
from tests.programs.proofs.spark.writing import SparkWriter
from tests.programs.proofs.tables import difference_of
from tests.spark_session import start_session

_SEEDS = 200
_FAILURES = (PySparkException, Py4JJavaError)


@dataclass(frozen=True)
class SparkTables:
    """The part ``spark``."""

    name: str = "spark"
    owner: str = "apache/hudi (its Spark writer)"
    inputs: str = "tables that a seed draws"
    about: str = """Hudi's Spark bundle writes a table whose type, version, index, key, partitions, columns and
operations a seed draws, services and new columns among them. It is equal if binlake and Spark read the same cells: now,
as of each commit, and under conditions. Not run is what Hudi's own writer or reader does not carry out."""

    def run(self, task: Task) -> Iterator[Verdict]:
        """Judge seeds that have no verdict yet."""
        seeds = [
            seed for seed in range(task.start, task.start + (task.limit or _SEEDS)) if str(seed) not in task.judged
        ]
        if not seeds:
            return
        with tempfile.TemporaryDirectory() as warehouse:
            session = start_session(Path(warehouse))
            try:
                for seed in seeds:
                    place = task.place / str(seed)
                    shutil.rmtree(place, ignore_errors=True)
                    verdict = judge(session, draw(seed), place)
                    if verdict.outcome is not Outcome.WRONG:
                        shutil.rmtree(place, ignore_errors=True)
                    yield verdict
            finally:
                session.stop()


def judge(session: SparkSession, drawn: DrawnTable, place: Path) -> Verdict:
    """Write a table, and compare all that is read of it."""
    name = str(drawn.seed)
    try:
        SparkWriter(session, drawn, place).write()
    except _FAILURES as error:
        return Verdict(name, Outcome.SKIPPED, "Hudi's writer fails", f"{_line(error)}: {drawn.told}")
    try:
        table = hudilake.open_table(str(place))
        difference = Comparison(HudiSpark(session), place, table).first_difference()
    except UnsupportedError as error:
        return _refused(name, str(error))
    except LakeError as error:
        return Verdict(name, Outcome.WRONG, "binlake fails", f"{error}: {drawn.told}")
    except _FAILURES as error:
        return Verdict(name, Outcome.SKIPPED, "Hudi's reader fails", f"{_line(error)}: {drawn.told}")
    if difference is not None:
        return Verdict(name, Outcome.WRONG, "differs from Hudi's Spark reader", f"{difference}: {drawn.told}")
    return Verdict(name, Outcome.EQUAL)


def _refused(name: str, reason: str) -> Verdict:
    """The value and the place are of one table alone."""
    if rule_of(reason) is None:
        return Verdict(name, Outcome.WRONG, "refused, and no rule of the documentation says so", reason)
    return Verdict(name, Outcome.REFUSED, reason.partition(" [")[0], reason)


@dataclass(frozen=True)
class Comparison:
    """A table at ``place``, as ``judge`` and binlake read it."""

    judge: HudiSpark
    place: Path
    table: hudilake.Table

    def first_difference(self) -> str | None:
        """The first difference in words. Raises what the readers raise."""
        found = self._compare("now", self.table.scan().to_arrow(), self.judge.snapshot(str(self.place)))
        for commit in self.table.history():
            found = found or self._then(commit.requested)
        for condition in ("k is not null", "ts > 20", "c0 is null", "ts = 7 or ts = 9"):
            found = found or self._where(condition)
        return found

    def _then(self, moment: str) -> str | None:
        """Time travel has the columns of its time here, and the newest ones in Spark; either may refuse it."""
        if self.table.internal.schema_as_of(moment) != self.table.schema:
            return None
        try:
            ours = self.table.scan(as_of=moment).to_arrow()
            theirs = self.judge.as_of(str(self.place), moment)
        except (UnsupportedError, *_FAILURES) as error:
            if "cleaned" in str(error):
                return None
            raise
        return self._compare(f"as of {moment}", ours, theirs)

    def _where(self, condition: str) -> str | None:
        frame = self.judge.frame(str(self.place)).where(condition).select("k", "ts")
        theirs = [row.asDict() for row in frame.collect()]
        ours = self.table.scan(["k", "ts"], condition).to_arrow().to_pylist()
        return _told(f"where {condition}", difference_of(ours, theirs, "Spark"))

    def _compare(self, when: str, ours: Rows, theirs: Rows) -> str | None:
        return _told(when, difference_of(ours, theirs, "Spark", self.table.schema.names))


def _told(when: str, difference: str | None) -> str | None:
    return None if difference is None else f"{when}: {difference}"


def _line(error: Exception) -> str:
    """The innermost cause that an error names, and where that is."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [at for at, line in enumerate(lines) if line.startswith(("Caused by:", ": "))]
    at = causes[-1] if causes else 0
    return " ".join(lines[at : at + 2]).removeprefix(": ")[:300]
