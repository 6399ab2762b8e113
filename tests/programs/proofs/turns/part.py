"""The part ``turns``: histories that seeds draw, judged."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from embedded.hudi_rs import VERSION
from hudilake.errors import ConfigError, LakeError, TransientError
from hudilake.policies import TableType
from tests.programs.proofs.part import Outcome, Task, Verdict
from tests.programs.proofs.rules import rule_of
from tests.programs.proofs.turns.histories import RaceHistory, TurnsHistory
from tests.programs.proofs.turns.writer import program

_KINDS: tuple[TableType, ...] = ("copy_on_write", "merge_on_read")
_HISTORIES = ("known keys", "new keys", "at the same time")
_SEEDS = 5


@dataclass(frozen=True)
class Turns:
    """The part ``turns``."""

    name: str = "turns"
    owner: str = "apache/hudi-rs (its writer)"
    inputs: str = "histories of a table of two writers"
    about: str = f"""hudi-rs {VERSION}, built by cargo, and binlake write one table, in turns that a seed draws or at
the same time. A history of turns is equal if both show all rows after each turn; refused if our writer stops at what
hudi-rs wrote. Of writes at the same time, what our writer acknowledged is there, or it stops; what hudi-rs
acknowledged may be gone, since it takes no lock."""

    def run(self, task: Task) -> Iterator[Verdict]:
        """Judge what has no verdict yet."""
        logging.getLogger().addHandler(logging.NullHandler())
        names = [f"{kind} {what} {seed}" for seed in range(_SEEDS) for kind, what in product(_KINDS, _HISTORIES)]
        left = [name for name in names if name not in task.judged][task.start :][: task.limit]
        try:
            program()
        except (ConfigError, TransientError) as error:
            yield from (Verdict(name, Outcome.SKIPPED, "hudi-rs' writer cannot be built", str(error)) for name in left)
            return
        for name in left:
            kind, _, rest = name.partition(" ")
            what, _, seed = rest.rpartition(" ")
            place = task.place / name.replace(" ", "_")
            shutil.rmtree(place, ignore_errors=True)
            yield judged(name, place, next(one for one in _KINDS if one == kind), what, int(seed))
            shutil.rmtree(place, ignore_errors=True)


def judged(name: str, place: Path, kind: TableType, what: str, seed: int) -> Verdict:
    """The verdict on one history. ``place``: of its table."""
    if what == "at the same time":
        race = RaceHistory(place, kind, seed)
        wrong = race.run()
        detail = f"there in the end: {race.kept}; said: {sorted({error.what[:90] for error in race.said})}"
        return Verdict(name, Outcome.WRONG if wrong else Outcome.EQUAL, wrong, detail)
    history = TurnsHistory(place, kind, seed, new_keys=what == "new keys")
    try:
        wrong = history.run()
    except LakeError as error:
        ruled = rule_of(error.what) is not None
        reason = error.what.partition(" (")[0]
        return Verdict(name, Outcome.REFUSED if ruled else Outcome.WRONG, _general(reason), str(error))
    detail = f"{wrong} {history.writes}".strip()
    return Verdict(name, Outcome.WRONG if wrong else Outcome.EQUAL, "differs" if wrong else "", detail)


def _general(reason: str) -> str:
    return " ".join("N" if word.isdigit() else word for word in reason.split())
