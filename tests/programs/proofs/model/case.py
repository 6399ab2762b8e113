"""A case: processes on a table, what may happen to them, and the module that TLC gets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

Value: TypeAlias = str | int | bool | Iterable["Value"]
INVARIANTS = (
    "ReadersAgree",
    "ReadersSeeWholeCommits",
    "IndexAgrees",
    "NoLostUpdate",
    "ExactlyOnce",
    "ToldTheTruth",
    "ColumnsStay",
    "NothingForbidden",
)


def tla(value: Value) -> str:
    """A value as TLA+ writes it; what is iterable is a set."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int):
        return str(value)
    return f'"{value}"' if isinstance(value, str) else "{" + ", ".join(sorted(map(tla, value))) + "}"


@dataclass(frozen=True)
class Case:
    """Histories of ``Commit.tla``. The words are those of its constants.

    Args:
        name: of the case.
        about: what it explores, in a few words.
        roles: by process.
        wants: by process the file groups that it writes, where these are not all.
        rounds: by process, where it is not one.
    """

    name: str
    about: str
    roles: Mapping[str, str]
    wants: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    rounds: Mapping[str, int] = field(default_factory=dict)
    groups: tuple[int, ...] = (1,)
    adds: tuple[str, ...] = ()
    eager: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    mortal: tuple[str, ...] = ()
    sleepy: tuple[str, ...] = ()
    late_calls: tuple[str, ...] = ()
    policy: str = "queue"
    indexed: bool = True
    apart: bool = False
    margin: bool = True
    crashes: int = 0
    lapses: int = 0
    expiries: int = 0
    lates: int = 0
    max_time: int = 14

    def module(self, name: str) -> str:
        """The module with the functions that a configuration cannot hold."""
        roles = self._by_process({p: tla(role) for p, role in self.roles.items()})
        wants = self._by_process({p: tla(self.wants.get(p, self.groups)) for p in self.roles})
        rounds = self._by_process({p: tla(self.rounds.get(p, 1)) for p in self.roles})
        return (
            f"---- MODULE {name} ----\nEXTENDS Commit\n"
            f"Roles == {roles}\nWanted == {wants}\nRoundsOf == {rounds}\n====\n"
        )

    def settings(self, off: Iterable[str] = ()) -> str:
        """TLC's configuration. ``off``: the guards that are switched off."""
        constants: dict[str, Value] = {
            "Procs": self.roles,
            "Groups": self.groups,
            "Adds": self.adds,
            "Eager": self.eager,
            "Foreign": self.foreign,
            "Mortal": self.mortal,
            "Sleepy": self.sleepy,
            "LateCalls": self.late_calls,
            "Policy": self.policy,
            "Indexed": self.indexed,
            "Apart": self.apart,
            "Margin": self.margin,
            "Crashes": self.crashes,
            "Lapses": self.lapses,
            "Expiries": self.expiries,
            "Lates": self.lates,
            "MaxTime": self.max_time,
            "Off": tuple(off),
        }
        lines = ["SPECIFICATION Spec", "CONSTRAINT Bounded", "INVARIANTS " + " ".join(INVARIANTS), "CONSTANTS"]
        lines += [f"  {name} = {tla(value)}" for name, value in constants.items()]
        return "\n".join([*lines, "  Role <- Roles", "  Wants <- Wanted", "  Rounds <- RoundsOf", ""])

    @staticmethod
    def _by_process(values: Mapping[str, str]) -> str:
        return "[p \\in Procs |-> CASE " + " [] ".join(f'p = "{p}" -> {text}' for p, text in values.items()) + "]"
