"""A process with hudi-rs' writer that writes a table."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path
from typing import Self

from embedded import hudi_rs

SOURCE = Path(__file__).parent / "writer"


def program() -> Path:
    """The program, built on first use. Raises as ``embedded.hudi_rs.program``."""
    return hudi_rs.program(SOURCE, release=False)


class RustWriter(contextlib.AbstractContextManager["RustWriter"]):
    """A process that writes one table with hudi-rs.

    Args:
        root: of the table.
    """

    def __init__(self, root: Path) -> None:
        self._process = subprocess.Popen(
            [program(), root], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", bufsize=1
        )

    def upsert(self, key: str, text: str, order: int) -> str:
        """Write the row of a key; why it was not, or nothing."""
        return self._answer(f"upsert {key} {text} {order}")

    def delete(self, key: str) -> str:
        """Delete the row of a key; why it was not, or nothing."""
        return self._answer(f"delete {key}")

    def _answer(self, command: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        kind, _, words = self._process.stdout.readline().strip().partition(" ")
        return "" if kind == "ok" else words or "the process ended"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)
