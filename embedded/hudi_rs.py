"""Programs with hudi-rs' writer, built from crates.io into the cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from binlake.stream.spark.cache import cached
from hudilake.errors import ConfigError, TransientError

VERSION = "0.6.0-rc.1"
#: What brings ``protoc``, which a dependency of hudi-rs is built with.
_PROTOC = "grpcio-tools>=1.60,<2"


def program(source: Path, *, release: bool) -> Path:
    """The program of a crate, built on first use: cargo compiles hudi-rs in about seven minutes on two cores.

    Args:
        source: the crate's directory; its package has one program, of the same name.
        release: optimised.

    Raises ConfigError without cargo, TransientError if something cannot be fetched or built.
    """
    profile = "release" if release else "debug"
    text = "\n".join(file.read_text() for file in (source / "Cargo.toml", source / "src" / "main.rs"))
    (name,) = (line.split('"')[1] for line in text.splitlines() if line.startswith("name = "))
    entry = f"hudi-rs-{name}-{profile}-{sha256(text.encode()).hexdigest()[:12]}"
    return cached(entry, lambda work: _built(source, name, profile, work)) / name


def _built(source: Path, name: str, profile: str, work: Path) -> Path:
    if shutil.which("cargo") is None:
        raise ConfigError("cargo is not here", do_next="install Rust: hudi-rs' writer is built from its source")
    shutil.copytree(source, work / "source")
    _ran([sys.executable, "-m", "pip", "install", "--quiet", "--target", str(work / "tools"), _PROTOC], work)
    protoc = work / "protoc"
    protoc.write_text(
        "#!/bin/sh\n"
        f'PYTHONPATH="{work}/tools" exec "{sys.executable}" -W ignore -m grpc_tools.protoc'
        f' -I"{work}/tools/grpc_tools/_proto" "$@"\n'
    )
    protoc.chmod(0o755)
    command = ["cargo", "build", "--target-dir", str(work / "target"), *(["--release"] if profile == "release" else [])]
    _ran(command, work / "source", PROTOC=str(protoc))
    done = work / "done"
    done.mkdir()
    (work / "target" / profile / name).rename(done / name)
    return done


def _ran(command: Sequence[str], place: Path, **environment: str) -> None:
    done = subprocess.run(
        command, cwd=place, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise TransientError(
            f"{' '.join(command[:3])} failed: {done.stderr.strip()[-500:]}", do_next="see whether it works here"
        )
