"""The measured process: one writer, one workload. bench.process starts it: ``-m bench.worker spec.json``."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from bench.aged_hudi import age
from bench.floor import Files, PlainRun
from bench.model import digest
from bench.ours import OURS, OurRun
from bench.peer_stream import PeerRun
from bench.peers import ADDING, PEERS
from bench.spec import Spec
from bench.todays.libraries import SINKS
from bench.todays.spark4 import PEERS_ON_SPARK_4


class Run(Protocol):
    """One writer at work.

    Args:
        version: of what writes.
    """

    version: str

    def run(self) -> None:
        """Apply the events of the run and record each batch."""
        ...

    def contents(self) -> dict[str, pa.Table]:
        """Table -> its rows as a reader sees them."""
        ...

    def close(self) -> None:
        """Release all resources."""
        ...


def make_run(spec: Spec) -> Run:
    """The run for a spec."""
    if spec.writer in OURS:
        return OurRun(spec)
    if spec.writer == "floor":
        return PlainRun(spec, Files(spec))
    if spec.writer in SINKS:
        return PlainRun(spec, SINKS[spec.writer](spec))
    return PeerRun({**PEERS, **ADDING, **PEERS_ON_SPARK_4}[spec.writer], spec)


def main() -> None:
    """Run, report the end, then report the content of the tables."""
    spec = Spec.from_json(Path(sys.argv[1]).read_text())
    if spec.ageing and spec.writer.startswith("hudi") and not spec.workload.loaded:
        age(spec, metadata=spec.writer == "hudi")
        return
    run = make_run(spec)
    (spec.place / "version").write_text(run.version)
    run.run()
    (spec.place / "done").touch()
    if not spec.ageing:
        shapes = {shape.table: shape for shape in spec.workload.shapes()}
        found = {name: dataclasses.asdict(digest(t, shapes[name])) for name, t in run.contents().items()}
        (spec.place / "digests.json").write_text(json.dumps(found))
    run.close()


if __name__ == "__main__":
    main()
