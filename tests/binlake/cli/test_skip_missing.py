"""``binlake run --skip-missing`` reaches the stream, and nothing else does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from binlake.cli.app import app
from binlake.cli.commands.stream import run as cli_run

TEXT = "name: shop\nlake: {uri: '%s'}\nkafka: {bootstrap_servers: '127.0.0.1:1', topics: [a]}\n"


@pytest.mark.parametrize(("arguments", "expected"), [([], False), (["--skip-missing"], True)])
def test_it_is_asked_for_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], expected: bool
) -> None:
    asked: list[bool] = []

    def run_stream(settings: object, *, skip_missing: bool, **others: Any) -> None:  # noqa: ANN401
        asked.append(skip_missing)

    monkeypatch.setattr(cli_run, "run_stream", run_stream)
    (tmp_path / "conf.yaml").write_text(TEXT % tmp_path)
    done = CliRunner().invoke(app, ["run", str(tmp_path / "conf.yaml"), "--no-display", *arguments])
    assert done.exit_code == 0, done.output
    assert asked == [expected]
