"""The metrics of one serving process."""

from __future__ import annotations

from collections.abc import Callable

from hive_metastore import ThriftHiveMetastore
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

#: Names of methods that become labels; a client may send any text as a method's name.
_METHODS = frozenset(name for name in dir(ThriftHiveMetastore.Iface) if not name.startswith("_"))
_UNKNOWN = "-"
_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1, 5, 30)


class _Connections(Collector):
    def __init__(self, count: Callable[[], int]) -> None:
        self._count = count

    def collect(self) -> list[GaugeMetricFamily]:
        return [GaugeMetricFamily("binlake_metastore_connections", "Clients of Thrift now.", self._count())]


class ServingMetrics:
    """Counts calls and their times."""

    def __init__(self) -> None:
        self.registry = r = CollectorRegistry()
        text = "Calls of Thrift by method and outcome: ok, refused, unsupported, failed, malformed."
        self._calls = Counter("binlake_metastore_calls", text, ["method", "outcome"], registry=r)
        text = "Time from the whole request to the whole answer."
        self._seconds = Histogram("binlake_metastore_call_seconds", text, ["method"], buckets=_SECONDS, registry=r)

        text = "Calls of Thrift that the router passed on, by backend and outcome."
        self._routed = Counter("binlake_metastore_routed_calls", text, ["backend", "outcome"], registry=r)

    def called(self, method: str, seconds: float, outcome: str) -> None:
        """Note a call."""
        name = method if method in _METHODS else _UNKNOWN
        self._calls.labels(name, outcome).inc()
        self._seconds.labels(name).observe(seconds)

    def routed(self, method: str, backend: str, seconds: float, outcome: str) -> None:
        """Note a call that the router answered from a backend."""
        self._routed.labels(backend, outcome).inc()

    def connections_of(self, count: Callable[[], int]) -> None:
        """Ask this for the number of clients when metrics are read."""
        self.registry.register(_Connections(count))

    def render(self) -> str:
        """The values of this moment in Prometheus' text format."""
        return generate_latest(self.registry).decode()
