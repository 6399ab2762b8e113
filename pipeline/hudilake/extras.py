"""Libraries that only some of the work needs: they come with an extra of a distribution, such as ``hudilake[sql]``.

It stands alone: all packages import it, and it imports the errors alone.
"""

from __future__ import annotations

from importlib.util import find_spec

from hudilake.errors import ConfigError


class MissingExtraError(ConfigError, ImportError):
    """A library is not installed; ``do_next`` says how to install it. An ImportError, too."""


def require_extra(distribution: str, extra: str, *modules: str) -> None:
    """Check that the libraries of an extra are installed, without an import of them.

    Args:
        distribution: that has the extra.
        extra: its name.
        modules: top-level modules of the libraries.

    Raises MissingExtraError.
    """
    for module in modules:
        if find_spec(module) is None:
            raise MissingExtraError(
                f"{module.replace('_', '-')} is not installed", do_next=f"pip install '{distribution}[{extra}]'"
            )
