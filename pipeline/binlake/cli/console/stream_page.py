"""The stream page: its run, its lag by partition, the stages of its batches, and the tables that do not go on.

What the last batches took comes from the stream itself (``monitoring.port``), which tells it from memory.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Sequence
from dataclasses import dataclass

from binlake.cli.console.lake_page import stream_head
from binlake.cli.console.page import Asked, Site, rendered
from binlake.cli.text import lag_amount
from binlake.settings import Settings
from binlake.source.binlog.topic import is_binlog
from binlake.stream.monitoring.progress import BatchTimes
from binlake.stream.monitoring.status import StreamStatus

_ANY = ("0.0.0.0", "::")  # noqa: S104 - compared with, not listened on
_TIMEOUT_S = 1.0
#: Partitions of one page, those with the greatest lag.
PARTITIONS = 200
#: Of a chart of a stage, and a batch across.
CHART_HEIGHT, _BAR = 36, 3.5


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """A partition: the next offset to read, and the records that wait, of a binlog (``in_bytes``) the bytes; None where
    Kafka, or the server, gave no answer."""

    topic: str
    partition: int
    position: int
    lag: int | None
    in_bytes: bool = False

    @property
    def words(self) -> str:
        """The lag, for people."""
        return "-" if self.lag is None else lag_amount(self.lag, in_bytes=self.in_bytes)


@dataclass(frozen=True, slots=True)
class StageChart:
    """A stage of the last batches, as a small chart of bars; all charts of a page have one scale.

    Args:
        name: of the stage; ``inner``: whether it is a part of the stage before.
        values: ms of each batch, the oldest first; None where the batch had no such stage.
        bars: height of each bar, 0 to ``CHART_HEIGHT``.
    """

    name: str
    inner: bool
    values: Sequence[float | None]
    bars: Sequence[float]

    @property
    def known(self) -> list[float]:
        """The values of the batches that had the stage."""
        return [value for value in self.values if value is not None]

    @property
    def last_ms(self) -> float | None:
        """Of the newest batch."""
        return self.values[-1]

    @property
    def mean_ms(self) -> float:
        """Of the batches that had it."""
        return sum(self.known) / len(self.known)

    @property
    def most_ms(self) -> float:
        """The longest."""
        return max(self.known)


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
        PartitionLag(topic, partition, position, lags.at(topic, partition) if known else None, is_binlog(topic))
        for topic, partition, position in stream.ledger.positions.places()
    ]
    return sorted(places, key=lambda one: (-(one.lag or 0), one.topic, one.partition))


def stage_charts(batches: Sequence[BatchTimes]) -> list[StageChart]:
    """A chart for each stage that a batch had, in their order."""
    names = {name for one in batches for name in one.stage_ms}
    ordered = [*(name for name in _STAGES if name in names), *sorted(names - _STAGES.keys())]
    top = max((ms for one in batches for ms in one.stage_ms.values()), default=0) or 1
    charts = []
    for name in ordered:
        values = [one.stage_ms.get(name) for one in batches]
        bars = [round(CHART_HEIGHT * (value or 0) / top, 1) for value in values]
        charts.append(StageChart(name, _STAGES.get(name, False), values, bars))
    return charts


def last_batches(settings: Settings) -> tuple[list[BatchTimes], str]:
    """The times of the last batches of a running stream, the newest at the end, or why they are not known."""
    wanted = settings.monitoring
    if not wanted.port:
        return [], "monitoring.port is not set, so the stream tells no stages"
    connection = http.client.HTTPConnection(
        "127.0.0.1" if wanted.host in _ANY else wanted.host, wanted.port, timeout=_TIMEOUT_S
    )
    try:
        connection.request("GET", "/batches.json")
        answer = connection.getresponse()
        if answer.status != 200:
            return [], f"{wanted.host}:{wanted.port}/batches.json answers {answer.status}: is its binlake older?"
        return [BatchTimes(**fields) for fields in json.loads(answer.read(8 << 20))], ""
    except (OSError, http.client.HTTPException, ValueError, TypeError) as error:
        return [], f"{wanted.host}:{wanted.port}/batches.json does not answer: {error}"
    finally:
        connection.close()


def stream_page(site: Site, asked: Asked) -> str:
    """The page. ``asked``: ``stream``. Raises ConfigError."""
    watch = site.watch(asked)
    view = watch.view
    running = view.state == "running"
    batches, why = last_batches(watch.settings) if running else ([], "the stream does not run")
    charts = stage_charts(batches)
    places = partitions(view.stream) if view.stream is not None else []
    return rendered(
        "stream.html",
        site,
        "stream",
        head=stream_head(view),
        view=view,
        charts=charts,
        batches=batches,
        top_ms=max((one.most_ms for one in charts), default=0),
        height=CHART_HEIGHT,
        bar=_BAR,
        why=why,
        places=places[:PARTITIONS],
        more=len(places[PARTITIONS:]),
        greatest=max((one.lag or 0 for one in places), default=0) or 1,
        conf=watch.conf,
    )
