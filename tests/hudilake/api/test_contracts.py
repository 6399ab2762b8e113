"""Who uses what of hudilake: examples and pages the public names, binlake and lakemetastore the second layer too."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import hudilake
from docs.python_reference import private_modules, second_layer
from tests.docs.pages import blocks
from tests.paths import ROOT

LAYER = frozenset(second_layer())
#: Documented beside the public names, and imported by their modules for what they need besides hudilake.
BESIDE = ("hudilake.query.samples.torch_samples", "hudilake.query.sql")
#: Pages on programs that stand on the second layer.
ON_THE_LAYER = ("docs/timeline-service.md",)


def used(text: str) -> Iterator[str]:
    """What a program takes of hudilake, as dotted names."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "hudilake":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("hudilake."))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "hudilake":
            yield f"hudilake.{node.attr}"


def not_public(text: str) -> list[str]:
    public = {f"hudilake.{name}" for name in hudilake.__all__}
    return sorted({name for name in used(text) if name not in public and not name.startswith(BESIDE)})


def programs(*folders: str) -> Iterator[tuple[str, str]]:
    for folder in folders:
        for file in sorted((ROOT / folder).rglob("*.py")):
            yield str(file.relative_to(ROOT)), file.read_text()


def test_examples_and_jobs_use_the_public_surface_alone() -> None:
    assert {name: odd for name, text in programs("examples", "jobs") if (odd := not_public(text))} == {}


def test_pages_use_the_public_surface_alone() -> None:
    shown = {str(block): block.text for block in blocks("python") if not str(block).startswith(ON_THE_LAYER)}
    shown = {name: text for name, text in shown.items() if ">>>" not in text}
    assert {name: odd for name, text in shown.items() if (odd := not_public(text))} == {}
    assert sum("hudilake" in text for text in shown.values()) >= 8


def test_binlake_and_lakemetastore_keep_to_the_second_layer() -> None:
    taken = {name for _, text in programs("pipeline/binlake", "pipeline/lakemetastore") for name in used(text)}
    public = {f"hudilake.{name}" for name in hudilake.__all__}
    modules = {name if name in LAYER else name.rpartition(".")[0] for name in taken - public}
    assert modules - LAYER == set()
    assert LAYER - modules == set(), "nobody needs them: add them to the private modules in pyproject.toml"
    assert len(modules) > 100  # the control: the search sees what they use


def test_control_a_private_name_is_seen() -> None:
    text = "import hudilake\nfrom hudilake.table.table import HudiTable\nhudilake.open_table(hudilake.secret)\n"
    assert not_public(text) == ["hudilake.secret", "hudilake.table.table.HudiTable"]


def test_private_modules_are_there() -> None:
    places = [ROOT / "pipeline" / name.replace(".", "/") for name in private_modules()]
    assert [place for place in places if not (place.is_dir() or place.with_suffix(".py").is_file())] == []
    assert "hudilake.api" in private_modules()
    assert LAYER.isdisjoint(private_modules())
