"""What Kafka has for a stream: topics of tables by their prefix, how their messages look, the schema change topic."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from binlake.cli.commands.stream.check_kafka import KafkaProbe
from binlake.decode.changes import RawRecords
from binlake.decode.messages.format_detection import detect_format, has_schema, has_statement
from binlake.decode.options import EventFormat
from binlake.settings import KafkaSettings
from hudilake.errors import ConfigError

#: Topics of Kafka, Connect and Debezium itself that have no rows of tables.
_OWN = re.compile(r"__.*|.*(connect|debezium)[-_.]?(configs?|offsets?|status(es)?)|.*\.transaction|.*heartbeat.*")


@dataclass
class TopicGroup:
    """Topics of one connector or one database, which make a stream.

    Args:
        prefix: what the topics' names begin with; "" for topics whose messages name their table (Canal, Maxwell).
        tables: topic -> number of its partitions.
        format: of the sampled messages.
        schemas: whether messages carry their schema; None if none was sampled.
        schema_changes: the schema change topic, if there is one.
        transactions: the topic of BEGIN and END records, if there is one.
        empty: topics without a record.
        keyless: topics whose first message has no key.
        bytes_each: the mean size of a message's value in bytes.
    """

    prefix: str
    tables: dict[str, int] = field(default_factory=dict)
    format: EventFormat = EventFormat.DEBEZIUM
    schemas: bool | None = None
    schema_changes: str | None = None
    transactions: str | None = None
    empty: list[str] = field(default_factory=list)
    keyless: list[str] = field(default_factory=list)
    bytes_each: int = 0

    @property
    def pattern(self) -> str | None:
        """The regular expression of its topics; None where they are named one by one."""
        if not self.prefix:
            return None
        databases = sorted({topic.removeprefix(f"{self.prefix}.").split(".")[0] for topic in self.tables})
        middle = re.escape(databases[0]) if len(databases) == 1 else f"({'|'.join(map(re.escape, databases))})"
        return f"{re.escape(self.prefix)}\\.{middle}\\..+"


def survey(kafka: KafkaSettings, timeout_s: float) -> list[TopicGroup]:
    """The groups of topics that could be streams, the largest first.

    ``kafka``: its pattern takes all topics to look at. Raises ConfigError, TransientError if Kafka cannot be asked.
    """
    probe = KafkaProbe(kafka, timeout_s)
    try:
        for _, step in probe.steps():
            step()
    finally:
        probe.close()
    return groups_of(probe.topics, probe.samples)


def groups_of(topics: Mapping[str, int], samples: Mapping[str, RawRecords]) -> list[TopicGroup]:
    """Group topics by prefix.

    Args:
        topics: name -> number of partitions.
        samples: the first records of each topic that has some.
    """
    groups: dict[str, TopicGroup] = {}
    forms = {topic: _form(_value(samples[topic])) for topic in samples}
    for topic, partitions in sorted(topics.items()):
        if _OWN.fullmatch(topic) or (topic in samples and has_statement(_value(samples[topic]))):
            continue
        form = forms.get(topic)
        if form is None and topic.count(".") < 2:
            continue  # neither a message nor a name that says whose it is
        prefix = topic.rsplit(".", 2)[0] if topic.count(".") >= 2 else ""
        group = groups.setdefault(prefix, TopicGroup(prefix))
        group.tables[topic] = partitions
        if form is None:
            group.empty.append(topic)
    for group in groups.values():
        _describe(group, topics, {topic: samples[topic] for topic in group.tables if topic in samples})
    return sorted(groups.values(), key=lambda group: -len(group.tables))


def _describe(group: TopicGroup, topics: Iterable[str], samples: Mapping[str, RawRecords]) -> None:
    names = set(topics)
    counts: defaultdict[EventFormat, int] = defaultdict(int)
    sizes: list[int] = []
    for topic, records in samples.items():
        value = _value(records)
        counts[detect_format(value)] += 1
        sizes += records.sizes
        group.schemas = (group.schemas is not False) and has_schema(value)
        if next(iter(records.keys), None) is None:
            group.keyless.append(topic)
    if counts:
        group.format = max(counts, key=lambda form: counts[form])
    group.bytes_each = sum(sizes) // max(1, len(sizes))
    group.schema_changes = group.prefix if group.prefix in names else None
    transactions = f"{group.prefix}.transaction"
    group.transactions = transactions if transactions in names else None


def _value(records: RawRecords) -> bytes:
    return next((value for value in records.values if value), b"")


def _form(value: bytes) -> EventFormat | None:
    return detect_format(value) if value else None


def choose(groups: list[TopicGroup], prefix: str | None) -> TopicGroup:
    """The group that a stream is made for. Raises ConfigError if there is none, or several and no prefix says which."""
    chosen = [group for group in groups if prefix is None or group.prefix == prefix]
    if len(chosen) == 1 or (chosen and prefix is not None):
        return chosen[0]
    known = ", ".join(_names(groups)) or "none"
    if not chosen:
        raise ConfigError(
            "Kafka has no topics of tables" + (f" with the prefix {prefix}" if prefix is not None else ""),
            do_next="start the connector, or give another --prefix",
            prefixes=known,
        )
    raise ConfigError("Kafka has topics of several connectors", do_next="give one of them by --prefix", prefixes=known)


def _names(groups: Iterable[TopicGroup]) -> Iterator[str]:
    for group in groups:
        yield group.prefix or "(messages that name their table)"
