"""Options that several commands share: written once, as the parameters of the function that makes one value of them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

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
