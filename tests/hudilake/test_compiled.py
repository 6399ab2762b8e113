"""Compiled code that is kept holds for what it was made of, also where that is in another module."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

INNER = """
from hudilake.compiled import LONG, compiled

FACTOR = {factor}

@compiled(LONG(LONG))
def step(value):
    return value + {added}
"""
OUTER = """
from hudilake.compiled import LONG, compiled
from inner import FACTOR, step

@compiled(LONG(LONG))
def walk(value):
    return step(value) * FACTOR
"""
TOP = """
from hudilake.compiled import LONG, compiled
from outer import walk

@compiled(LONG(LONG))
def top(value):
    return walk(value)
"""
SHOW = "import top; print(top.top(1), sum(top.top.stats.cache_hits.values()))"


def shown(place: Path, added: int, factor: int) -> str:
    """What a new process computes, and how often it took kept code."""
    # Without -B Python may take the bytecode of a file that changed within the same second.
    (place / "inner.py").write_text(INNER.format(added=added, factor=factor))
    done = subprocess.run([sys.executable, "-B", "-c", SHOW], cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.full
@pytest.mark.parametrize("changed", [(5, 10), (2, 100)])
def test_a_change_of_another_module_is_compiled(tmp_path: Path, changed: tuple[int, int]) -> None:
    """A function two modules away, and a constant, which numba freezes."""
    (tmp_path / "outer.py").write_text(OUTER)
    (tmp_path / "top.py").write_text(TOP)
    assert shown(tmp_path, 2, 10) == "30 0"
    assert shown(tmp_path, 2, 10) == "30 1", "what has not changed is kept"
    added, factor = changed
    assert shown(tmp_path, added, factor) == f"{(1 + added) * factor} 0"
    assert shown(tmp_path, 2, 10) == "30 1", "both are kept"
