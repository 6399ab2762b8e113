"""The pages on hudilake: their examples run in order, and the reference is the one that is generated."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs import python_reference
from tests.docs.pages import Block, blocks_of
from tests.hudilake.api.examples import world
from tests.paths import ROOT

#: Libraries that the project does not depend on: ``tests/whole/packages`` runs their examples.
ABSENT = ("import polars", "import ray")
TEN_LINES, INTEGRATIONS = (ROOT / "docs" / f"python-{name}.md" for name in ("ten-lines", "integrations"))


def examples(page: Path) -> list[Block]:
    return [block for block in blocks_of(page, page.read_text()) if block.language == "python"]


def run(page: Path, names: dict[str, object]) -> int:
    """Run the examples of a page one after the other; returns how many."""
    runnable = [block for block in examples(page) if not block.text.startswith(ABSENT)]
    for block in runnable:
        exec(compile(block.text, str(page), "exec"), names)
    return len(runnable)


def test_ten_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(TEN_LINES, {"uri": str(tmp_path / "orders")}) == 4
    assert capsys.readouterr().out == "[{'id': 1, 'qty': 5}]\n"
    first = [line for line in examples(TEN_LINES)[0].text.splitlines() if line]
    assert len(first) <= 10


@pytest.mark.full
def test_other_libraries(tmp_path: Path) -> None:
    assert run(INTEGRATIONS, {**world(tmp_path), "__name__": "page"}) == 4
    assert len(examples(INTEGRATIONS)) == 6


def test_control_a_wrong_example_fails(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nassert orders.count() == 2\n```\n")
    with pytest.raises(AssertionError):
        run(page, world(tmp_path))


def test_the_reference_is_current() -> None:
    assert python_reference.PAGE.read_text() == python_reference.page(), "run make docs"
