"""The broker that the tests talk to: a container where a Docker daemon answers, the same from jars otherwise."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from embedded.kafka import EmbeddedKafka
from tests.services.kafka_container import IMAGE, KafkaContainer, build_image, daemon_problem

# Said again at the end of the test run, so that nobody takes one path for the other.
choices: list[str] = []


@dataclass(frozen=True)
class Broker:
    """A running broker: where it answers, and what it runs in; a container's id."""

    bootstrap_servers: str
    kind: Literal["container", "jars"]
    container_id: str | None = None


@contextlib.contextmanager
def start_broker(data_dir: Path) -> Iterator[Broker]:
    """Run one broker for the length of the block.

    With ``BINLAKE_REQUIRE_DOCKER=1`` (CI) anything but a container is an error: RuntimeError.
    """
    problem = container_problem()
    if problem is None:
        choices.append(f"Kafka ran as the container {IMAGE}")
        with KafkaContainer() as container:
            yield Broker(container.bootstrap_servers, "container", container.get_wrapped_container().id)
        return
    choices.append(f"Kafka ran from its jars, not as a container: {problem}")
    with EmbeddedKafka(data_dir) as kafka:
        yield Broker(kafka.bootstrap_servers, "jars")


def container_problem() -> str | None:
    """Why the broker cannot be a container here; None when it can, and its image is up to date then."""
    problem = daemon_problem()
    if problem is None:
        try:
            build_image(sys.executable)
        except RuntimeError as error:
            problem = str(error)
    if problem and docker_required():
        raise RuntimeError(f"BINLAKE_REQUIRE_DOCKER is set, but {problem}")
    return problem


def docker_required() -> bool:
    """Whether the container path must run (CI) rather than give way to the jars."""
    return os.environ.get("BINLAKE_REQUIRE_DOCKER") == "1"
