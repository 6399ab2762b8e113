"""The parts that run files at a server: which files in which order, and what is kept of them."""

from __future__ import annotations

import contextlib
import json
import logging
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from hudilake.errors import TransientError
from tests.programs.oracle.services import start_services
from tests.programs.proofs.checkouts import checkout_of
from tests.programs.proofs.part import Outcome, Task, Verdict
from tests.programs.proofs.suite.judge import judged
from tests.programs.proofs.suite.package import files, suite_home
from tests.programs.proofs.suite.recorder import Recorder, Run
from tests.programs.proofs.suite.sessions import ServerGoneError

#: The suites in the order in which they are run; those of other engines, clusters and plugins come last.
_ORDER = (
    "main/", "suite/rpl/", "suite/innodb/", "suite/parts/", "suite/engines/", "suite/binlog/", "suite/vcol/",
    "suite/gcol/", "suite/versioning/", "suite/json/", "suite/maria/", "suite/innodb_zip/", "suite/innodb_gis/",
    "suite/funcs_1/", "suite/compat/", "suite/period/", "suite/heap/", "suite/archive/", "suite/sql_sequence/",
)  # fmt: skip
#: Of which suites a drawn order takes files, and what decides it.
_DRAWN = ("main/", "suite/rpl/", "suite/innodb/", "suite/parts/", "suite/engines/", "suite/binlog/")
_SEED = 32
#: After how many files the services start anew: binlog and topic grow.
_FILES = 200
JUDGED = """The statements of each file run at an embedded MariaDB that Debezium follows; before a table goes, all
tables are read. What Debezium wrote is played into binlake from a backlog, live or with a storage that dies, in one of
the three forms, and hudi-rs must show the server's rows. A file is as its worst *segment*, the statements from a moment
without tables to the next one. What asks for a second server, another start of the server or a shell is left out; so
are settings that take row events out of the log. The option `suite=drawn` takes the files of main, rpl, innodb, parts,
engines and binlog in an order that a fixed seed has drawn, so that each beginning of it is a sample."""


@dataclass(frozen=True)
class FilesPart:
    """Files in the language of MariaDB's tests.

    Args:
        name, owner, inputs, about: see Part.
        home: the directory of the files, or None if there is none; it may look at the task's options.
    """

    name: str
    owner: str
    inputs: str
    about: str
    home: Callable[[Task], Path | None]

    def run(self, task: Task) -> Iterator[Verdict]:
        """Judge files. The options ``record`` and ``judge`` ask for half of the work, ``drawn`` for a sample; an
        absolute path is for ``home``, others are parts of names.

        Raises what ``home`` raises.
        """
        home = self.home(task)
        if home is None:
            return
        logging.getLogger().addHandler(logging.NullHandler())
        left = chosen(task, home)
        if "judge" in task.options:
            left = [name for name in left if (_place(task, name) / "run.json").exists()]
        left = left[: task.limit]
        with _Recording(task, home) as recording:
            for name in left:
                if "judge" not in task.options and not (_place(task, name) / "run.json").exists():
                    recording.record(name)
                if "record" not in task.options:
                    yield _judge(task, name)


#: An absolute path among the options is a directory of other files in the suite's language.
SUITE = FilesPart("suite", "MariaDB", "test files", JUDGED, lambda task: checkout_of(task.options) or suite_home())


def chosen(task: Task, home: Path) -> list[str]:
    """The files that a task asks for and that have no verdict yet, in order. Options as in ``FilesPart.run``."""
    asked = {"record", "judge", "drawn"}
    words = [word for word in task.options if word not in asked and not Path(word).is_absolute()]
    order = drawn if "drawn" in task.options else ordered
    names = [name for name in order(files(home)) if not words or any(word in name for word in words)]
    return [name for name in names if name not in task.judged][task.start :]


def ordered(names: Sequence[str]) -> list[str]:
    """In the order of a run: those of other engines, of clusters and of plugins come last."""
    return sorted(names, key=lambda name: (next((n for n, o in enumerate(_ORDER) if name.startswith(o)), 99), name))


def drawn(names: Sequence[str]) -> list[str]:
    """Those of the suites that are drawn from, in an order that is always the same: each beginning is a sample."""
    mine = sorted(name for name in names if name.startswith(_DRAWN))
    random.Random(_SEED).shuffle(mine)
    return mine


def _place(task: Task, name: str) -> Path:
    return task.place / name.removesuffix(".test").replace("/", ".")


class _Recording(contextlib.AbstractContextManager["_Recording"]):
    """Records files at services that the first file starts; they stay until the server ends or many files ran."""

    def __init__(self, task: Task, home: Path) -> None:
        self._task, self._home = task, home
        self._services = contextlib.ExitStack()
        self._recorder: Recorder | None = None
        self._recorded = 0

    def __exit__(self, *error: object) -> None:
        self._services.close()

    def record(self, name: str) -> None:
        """Record a file and keep it. If the server ends, that is what is kept."""
        try:
            if self._recorder is None or self._recorded == _FILES:
                self._stop()
                self._recorder = Recorder(self._services.enter_context(start_services()), self._home)
            self._recorded += 1
            run = self._recorder.record(name)
        except (ServerGoneError, TransientError) as gone:
            self._stop()
            run = Run(name, end=f"the server ended: {gone}")
        run.save(_place(self._task, name))
        print(f"recorded {run.name}: {len(run.recordings)} segments, {dict(run.ran)} {run.end}", flush=True)

    def _stop(self) -> None:
        self._services.close()
        self._recorder, self._recorded = None, 0


def _judge(task: Task, name: str) -> Verdict:
    run = Run.load(_place(task, name))
    if run.end.startswith("the server ended"):
        return Verdict(name, Outcome.SKIPPED, "the server ended", run.end)
    verdict, segments = judged(run)
    with (task.place / "segments.jsonl").open("a") as lines:
        lines.writelines(json.dumps(asdict(segment), ensure_ascii=False) + "\n" for segment in segments)
    return verdict
