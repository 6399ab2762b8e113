"""``binlake dump``: Kafka's records to files by hour or day."""

from __future__ import annotations

import threading
from functools import partial
from typing import Annotated

import typer

from binlake.cli.options import LakeConf
from binlake.cli.text import number, say, say_json, size
from binlake.cli.until_stopped import until_stopped
from binlake.load.replay.dump import DumpService, RollReport
from binlake.settings import Settings
from binlake.source.dump_source import KafkaSource
from binlake.stream.definitions.ddl_topics import with_found_topics
from hudilake.wording import counted

Once = Annotated[bool, typer.Option("--once", help="Dump the records that are there now, then stop.")]
SkipMissing = Annotated[bool, typer.Option("--skip-missing", help="Go on without offsets that Kafka has deleted.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print a JSON line for every roll.")]


def dump(conf: LakeConf, once: Once = False, skip_missing: SkipMissing = False, as_json: AsJson = False) -> None:
    """Write the records of the topics to files under dump.uri, each once; binlake replay reads them. Needs no Spark.
    SIGTERM and Ctrl-C finish the files in hand, then stop."""
    settings = Settings.load(conf)
    if settings.dump.uri is not None:
        settings = with_found_topics(settings, new=True)
    source = KafkaSource(settings, skip_missing=skip_missing)
    until_stopped(partial(_run, DumpService(settings, source), once, as_json))


def _run(service: DumpService, once: bool, as_json: bool, stop: threading.Event) -> None:
    rolls: list[RollReport] = []

    def tell(roll: RollReport) -> None:
        rolls.append(roll)
        _print(roll, as_json=as_json)

    service.run(once=once, on_roll=tell, stop=stop)
    if not as_json:
        records, files = sum(roll.records for roll in rolls), sum(len(roll.files) for roll in rolls)
        say(f"{counted(records, 'record')} in {counted(files, 'file')}" if rolls else "nothing to dump")


def _print(roll: RollReport, *, as_json: bool) -> None:
    if as_json:
        offsets = [[r.topic, r.partition, r.start, r.end] for r in roll.ranges]
        fields = {"records": roll.records, "files": [path for path, _ in roll.files], "bytes": roll.size}
        say_json({**fields, "offsets": offsets, "lag": roll.lag, "repeated": roll.repeated})
        return
    again = "finished a roll of an earlier run: " if roll.repeated else ""
    say(
        f"{again}{counted(roll.records, 'record')} in {counted(len(roll.files), 'file')}, "
        f"{size(roll.size)}, lag {number(roll.lag)}"
    )
