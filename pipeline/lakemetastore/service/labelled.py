"""Metrics of several processes as one text.

It stands alone: it knows the format of metrics alone, and nothing of the service.
"""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector


class _FixedMetrics(Collector):
    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> list[Metric]:
        return self._families


def with_label(label: str, texts: Mapping[str, str]) -> str:
    """Texts in Prometheus' format as one, each sample with ``label`` and the name of its text."""
    families: dict[str, Metric] = {}
    for name, text in texts.items():
        for family in text_string_to_metric_families(text):
            merged = families.setdefault(family.name, Metric(family.name, family.documentation, family.type))
            merged.samples += [s._replace(labels={label: name, **s.labels}) for s in family.samples]
    registry = CollectorRegistry()
    registry.register(_FixedMetrics(list(families.values())))
    return generate_latest(registry).decode()
