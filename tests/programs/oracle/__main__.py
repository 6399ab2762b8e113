"""``python -m tests.programs.oracle``: ``run`` seeds (``make oracle``), ``replay`` recordings, run ``case`` files.

``replay`` needs no service. Ends with exit code 1 if a table differs.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from tests.programs.oracle.binlog import ways as binlog_ways
from tests.programs.oracle.binlog.run import BinlogRun, start_server
from tests.programs.oracle.desk import Written
from tests.programs.oracle.forms import Form
from tests.programs.oracle.play import WAYS
from tests.programs.oracle.recording import Recording
from tests.programs.oracle.report import Report, smallest
from tests.programs.oracle.run import Run
from tests.programs.oracle.script import parse
from tests.programs.oracle.services import start_services
from tests.programs.oracle.trial import Trial, tried


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code."""
    given = _arguments().parse_args(argv)
    warnings.simplefilter("ignore")
    if given.command != "replay" and given.source == "binlog":
        return _follow_binlog(given)
    ways, forms = given.way or WAYS, [Form(form) for form in given.form or Form]
    if given.command == "replay":
        trials = [tried(Recording.load(Path(f)), way, form) for f in given.files for form in forms for way in ways]
        print("\n".join(line for trial in trials for line in trial.lines()))
        return int(any(trial.failures for trial in trials))
    with start_services(event_positions=not given.shared_positions, mysql=given.mysql) as services:
        run = Run(services, ways, forms, given.kinds and given.kinds.split(","), given.keep)
        if given.command == "case":
            run.scripts([Written(parse(Path(file).stem, Path(file).read_text())) for file in given.files])
        else:
            run.seeds(range(given.start, given.start + given.seeds))
        small = run.shrink() if given.shrink and run.report.kinds else []
    _write(small, given.cases)
    return _finish(run.report)


def _follow_binlog(given: argparse.Namespace) -> int:
    """Scripts with lakes that read the server's binlog beside them; the exit code."""
    with start_server() as server:
        kinds = given.kinds and given.kinds.split(",")
        run = BinlogRun(server, given.way or binlog_ways.WAYS, len(given.way or binlog_ways.WAYS), kinds)
        if given.command == "case":
            run.scripts([Written(parse(Path(file).stem, Path(file).read_text())) for file in given.files])
        else:
            with contextlib.suppress(KeyboardInterrupt):
                run.seeds(range(given.start, given.start + given.seeds))
        examples = run.shrink() if given.shrink and run.report.kinds else smallest(run.report)
    _write(examples, given.cases)
    return _finish(run.report)


def _write(trials: Sequence[Trial], place: Path) -> None:
    """A file for each case: what differed, and the script; its recording beside it."""
    for number, trial in enumerate(trials):
        name = f"{trial.recording.name}_{number:02}"
        text = trial.recording.script.accepted.text(*trial.lines())
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{name}.sql").write_text(text)
        trial.recording.save(place / f"{name}.json.gz")
        print(f"\n=== {name}\n{text}")


def _finish(report: Report) -> int:
    print("\n".join(report.lines()))
    return int(bool(report.failing_seeds))


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.programs.oracle", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("run", "replay", "case"):
        command = commands.add_parser(name)
        command.add_argument("--way", action="append", choices=(*WAYS, "loaded"), help="all by default")
        command.add_argument("--form", action="append", choices=list(Form), help="all by default")
        if name != "replay":
            command.add_argument(
                "--source", choices=("kafka", "binlog"), default="kafka", help="binlog: neither Kafka nor a connector"
            )
            command.add_argument("--keep", type=Path, help="a directory for the recordings of failing seeds")
            command.add_argument("--shrink", action="store_true", help="make an example of each kind of failure small")
            command.add_argument("--cases", type=Path, default=Path("build/oracle"), help="where small scripts go")
            command.add_argument(
                "--shared-positions", action="store_true", help="all events of a transaction have one position"
            )
            command.add_argument("--mysql", action="store_true", help="the server is a MySQL, not a MariaDB")
            command.add_argument("--kinds", help="of statements, separated by commas; all by default")
        if name == "run":
            command.add_argument("--seeds", type=int, default=12)
            command.add_argument("--start", type=int, default=1)
        else:
            command.add_argument("files", nargs="+")
    return parser


if __name__ == "__main__":
    sys.exit(main())
