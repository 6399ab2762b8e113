"""The three modules of locks and heartbeats, and their guards."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tests.programs.proofs.model.case import tla


@dataclass(frozen=True)
class Lock:
    """A module that is small enough to be explored whole.

    Args:
        name: of the module.
        constants: in TLA+.
        guards: that it breaks without.
        invariant: what must hold.
        bounded: whether its histories are cut by ``Bounded``.
    """

    name: str
    constants: tuple[tuple[str, str], ...]
    guards: tuple[str, ...]
    invariant: str
    bounded: bool = True

    def module(self, name: str) -> str:
        """A module that extends it."""
        clocks = 'Clocks == [p \\in Procs |-> IF p = "p" THEN 3 ELSE 0]'
        return f"---- MODULE {name} ----\nEXTENDS {self.name}\n{clocks}\n====\n"

    def settings(self, off: Iterable[str] = ()) -> str:
        """TLC's configuration."""
        constants = [f"  {name} = {text}" for name, text in (*self.constants, ("Off", tla(tuple(off))))]
        bound = ["CONSTRAINT Bounded"] * self.bounded
        head = ["SPECIFICATION Spec", *bound, f"INVARIANT {self.invariant}", "CONSTANTS"]
        return "\n".join([*head, *constants, "  Ahead <- Clocks", ""])


_TIMES = (("Procs", '{"p", "q"}'), ("Validity", "3"), ("Margin", "1"), ("Steals", "1"), ("End", "5"))
LOCKS = (
    Lock("StorageLock", _TIMES, ("storage-lock", "storage-lock-version", "lock-lost"), "OneCompletes"),
    Lock("FileLock", _TIMES, ("lock", "lock-lost", "lock-takeover", "renewal-margin"), "OneCompletes"),
    Lock(
        "Heartbeat",
        (("Procs", '{"w", "p"}'), ("Timeout", "4"), ("End", "9")),
        ("heartbeat-foreign",),
        "TheDeadAreSilent",
        bounded=False,
    ),
)
