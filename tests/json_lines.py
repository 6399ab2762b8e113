"""Every line that a test lets a command print with ``--json`` is held to the command's schema in docs/schemas."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner, Result

from docs.json_lines import LINES
from docs.json_schemas import path


@cache
def validator(command: str) -> jsonschema.Draft202012Validator:
    """The validator of the schema that is stored for a command."""
    return jsonschema.Draft202012Validator(json.loads(path(command).read_text()))


def command_of(words: Sequence[str]) -> str | None:
    """The command that the words of a command line begin with; None for none of those with a schema."""
    names = (" ".join(words[:length]) for length in (3, 2, 1))
    return next((name for name in names if name in LINES), None)


def validated(command: str, output: str) -> list[Any]:
    """The lines of a command's output. Raises jsonschema.ValidationError, ValueError for what is no JSON."""
    texts = [output] if command == "config-schema" else output.splitlines()
    lines = [json.loads(text) for text in texts]
    for line in lines:
        validator(command).validate(line)
    return lines


@pytest.fixture(autouse=True, scope="session")
def held_lines() -> Any:  # noqa: ANN401 - an iterator, as pytest wants
    """While tests run, what ``CliRunner`` takes from a command with ``--json`` is validated."""
    invoke = CliRunner.invoke

    def validating(self: CliRunner, app: Any, args: Any = None, *more: Any, **named: Any) -> Result:  # noqa: ANN401
        done = invoke(self, app, args, *more, **named)
        words = [] if args is None or isinstance(args, str) else list(map(str, args))
        command = command_of(words)
        if command is not None and "--json" in words and "--help" not in words:
            validated(command, done.stdout)
        return done

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CliRunner, "invoke", validating)
        yield
