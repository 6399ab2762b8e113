"""The files that ``binlake init`` writes: settings with a reason for each choice, and a Debezium connector."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

import yaml

from binlake.cli.commands.setup.server import SourceColumns
from binlake.cli.commands.setup.topics import TopicGroup
from binlake.decode.options import EventFormat
from hudilake.wording import counted

#: A bucket holds best 100 MB to 1 GB of rows as Parquet, which is about a third of what InnoDB takes (estimated).
_BUCKET_BYTES, _SHRINKS = 500_000_000, 3
#: Buckets of a table where nothing is known of its size: up to some GB.
_USUAL_BUCKETS, _MOST_BUCKETS = 4, 128


@dataclass(frozen=True)
class Proposal:
    """What the settings are made of.

    Args:
        name: of the stream.
        lake: URI of the lake.
        servers: Kafka's bootstrap servers; "" for a stream that reads the database's binlog itself.
        properties: of Kafka's clients; secrets are references.
        group: the topics; None before there are any: then the database's names make the pattern.
        prefix: of the topics, where there are none yet.
        database: to stream, where there are no topics yet; None for all.
        host, port, user: of the database; host None if it was not given.
        tables: of the database.
    """

    name: str
    lake: str
    servers: str
    properties: dict[str, str] = field(default_factory=dict)
    group: TopicGroup | None = None
    prefix: str = ""
    database: str | None = None
    host: str | None = None
    port: int = 3306
    user: str | None = None
    tables: tuple[SourceColumns, ...] = ()

    @property
    def buckets(self) -> int:
        """The default number of buckets: enough for the largest table whose size is known."""
        largest = max((table.bytes for table in self.tables), default=0)
        wanted = -(-largest // (_BUCKET_BYTES * _SHRINKS))
        return min(_MOST_BUCKETS, max(_USUAL_BUCKETS, wanted))


def settings_text(one: Proposal) -> str:
    """The settings as YAML with comments, which ``binlake check`` reads."""
    lines = [
        "# A stream for binlake. Every setting: binlake config-schema, or docs/configuration.md.",
        "",
        "# Every commit keeps this name, so do not change it later.",
        f"name: {_text(one.name)}",
        "",
        "lake:",
        "  # Root of all tables: a directory, or s3://, gs://, az://, hdfs://. One directory a table lies below it.",
        f"  uri: {_text(one.lake)}",
        "",
        *(_kafka(one) if one.servers else ()),
        *_source(one),
        "tables:",
        *([] if one.servers or not one.database else _included(one.database)),
        "  defaults:",
        *_buckets(one),
    ]
    return "\n".join(lines) + "\n"


def _kafka(one: Proposal) -> list[str]:
    return [
        "kafka:",
        f"  bootstrap_servers: {_text(one.servers)}",
        *_topics(one),
        *_properties(one.properties),
        "",
    ]


def _included(database: str) -> list[str]:
    return ["  # The binlog has the changes of all databases.", f"  include: [{_text(database + '.*')}]"]


def _topics(one: Proposal) -> list[str]:
    group = one.group
    if group is None:
        middle = re.escape(one.database) if one.database else "[^.]+"
        pattern = "\\.".join((re.escape(one.prefix), middle, ".+"))
        return [
            "  # Debezium names a topic <prefix>.<database>.<table>; new tables are taken in by themselves.",
            f"  topic_pattern: {_text(pattern)}",
            "  # Debezium's topic of schema changes has the prefix as its name. It tells the columns' types.",
            f"  ddl_topics: [{_text(one.prefix)}]",
        ]
    lines = []
    if group.pattern is None:
        lines += ["  # These messages name their table.", "  topics:", *(f"    - {_text(t)}" for t in group.tables)]
    else:
        count = f"{counted(len(group.tables), 'topic', 'has', 'have')} this form now"
        lines.append(f"  # {count}; those of new tables are taken in by themselves.")
        lines.append(f"  topic_pattern: {_text(group.pattern)}")
    if group.schema_changes is not None:
        why = "they tell BIGINT UNSIGNED from BIGINT, and statements reach the lake at once"
        if group.schemas is False:
            why = "the messages carry no schema, so the columns' types come from there"
        lines += [f"  # Debezium's topic of schema changes: {why}.", f"  ddl_topics: [{_text(group.schema_changes)}]"]
    elif group.schemas is False and group.format is EventFormat.DEBEZIUM:
        lines += [
            "  # The messages carry no schema, and Kafka has no topic of schema changes. Set",
            "  # include.schema.changes=true on the connector and name its topic.prefix here, or declare columns in",
            "  # source.schemas.",
            "  # ddl_topics: [...]",
        ]
    if group.transactions is not None:
        lines += [
            "  # With it, batch.transaction_consistent can let a batch end between two transactions of the source.",
            f"  # transaction_topic: {_text(group.transactions)}",
        ]
    return lines


def _properties(properties: dict[str, str]) -> list[str]:
    if not properties:
        return []
    return ["  properties:", *(f"    {name}: {_text(value)}" for name, value in sorted(properties.items()))]


def _source(one: Proposal) -> list[str]:
    lines: list[str] = []
    form = one.group.format if one.group is not None else EventFormat.DEBEZIUM
    if not one.servers:
        lines += [
            "  # The stream reads the binlog of this server itself, as a replica does: no Kafka, no Debezium.",
            "  mysql:",
            "    # Where a new stream begins: now, earliest (all that the binlog still has), or FILE:POSITION.",
            "    start: now",
        ]
    if form is not EventFormat.DEBEZIUM:
        lines.append("  # The sampled messages are of this format; auto recognises each message by itself.")
        lines.append(f"  format: {form}")
    if form is EventFormat.DEBEZIUM_AVRO:
        lines += ["  registry:", "    url: http://127.0.0.1:8081   # of the schema registry: correct it"]
    if one.host is not None:
        lines += [
            "  # binlake load, binlake verify and binlake table resync read the source itself."
            if one.servers
            else "  # The user needs SELECT, REPLICATION SLAVE and REPLICATION CLIENT on *.*.",
            "  database:",
            f"    host: {_text(one.host)}",
            f"    port: {one.port}",
            f"    user: {_text(one.user or 'binlake')}",
            "    password: ${env:BINLAKE_MYSQL_PASSWORD}",
        ]
    return ["source:", *lines, ""] if lines else []


def _buckets(one: Proposal) -> list[str]:
    keyless = [f"{t.database}.{t.table}" for t in one.tables if not t.keyed]
    lines = [
        "    # File groups of a partition; a row's key decides its bucket, which holds best 100 MB to 1 GB. The number",
        "    # can be changed later: binlake rebucket.",
        f"    buckets: {one.buckets}",
    ]
    if keyless:
        lines += [
            f"  # Without a primary key, all columns together are the key: {', '.join(keyless[:5])}",
            "  # overrides:",
            f"  #   - {{match: {keyless[0]}, key: [a_column]}}",
        ]
    return lines


def _text(value: str) -> str:
    """A YAML scalar of a text on one line."""
    style = "'" if set(value) & set("\\${}[]:#'\" ") else None
    return yaml.safe_dump(value, default_style=style, width=4096, allow_unicode=True).splitlines()[0]


def connector_text(one: Proposal, *, mariadb: bool) -> str:
    """A Debezium connector for Kafka Connect as JSON: ``curl -X PUT .../connectors/NAME/config`` takes it.

    ``mariadb``: which of the two connectors the server needs.
    """
    kind = "mariadb.MariaDb" if mariadb else "mysql.MySql"
    prefix = one.group.prefix if one.group is not None and one.group.prefix else one.prefix
    config = {
        "connector.class": f"io.debezium.connector.{kind}Connector",
        "tasks.max": "1",
        "topic.prefix": prefix,
        "database.hostname": one.host or "127.0.0.1",
        "database.port": str(one.port),
        "database.user": one.user or "debezium",
        "database.password": "${env:BINLAKE_MYSQL_PASSWORD}",
        "database.server.id": "5401",
        "schema.history.internal.kafka.bootstrap.servers": one.servers,
        "schema.history.internal.kafka.topic": f"{prefix}_history",
        # statements reach the lake through the topic named like the prefix
        "include.schema.changes": "true",
        # TRUNCATE is left out by default
        "skipped.operations": "none",
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "key.converter.schemas.enable": "false",
        # schemas in each message make it ten times as large; the schema change topic tells the same
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        # otherwise a NULL in a column with a default arrives as that default
        "value.converter.replace.null.with.default": "false",
        # otherwise DECIMAL arrives as bytes that only the schema explains; binlake reads both exactly
        "decimal.handling.mode": "precise",
        "time.precision.mode": "adaptive_time_microseconds",
    }
    if one.database is not None:
        config["database.include.list"] = one.database
    return json.dumps(config, indent=2) + "\n"


#: Option of the connector -> why it is as it is; JSON has no comments, so the command prints them.
CONNECTOR_REASONS = {
    "include.schema.changes": "statements reach the lake by the topic that is named like the prefix",
    "skipped.operations": "none: Debezium leaves TRUNCATE out otherwise, and its rows would stay",
    "value.converter.schemas.enable": "false: a schema in each message makes it several times as large",
    "value.converter.replace.null.with.default": "false: a NULL would arrive as the column's default otherwise",
}
