"""Whether what is looked at is well."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Health:
    """The health of a stream or a service: the reasons why it is not healthy, if there are any."""

    reasons: tuple[str, ...] = ()

    @property
    def well(self) -> bool:
        """Whether it is healthy: there are no reasons."""
        return not self.reasons
