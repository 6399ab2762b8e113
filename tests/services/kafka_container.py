"""The test broker as a container, through testcontainers, from the image that ``docker/build_test_broker.sh`` makes."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import time
from typing import Self

# Its helper image would have to be pulled; the containers here are removed by their `with` block.
os.environ.setdefault("TESTCONTAINERS_RYUK_DISABLED", "true")

from docker.client import DockerClient
from docker.errors import DockerException
from testcontainers.core.container import DockerContainer

from binlake.stream.spark.cache import locked
from hudilake import clock
from tests.paths import ROOT

IMAGE = "binlake/kafka:3.9.1"
PORT = 9092
_STARTED = b"Kafka Server started"
_BUILD = ROOT / "docker" / "build_test_broker.sh"


def daemon_problem() -> str | None:
    """Why no Docker daemon can be used; None when one answers."""
    try:
        client = DockerClient.from_env(timeout=10)
        client.ping()
        client.close()
    except (DockerException, OSError) as error:
        return str(error)
    return None


def build_image(python: str) -> None:
    """Build the image; no work where it is up to date. Raises RuntimeError with the script's words.

    Of several test processes that want it at once, one builds it.
    """
    with locked("image"):
        done = subprocess.run(
            [str(_BUILD), IMAGE],
            env={**os.environ, "PYTHON": python},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"{_BUILD.name} failed: {done.stdout.strip()[-2000:]}")


class KafkaContainer(DockerContainer):
    """One KRaft broker. Its port is mapped to loopback, unless TESTCONTAINERS_HOST_OVERRIDE says where Docker is."""

    def __init__(self, image: str = IMAGE, *, start_timeout_s: float = 120) -> None:
        super().__init__(image)
        self._timeout_s = start_timeout_s
        over_tcp = os.environ.get("DOCKER_HOST", "unix").startswith("tcp")
        self._remote = over_tcp or "TESTCONTAINERS_HOST_OVERRIDE" in os.environ
        self.bootstrap_servers = ""
        if self._remote:
            self.with_exposed_ports(PORT)
        else:
            # docker-py takes an address too, and testcontainers passes it through, though its types say otherwise.
            self.ports[f"{PORT}/tcp"] = ("127.0.0.1", None)  # type: ignore[assignment]

    def start(self) -> Self:
        """Start, tell the broker its mapped address, and wait until it serves."""
        super().start()
        host = self.get_container_host_ip() if self._remote else "127.0.0.1"
        self.bootstrap_servers = f"{host}:{self.get_exposed_port(PORT)}"
        try:
            self.get_wrapped_container().put_archive("/", _tar("advertised", self.bootstrap_servers.encode()))
            self._wait()
        except BaseException:
            self.stop()
            raise
        return self

    def _wait(self) -> None:
        """Wait for the broker's own word: the mapped port accepts long before the broker listens."""
        deadline = clock.monotonic_s() + self._timeout_s
        container = self.get_wrapped_container()
        while _STARTED not in (said := container.logs()):
            container.reload()
            if container.status != "running" or clock.monotonic_s() > deadline:
                raise RuntimeError(
                    f"the Kafka container is {container.status}: {said.decode(errors='replace')[-2000:]}"
                )
            time.sleep(0.1)


def _tar(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()
