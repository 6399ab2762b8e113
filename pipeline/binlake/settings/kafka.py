"""The section ``kafka``: which topics of which brokers a stream reads."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, ValidationInfo, field_validator

from binlake.settings.types import Regex
from hudilake.validation import Section, Text, mistake
from lakemetastore.settings.options import Options, plain

#: librdkafka properties that exactly-once depends on, so users cannot set them.
OWNED_PROPERTIES = frozenset(
    {
        "bootstrap.servers",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.partition.eof",
        "auto.offset.reset",
        "isolation.level",
    }
)

#: A broker as both clients take it: librdkafka knows these protocols alone, and Spark's asks for the port.
_BROKER = re.compile(
    r"(?:(?:plaintext|ssl|sasl_plaintext|sasl_ssl)://)?(?:\[[0-9a-f:.%]+\]|[\w.-]+):(?P<port>\d{1,5})", re.IGNORECASE
)


class KafkaSettings(Section):
    """What to read."""

    bootstrap_servers: Text
    """Comma-separated ``host:port`` of some brokers."""
    topics: tuple[Text, ...] = ()
    """Topics by name. Exactly one of ``topics`` and ``topic_pattern``."""
    topic_pattern: Regex | None = None
    """Topics by a regular expression that must match the whole name."""
    ddl_topics: tuple[Text, ...] = ()
    """Debezium's schema change topics (the ``topic.prefix`` of each connector). Needed where messages carry no schema;
    where they do, needed to tell BIGINT UNSIGNED from BIGINT. Left out, a new stream finds them by the names of its
    topics, ``<topic.prefix>.<database>.<table>``; ``[]`` is none."""
    transaction_topic: Text | None = None
    """Debezium's topic of BEGIN and END records (``<topic.prefix>.transaction``). ``batch.transaction_consistent``
    needs it."""
    fetch: Literal["direct", "spark"] = "direct"
    """``direct``: tasks fetch their offset ranges themselves; ``spark``: Spark's Kafka source carries the records
    (Spark 3.5 alone)."""
    start: Literal["earliest", "latest"] = "earliest"
    """Where to begin in partitions that neither a table nor the ledger knows."""
    wait_seconds: float = Field(default=300.0, ge=0)
    """How long ``binlake run`` waits, at the first start of a stream, for topics that Kafka does not have yet: a
    connector makes them with its first records. Then it ends with an error. With ``--once`` it never waits."""
    properties: Options = Field(default_factory=dict)
    """Further client properties by librdkafka's names (``security.protocol``, ``sasl.password``...)."""

    @field_validator("bootstrap_servers")
    @classmethod
    def _each_with_its_port(cls, servers: str) -> str:
        several = servers.split(",")
        for number, one in enumerate(several, 1):
            parts = _BROKER.fullmatch(one.strip())
            if parts is None or int(parts["port"]) not in range(1, 1 << 16):
                raise mistake(f"broker {number} of {len(several)} is not host:port; write commas between several")
        return servers

    @field_validator("topic_pattern")
    @classmethod
    def _one_way_of_naming(cls, pattern: str | None, info: ValidationInfo) -> str | None:
        if "topics" in info.data and bool(info.data["topics"]) == bool(pattern):
            raise mistake("exactly one of topics and topic_pattern must be given")
        return pattern

    @field_validator("properties")
    @classmethod
    def _not_ours(cls, properties: Options) -> Options:
        if owned := sorted(OWNED_PROPERTIES & set(properties)):
            raise mistake(f"{', '.join(owned)} may not be set here: binlake sets it itself")
        return properties

    @property
    def read_topics(self) -> tuple[str, ...]:
        """``topics`` and the transaction topic; empty if a pattern is set."""
        extra = (self.transaction_topic,) if self.transaction_topic else ()
        return tuple(dict.fromkeys((*self.topics, *extra))) if self.topics else ()

    @property
    def read_pattern(self) -> str | None:
        """``topic_pattern`` extended by the transaction topic; None if topics are listed."""
        if self.topic_pattern is None or self.transaction_topic is None:
            return self.topic_pattern
        return f"(?:{self.topic_pattern})|(?:{re.escape(self.transaction_topic)})"

    @staticmethod
    def absent() -> KafkaSettings:
        """Of a stream that reads no Kafka: there are no brokers and no topics."""
        return KafkaSettings.model_construct(bootstrap_servers="", topics=(), ddl_topics=())

    def client_properties(self) -> dict[str, str]:
        """librdkafka's configuration in clear text: the brokers and the user's properties."""
        return {"bootstrap.servers": self.bootstrap_servers, **plain(self.properties)}
