"""The stream page: its run, its lag by partition, the stages of its batches, and the tables that do not go on.

Stages come from the stream's own metrics (``monitoring.port``), which a scrape gives from memory.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterable
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from binlake.cli.console.lake_page import stream_head
from binlake.cli.console.page import Asked, Site, rendered
from binlake.settings import Settings
from binlake.stream.monitoring.status import StreamStatus

_ANY = ("0.0.0.0", "::")  # noqa: S104 - compared with, not listened on
_TIMEOUT_S = 1.0
#: Partitions of one page, those with the greatest lag.
PARTITIONS = 200


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """A partition: the next offset to read, and the records that wait; None where Kafka gave no answer."""

    topic: str
    partition: int
    position: int
    lag: int | None


@dataclass(frozen=True, slots=True)
class StageTime:
    """A stage of the batches: its mean time in ms over ``batches``, and whether it is a part of the stage before."""

    name: str
    mean_ms: float
    batches: int
    inner: bool


#: In the order in which they follow one another; the parts of a stage after it.
_STAGES = {"plan": False, "tasks": False, "fetch": True, "decode": True, "route": True}
_STAGES |= {"commit": False, "tag": True, "write": True, "publish": True, "derive": False}


def partitions(stream: StreamStatus) -> list[PartitionLag]:
    """The partitions, the greatest lag first."""
    if stream.ledger is None:
        return []
    lags = stream.lags()
    known = stream.ends is not None
    places = [
        PartitionLag(topic, partition, position, lags.at(topic, partition) if known else None)
        for topic, partition, position in stream.ledger.positions.places()
    ]
    return sorted(places, key=lambda one: (-(one.lag or 0), one.topic, one.partition))


def stages(text: str) -> list[StageTime]:
    """The stages in the metrics of a stream. Raises ValueError for another text."""
    sums: dict[str, float] = {}
    counts: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        if family.name != "binlake_stage_seconds":
            continue
        for sample in family.samples:
            into = {"_sum": sums, "_count": counts}.get(sample.name.removeprefix(family.name))
            if into is not None:
                into[sample.labels["stage"]] = sample.value
    ordered: Iterable[str] = [*(name for name in _STAGES if name in sums), *(sums.keys() - _STAGES.keys())]
    return [
        StageTime(name, 1000 * sums[name] / counts[name], int(counts[name]), _STAGES.get(name, False))
        for name in ordered
        if counts.get(name)
    ]


def scraped(settings: Settings) -> tuple[list[StageTime], str]:
    """The stages of a running stream, or why they are not known."""
    wanted = settings.monitoring
    if not wanted.port:
        return [], "monitoring.port is not set, so the stream tells no stages"
    connection = http.client.HTTPConnection(
        "127.0.0.1" if wanted.host in _ANY else wanted.host, wanted.port, timeout=_TIMEOUT_S
    )
    try:
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        return stages(answer.read(8 << 20).decode()), ""
    except (OSError, http.client.HTTPException, ValueError) as error:
        return [], f"{wanted.host}:{wanted.port}/metrics does not answer: {error}"
    finally:
        connection.close()


def stream_page(site: Site, asked: Asked) -> str:
    """The page. ``asked``: ``stream``. Raises ConfigError."""
    watch = site.watch(asked)
    view = watch.view
    running = view.state == "running"
    known, why = scraped(watch.settings) if running else ([], "the stream does not run")
    places = partitions(view.stream) if view.stream is not None else []
    return rendered(
        "stream.html",
        site,
        "stream",
        head=stream_head(view),
        view=view,
        stages=known,
        longest=max((one.mean_ms for one in known), default=1) or 1,
        why=why,
        places=places[:PARTITIONS],
        more=len(places[PARTITIONS:]),
        greatest=max((one.lag or 0 for one in places), default=0) or 1,
        conf=watch.conf,
    )
