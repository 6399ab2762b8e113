"""What Typer lacks: commands that are imported when they are called, and options that several commands share."""

from __future__ import annotations

import functools
import importlib
import inspect
import os
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from binlake.cli.exit_codes import EPILOG

#: How help is laid out: by Rich, or as plain text where NO_COLOR is set, since Rich leaves bold letters in.
MARKUP: Literal["rich"] | None = None if os.environ.get("NO_COLOR") else "rich"


class Lazy(NamedTuple):
    """A command by its name, and the function (or ``Typer``) that it is. ``help``: the first line of its docstring."""

    name: str
    module: str
    attribute: str
    help: str

    def load(self) -> Callable[..., Any] | typer.Typer:
        """Import it."""
        loaded: Callable[..., Any] | typer.Typer = getattr(importlib.import_module(self.module), self.attribute)
        return loaded


class LazyCommand(TyperCommand):
    """Stands for a command in the list of all; whatever is done with it, the command itself does."""

    def __init__(self, entry: Lazy) -> None:
        super().__init__(entry.name, help=entry.help, short_help=entry.help)
        self._entry = entry

    def make_context(self, *args: Any, **extra: Any) -> Any:  # noqa: ANN401 - click's own, of two origins
        """The context of the command itself, by which it is run."""
        return self.real().make_context(*args, **extra)

    def real(self) -> Any:  # noqa: ANN401 - click's command, of two origins
        """The command itself, imported."""
        loaded = self._entry.load()
        if isinstance(loaded, typer.Typer):
            loaded.rich_markup_mode = MARKUP
            return _with_exit_codes(typer.main.get_group(loaded))
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=MARKUP)
        alone.command(self._entry.name)(loaded)
        return _with_exit_codes(typer.main.get_command(alone))


def _with_exit_codes(command: Any) -> Any:  # noqa: ANN401 - click's command, of two origins
    """The command, and those below it, whose help ends with the exit codes and is not cut in a list of commands."""
    command.epilog = EPILOG
    command.short_help = (command.help or "").partition("\n\n")[0].replace("\n", " ")
    for below in getattr(command, "commands", {}).values():
        _with_exit_codes(below)
    return command


def lazy_group(entries: Sequence[Lazy]) -> type[TyperGroup]:
    """A class of command groups that has these commands beside its own."""

    class LazyGroup(TyperGroup):
        def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 - passed on
            super().__init__(**attributes)
            for entry in entries:
                self.add_command(LazyCommand(entry))

    return LazyGroup


R = TypeVar("R")


def options_of(**groups: Callable[..., Any]) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Give a command the options of other functions.

    Args:
        groups: parameter of the command -> the function that makes its value. On the command line the function's
            parameters stand in the place of that one.

    Raises ValueError if two options would have the same name.
    """

    def decorate(command: Callable[..., R]) -> Callable[..., R]:
        taken = {name: list(_parameters(build)) for name, build in groups.items()}
        shown = [p for own in _parameters(command) for p in taken.get(own.name, [own])]

        @functools.wraps(command)
        def run(**given: Any) -> R:  # noqa: ANN401 - the options' own types
            made = {n: build(**{p.name: given.pop(p.name) for p in taken[n]}) for n, build in groups.items()}
            return command(**given, **made)

        # Typer reads the signature for the options, and the annotations for their types.
        vars(run)["__signature__"] = inspect.Signature([p.replace(kind=p.KEYWORD_ONLY) for p in shown])
        run.__annotations__ = {p.name: p.annotation for p in shown}
        return run

    return decorate


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(function, eval_str=True).parameters.values())
