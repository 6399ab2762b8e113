"""Recorded answers of real metastores: ``tests/data/hms/<release>/<script>.jsonl.gz``, a line a call.

``python -m tests.lakemetastore.judged.recorded 3.1.3`` starts the release and records all scripts anew.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import cast

import msgspec

from embedded.hms import EmbeddedHiveMetastore, Release
from tests.lakemetastore.judged.calls import Call, Outcome, outcomes
from tests.lakemetastore.judged.normal import Normal
from tests.lakemetastore.judged.scripts.all import calls_of, scripts_of
from tests.paths import DATA

PLACE = DATA / "hms"
#: The seed of the recorded calls.
SEED = 1


class Recorded(msgspec.Struct, frozen=True):
    """A call and what came of it, normalised."""

    made: Call
    came: Outcome


def path_of(release: str, script: str) -> Path:
    """The file of a recording."""
    return PLACE / release / f"{script}.jsonl.gz"


def read(path: Path) -> list[Recorded]:
    """The calls of a recording."""
    with gzip.open(path, "rb") as lines:
        return [msgspec.json.decode(line, type=Recorded) for line in lines]


def write(path: Path, calls: Iterable[Recorded]) -> None:
    """Write a recording; equal calls make equal bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = b"".join(msgspec.json.encode(one) + b"\n" for one in calls)
    path.write_bytes(gzip.compress(lines, mtime=0))


def record(metastore: EmbeddedHiveMetastore, script: str, seed: int) -> list[Recorded]:
    """Ask a real metastore."""
    normal = Normal(str(metastore.warehouse))
    calls = calls_of(script, seed)
    came = outcomes(metastore.host, metastore.port, calls)
    return [Recorded(made, normal.outcome(one)) for made, one in zip(calls, came, strict=True)]


def main(argv: Sequence[str]) -> None:
    """Record the scripts of a release, or those that are named after it."""
    release = cast("Release", argv[0])
    with tempfile.TemporaryDirectory(prefix="hms-") as place, EmbeddedHiveMetastore(Path(place), release) as metastore:
        for script in argv[1:] or scripts_of(release):
            write(path_of(release, script), record(metastore, script, SEED))


if __name__ == "__main__":
    main(sys.argv[1:])
