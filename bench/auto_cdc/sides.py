"""What both sides know: the kinds of tables, and how a side is told to take a batch and answers what it has cost."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, cast

from bench.events import DATABASE, TABLE

#: Compaction is part of our figures.
_RULES: dict[str, Any] = {"buckets": 4, "compaction": {"mode": "inline", "after_commits": 4}}
_HISTORY = {"table": f"{DATABASE}.{TABLE}", "to": f"{DATABASE}.versions", "kind": "scd2"}
#: AUTO CDC's names of a version's bounds -> ours.
BOUNDS = {"__START_AT": "start_at", "__END_AT": "end_at"}

#: Before an answer: a side's libraries print, too.
_ANSWER = "spent "


@dataclass(frozen=True)
class Kind:
    """What is made of the events.

    Args:
        scd_types: target of AUTO CDC -> its SCD type.
        tables: our settings of tables.
        lake: target -> our table.
    """

    scd_types: Mapping[str, int]
    tables: Mapping[str, Any]
    lake: Mapping[str, str]


KINDS = {
    "scd1": Kind({"newest": 1}, {"defaults": _RULES}, {"newest": TABLE}),
    "scd2": Kind({"versions": 2}, {"defaults": {**_RULES, "merge": {"engine": "scd2"}}}, {"versions": TABLE}),
    "both": Kind(
        {"newest": 1, "versions": 2},
        {"defaults": _RULES, "history": [_HISTORY]},
        {"newest": TABLE, "versions": "versions"},
    ),
}


@dataclass(frozen=True)
class Spent:
    """Seconds of a turn: of processors, all processes of the side together, and by the clock."""

    cpu: float
    clock: float

    def tell(self) -> None:
        """Answer the program that measures."""
        print(_ANSWER + json.dumps(asdict(self)), flush=True)


class Side:
    """A process that takes the next batch of its place when it is told to. It says first what its start has cost."""

    def __init__(self, name: str, python: str, place: Path, kind: str, batches: list[list[bytes]]) -> None:
        (place / "batches").mkdir(parents=True)
        for number, batch in enumerate(batches):
            (place / "batches" / f"{number:06}.txt").write_bytes(b"".join(line + b"\n" for line in batch))
        self._said = (place / "said.txt").open("w+")
        command = [python, "-m", f"bench.auto_cdc.{name}", str(place), kind]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, text=True
        )
        self.start = self._answer()

    def turn(self) -> Spent:
        """One batch. Raises RuntimeError if the process has ended."""
        ask = cast(IO[str], self._process.stdin)
        ask.write("\n")
        ask.flush()
        return self._answer()

    def close(self) -> None:
        """Let it leave its rows, and end. Raises RuntimeError if it fails."""
        cast(IO[str], self._process.stdin).close()
        cast(IO[str], self._process.stdout).read()
        if self._process.wait():
            raise RuntimeError(self._last_words())

    def kill(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.wait()

    def _answer(self) -> Spent:
        for line in cast(IO[str], self._process.stdout):
            if line.startswith(_ANSWER):
                return Spent(**json.loads(line.removeprefix(_ANSWER)))
        raise RuntimeError(self._last_words())

    def _last_words(self) -> str:
        self._said.seek(0)
        return f"a side ended: {self._said.read()[-3000:]}"
