"""Options that are written once and serve several commands."""

from __future__ import annotations

from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from binlake.cli.typer_extras import options_of

Low = Annotated[int, typer.Option("--low", help="The least.")]
Names = Annotated[list[str] | None, typer.Argument(metavar="NAME")]


def span(names: Names = None, low: Low = 3) -> str:
    """What the options make."""
    return f"{'+'.join(names or ())} from {low}"


def made() -> typer.Typer:
    """Two commands with the same options, each with one of its own."""
    app = typer.Typer()

    @app.command()
    @options_of(asked=span)
    def one(first: str, asked: str, *, loud: bool = False) -> None:
        """The first command."""
        typer.echo(f"one {first} {asked} {loud}")

    @app.command()
    @options_of(asked=span)
    def two(asked: str, last: Annotated[int, typer.Option()] = 9) -> None:
        """The second command."""
        typer.echo(f"two {asked} {last}")

    return app


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("one x", "one x  from 3 False"),
        ("one x a b --low 7 --loud", "one x a+b from 7 True"),
        ("two --last 1", "two  from 3 1"),
        ("two a --low 8", "two a from 8 9"),
    ],
)
def test_both_commands_take_them(line: str, said: str) -> None:
    result = CliRunner().invoke(made(), line.split())
    assert (result.exit_code, result.output) == (0, said + "\n")


def test_they_stand_where_the_parameter_stands() -> None:
    page = CliRunner().invoke(made(), ["one", "--help"], env={"COLUMNS": "100", "TERM": "dumb"}).output
    places = [page.index(text) for text in ("The first command.", "--low", "The least.", "--loud")]
    assert places == sorted(places)
    assert "asked" not in page


def test_a_wrong_value_is_a_usage_error() -> None:
    result = CliRunner().invoke(made(), ["two", "--low", "few"])
    assert result.exit_code == 2
    assert "integer" in result.output


def test_two_options_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="low"):

        @options_of(asked=span)
        def twice(asked: str, low: Low = 1) -> None: ...
