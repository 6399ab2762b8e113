"""Who is told of the instants that a writer completes: the metastore, if there is one.

The timeline is the truth, so nothing depends on the telling: what is lost the metastore takes in later by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol


@dataclass(frozen=True, slots=True)
class RegistrarCounts:
    """How the telling went since the start.

    Args:
        told: tables whose newest instant the metastore took in.
        failed: attempts that failed; they are made again.
        dropped: tables that were given up: the metastore refused them, or too many waited.
        waiting: tables that wait now.
    """

    told: int = 0
    failed: int = 0
    dropped: int = 0
    waiting: int = 0


class Registrar(Protocol):
    """Is told of completed instants. No method raises, and none waits for the metastore."""

    def completed(self, uri: str, instant: str) -> None:
        """An instant of a table has completed.

        Args:
            uri: the table's root.
            instant: its requested time. All older ones of the table are told with it.
        """
        ...

    def counts(self) -> RegistrarCounts:
        """How it went so far."""
        ...


class NoRegistrar:
    """There is no metastore."""

    def completed(self, uri: str, instant: str) -> None:
        """Does nothing."""

    def counts(self) -> RegistrarCounts:
        """Zeros."""
        return RegistrarCounts()


NO_REGISTRAR: Final[Registrar] = NoRegistrar()
