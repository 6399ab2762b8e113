"""The public surface: its names resolve, say what they are, show an example that runs, and cost nothing to import."""

from __future__ import annotations

import doctest
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import hudilake
from tests.hudilake.api.examples import world

#: What ``import hudilake`` alone must not load.
LARGE = ("pyarrow", "numpy", "pydantic", "numba", "duckdb", "pandas", "fastavro", "obstore", "sqlglot", "pyspark")
_FLAGS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL


def loaded_by(statement: str) -> tuple[set[str], float]:
    """The top-level modules that a new interpreter has after a statement, and the statement's seconds."""
    text = f"import sys, time; t = time.perf_counter(); {statement}; t = time.perf_counter() - t"
    text += "; print(t, *{name.partition('.')[0] for name in sys.modules})"
    said = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout.split()
    return set(said[1:]), float(said[0])


def test_import_loads_nothing_large() -> None:
    modules, seconds = loaded_by("import hudilake")
    print(f"import hudilake: {seconds * 1000:.1f} ms")
    assert modules.isdisjoint(LARGE)


def test_control_a_name_loads_what_it_needs_and_the_check_sees_it() -> None:
    modules, seconds = loaded_by("import hudilake; hudilake.open_table")
    print(f"with open_table: {seconds * 1000:.1f} ms")
    assert "pyarrow" in modules
    assert modules.isdisjoint({"duckdb", "sqlglot", "pyspark"})


def test_the_surface_is_small() -> None:
    assert 30 <= len(hudilake.__all__) <= 60
    assert sorted(hudilake.__all__) == hudilake.__all__
    assert set(hudilake.__all__) <= set(dir(hudilake))


def test_another_name_is_an_error_as_of_any_module() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'opentable'"):
        hudilake.opentable  # noqa: B018 - that it raises is the point


def examples_of(name: str) -> list[doctest.Example]:
    return doctest.DocTestParser().get_examples(inspect.getdoc(getattr(hudilake, name)) or "", name)


@pytest.mark.parametrize("name", hudilake.__all__)
def test_the_example_of_a_name_runs(name: str, tmp_path: Path) -> None:
    examples = examples_of(name)
    assert examples, f"hudilake.{name} shows no example"
    runner, said = doctest.DocTestRunner(optionflags=_FLAGS), list[str]()
    runner.run(doctest.DocTest(examples, world(tmp_path), name, None, None, None), out=said.append)
    assert runner.failures == 0, "".join(said)


def test_control_a_wrong_example_fails(tmp_path: Path) -> None:
    examples = doctest.DocTestParser().get_examples(">>> orders.count()\n4\n")
    runner = doctest.DocTestRunner(optionflags=_FLAGS)
    runner.run(doctest.DocTest(examples, world(tmp_path), "control", None, None, None), out=lambda _: None)
    assert runner.failures == 1


def methods(owner: type) -> list[str]:
    """The public methods and properties that a class has itself."""
    return [
        f"{owner.__name__}.{name}"
        for name in vars(owner)
        if not name.startswith("_") and callable_or_property(owner, name)
    ]


def callable_or_property(owner: type, name: str) -> bool:
    member = inspect.getattr_static(owner, name)
    return isinstance(member, property) or inspect.isfunction(member)


CLASSES = (hudilake.Table, hudilake.Transaction, hudilake.Reader, hudilake.ScanTask)


@pytest.mark.parametrize("path", [path for owner in CLASSES for path in methods(owner)])
def test_every_method_says_what_it_does_and_what_it_takes(path: str) -> None:
    owner, _, name = path.partition(".")
    member = inspect.getattr_static(getattr(hudilake, owner), name)
    text = inspect.getdoc(member) or ""
    assert text, f"{path} has no docstring"
    if inspect.isfunction(member):
        arguments = [a for a in inspect.signature(member).parameters if a != "self"]
        unsaid = [a for a in arguments if a not in text]
        inherits = any(words in text for words in ("rguments and errors as", "Raises as", "rguments as"))
        assert inherits or not unsaid, f"{path} does not say what {unsaid} is"
