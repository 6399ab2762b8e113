"""Metrics as Prometheus reads them: counters, gauges and histograms, and their text form (version 0.0.4)."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Labels = tuple[str, ...]


@dataclass
class _Histogram:
    counts: list[int]
    total: float = 0.0


@dataclass
class Metric:
    """One metric: a name, what it says, and a value for every set of label values. Made by ``Metrics``.

    ``bounds``: upper bounds of a histogram's buckets; empty for the others.
    """

    name: str
    help: str
    kind: str
    labels: Labels
    bounds: tuple[float, ...] = ()
    _values: dict[Labels, float] = field(default_factory=dict)
    _histograms: dict[Labels, _Histogram] = field(default_factory=dict)

    def add(self, amount: float, *labels: str) -> None:
        """Count further."""
        self._values[labels] = self._values.get(labels, 0) + amount

    def set(self, value: float, *labels: str) -> None:
        """Put a gauge where it is."""
        self._values[labels] = value

    def forget(self, *labels: str) -> None:
        """Drop a value that means nothing any more."""
        self._values.pop(labels, None)

    def observe(self, value: float, *labels: str) -> None:
        """Take a value into a histogram."""
        found = self._histograms.setdefault(labels, _Histogram([0] * (len(self.bounds) + 1)))
        found.counts[bisect_left(self.bounds, value)] += 1
        found.total += value

    def lines(self) -> Iterator[str]:
        """Its text."""
        yield f"# HELP {self.name} {_escaped(self.help, quotes=False)}"
        yield f"# TYPE {self.name} {self.kind}"
        for labels, value in self._values.items():
            yield _line(self.name, zip(self.labels, labels, strict=True), value)
        for labels, found in self._histograms.items():
            named = list(zip(self.labels, labels, strict=True))
            reached = 0
            for bound, count in zip([*map(_number, self.bounds), "+Inf"], found.counts, strict=True):
                reached += count
                yield _line(f"{self.name}_bucket", [*named, ("le", bound)], reached)
            yield _line(f"{self.name}_sum", named, found.total)
            yield _line(f"{self.name}_count", named, reached)


class Metrics:
    """All metrics of a process. Hold ``lock`` while values change that belong together."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._metrics: dict[str, Metric] = {}

    def counter(self, name: str, text: str, *labels: str) -> Metric:
        """A value that only grows; its name ends with ``_total``."""
        return self._made(Metric(name, text, "counter", labels))

    def gauge(self, name: str, text: str, *labels: str) -> Metric:
        """A value that goes up and down."""
        return self._made(Metric(name, text, "gauge", labels))

    def histogram(self, name: str, text: str, bounds: Sequence[float], *labels: str) -> Metric:
        """How values are distributed over buckets."""
        return self._made(Metric(name, text, "histogram", labels, tuple(bounds)))

    def names(self) -> Mapping[str, str]:
        """Name -> kind."""
        return {metric.name: metric.kind for metric in self._metrics.values()}

    def render(self) -> str:
        """The text of all."""
        with self.lock:
            return "".join(f"{line}\n" for metric in self._metrics.values() for line in metric.lines())

    def _made(self, metric: Metric) -> Metric:
        self._metrics[metric.name] = metric
        return metric


def _line(name: str, labels: Iterable[tuple[str, str]], value: float) -> str:
    text = ",".join(f'{label}="{_escaped(said)}"' for label, said in labels)
    return f"{name}{{{text}}} {_number(value)}" if text else f"{name} {_number(value)}"


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def _escaped(text: str, *, quotes: bool = True) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quotes else text
