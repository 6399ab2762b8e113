"""The packages of today's peers: what a writer needs in place of the bench's own lies before them on Python's path.

Each set is fetched once and kept beside the fetched jars; nothing of it is among the project's requirements.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from binlake.stream.spark.cache import cached
from hudilake.errors import TransientError

_ROOT = Path(__file__).parents[2]
#: The line of Spark 4 for which most peers resolve; its lock names the version.
_SPARK_4 = ("--require-hashes", "--no-build-isolation", "-r", str(_ROOT / "lines" / "spark-4.1.lock"))
#: Writer -> what pip installs for it.
REQUIREMENTS: Mapping[str, Sequence[str]] = {
    "delta-4": _SPARK_4,
    "iceberg": _SPARK_4,
    "deltalake": ("deltalake==1.6.6",),
    # with its own Rust: it wrote 20 times as fast as without, so that is its best setting
    "pypaimon": ("pypaimon==2.1.0", "pypaimon-rust==0.4.0"),
}


def environment_of(writer: str) -> dict[str, str]:
    """The variables of the environment that a writer's process needs besides those of the bench.

    Raises TransientError where its packages cannot be fetched, ConfigError where they cannot be kept.
    """
    wanted = REQUIREMENTS.get(writer)
    if wanted is None:
        return {}
    former = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": os.pathsep.join(filter(None, (str(_packages(wanted)), former)))}


def _packages(wanted: Sequence[str]) -> Path:
    """The directory that holds them."""
    listed = "\n".join(Path(one).read_text() if one.endswith(".lock") else one for one in wanted)
    name = f"bench-packages-{sha256(listed.encode()).hexdigest()[:12]}"
    return cached(name, lambda work: _installed(wanted, work / "packages"))


def _installed(wanted: Sequence[str], place: Path) -> Path:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(place), *wanted]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise TransientError(
            f"pip could not install {wanted[-1]}: {done.stderr.strip()[-500:]}",
            do_next="see whether this version is served here, or leave the writer out",
        )
    return place
