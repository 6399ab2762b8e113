"""Commands that are imported when they are called: ``binlake --help`` and ``binlake run`` need none of the others."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup


class Lazy(NamedTuple):
    """A command by its name, and the function (or ``Typer``) that it is. ``help``: the first line of its docstring."""

    name: str
    module: str
    attribute: str
    help: str

    def load(self) -> Callable[..., Any] | typer.Typer:
        """Import it."""
        found: Callable[..., Any] | typer.Typer = getattr(importlib.import_module(self.module), self.attribute)
        return found


class LazyCommand(TyperCommand):
    """Stands for a command in the list of all; whatever is done with it, the command itself does."""

    def __init__(self, entry: Lazy) -> None:
        super().__init__(entry.name, help=entry.help)
        self._entry = entry

    def make_context(self, *args: Any, **extra: Any) -> Any:  # noqa: ANN401 - click's own, of two origins
        """The context of the command itself, by which it is run."""
        return self.real().make_context(*args, **extra)

    def real(self) -> Any:  # noqa: ANN401 - click's command, of two origins
        """The command itself, imported."""
        found = self._entry.load()
        if isinstance(found, typer.Typer):
            return typer.main.get_group(found)
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        alone.command(self._entry.name)(found)
        return typer.main.get_command(alone)


def lazy_group(entries: Sequence[Lazy]) -> type[TyperGroup]:
    """A class of command groups that has these commands beside its own."""

    class LazyGroup(TyperGroup):
        def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 - passed on
            super().__init__(**attributes)
            for entry in entries:
                self.add_command(LazyCommand(entry))

    return LazyGroup
