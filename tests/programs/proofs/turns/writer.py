"""hudi-rs' writer, built from crates.io into the cache, and a process of it that writes a table."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from binlake.stream.spark.cache import cached
from hudilake.errors import ConfigError, TransientError

VERSION = "0.6.0-rc.1"
SOURCE = Path(__file__).parent / "writer"
#: What brings ``protoc``, which a dependency of hudi-rs is built with.
_PROTOC = "grpcio-tools>=1.60,<2"


def program() -> Path:
    """The program, built on first use: cargo fetches and compiles hudi-rs in about seven minutes on two cores.

    Raises ConfigError without cargo, TransientError if something cannot be fetched or built.
    """
    return cached(f"hudi-rs-writer-{VERSION}", _built) / "turns"


def _built(work: Path) -> Path:
    if shutil.which("cargo") is None:
        raise ConfigError("cargo is not here", do_next="install Rust: hudi-rs' writer is built from its source")
    shutil.copytree(SOURCE, work / "source")
    _ran([sys.executable, "-m", "pip", "install", "--quiet", "--target", str(work / "tools"), _PROTOC], work)
    protoc = work / "protoc"
    protoc.write_text(
        "#!/bin/sh\n"
        f'PYTHONPATH="{work}/tools" exec "{sys.executable}" -W ignore -m grpc_tools.protoc'
        f' -I"{work}/tools/grpc_tools/_proto" "$@"\n'
    )
    protoc.chmod(0o755)
    _ran(["cargo", "build", "--target-dir", str(work / "target")], work / "source", PROTOC=str(protoc))
    done = work / "done"
    done.mkdir()
    (work / "target" / "debug" / "turns").rename(done / "turns")
    return done


def _ran(command: Sequence[str], place: Path, **environment: str) -> None:
    done = subprocess.run(
        command, cwd=place, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise TransientError(
            f"{' '.join(command[:3])} failed: {done.stderr.strip()[-500:]}", do_next="see whether it works here"
        )


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
