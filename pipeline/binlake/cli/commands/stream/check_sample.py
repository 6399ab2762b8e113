"""What ``binlake check`` says of the records themselves: a sample of each topic goes through the stream's decoder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from binlake.decode.changes import DecodedRecords, QuarantinedRecord, RawRecords, SourceTable, TableSchema
from binlake.decode.formats.reader import decode
from binlake.decode.messages.format_detection import detect_format, has_schema, is_avro
from binlake.decode.options import EventFormat
from binlake.rows.upsert.fanout import destination
from binlake.rows.upsert.target import kind_of
from binlake.settings import Settings
from binlake.stream.definitions.schemas import SchemaRegistry
from hudilake.errors import ConfigError

#: Reason of a refused record -> what to do about it.
_MENDS: Mapping[str, str] = {
    "no_schema": "name the connector's schema change topic (its topic.prefix) in kafka.ddl_topics, or let the messages "
    "carry schemas (value.converter.schemas.enable), or declare the columns in source.schemas",
    "unknown_message": "set source.format to what wrote the messages, or leave the topic out of kafka.topics",
    "unknown_column": "the schema change topic lacks a statement, or source.schemas a column",
    "missing_key": "let the connector write keys, or declare the key in source.schemas or tables.overrides",
}
_LOOK = "binlake run would put such records into the quarantine: correct the source or source.format"


@dataclass(frozen=True)
class SampleFinding:
    """What the sample of a topic comes to.

    Args:
        name: the table, or the topic if its records name none.
        detail: for people.
        refused: some of its records would go to the quarantine.
        error: all of them would, so its table would stay empty.
    """

    name: str
    detail: str
    refused: bool = False
    error: ConfigError | None = None


def sampled(settings: Settings, samples: Mapping[str, RawRecords]) -> Iterator[SampleFinding]:
    """Decode the first records of each topic as the stream would. Changes nothing.

    ``samples``: by topic, without the schema change topics. Raises TransientError, ConfigError where a schema change
    topic or the schema registry cannot be read.
    """
    registry = SchemaRegistry(settings)
    registry.refresh()
    options = registry.options(frozenset())
    for topic, records in sorted(samples.items()):
        decoded = decode(records, registry.schemas_for([topic]), options)
        if any(control.record for control in decoded.controls):  # Maxwell's definitions come among the rows
            registry.learn(control.record for control in decoded.controls)
            decoded = decode(records, registry.schemas_for([topic]), options)
        yield from _findings(settings, topic, records, decoded)


def _findings(settings: Settings, topic: str, records: RawRecords, decoded: DecodedRecords) -> Iterator[SampleFinding]:
    refused = [one for one in decoded.quarantined if one.source not in decoded.inferred]
    schemas = {batch.schema.source: batch.schema for batch in decoded.changes}
    for source in sorted(schemas.keys() | decoded.inferred.keys(), key=str):
        detail = "are left out by tables.include and exclude"
        if settings.selects(source):
            detail = _described(settings, records, source, schemas.get(source))
        yield SampleFinding(f"records of {source}", detail)
    yield from _refusals(topic, records, refused, all_of_them=not schemas and not decoded.inferred)


def _described(settings: Settings, records: RawRecords, source: SourceTable, schema: TableSchema | None) -> str:
    """Format, schema source, key, path and kind, in words."""
    value = next((value for value in records.values if value), b"")
    declared = EventFormat(settings.source.format)
    form = detect_format(value) if declared is EventFormat.AUTO else declared
    rules = settings.table_rules(destination(source, settings.tables))
    kind = kind_of(rules)
    key = ", ".join(schema.key) if schema is not None and schema.key else "none"
    mean = sum(records.sizes) // max(1, len(records.sizes))
    return (
        f"{form}, {mean} bytes each; schema from {_schema_source(settings, source, value)}; key {key}; "
        f"to {rules.path}, {kind.type}, index {kind.index}"
    )


def _schema_source(settings: Settings, source: SourceTable, value: bytes) -> str:
    if str(source) in settings.source.schemas:
        return "source.schemas"
    if settings.source.plain:
        return "source.plain"
    if is_avro(value):
        return "the schema registry"
    if has_schema(value):
        return "the messages"
    if settings.kafka.ddl_topics:
        return f"topic {', '.join(settings.kafka.ddl_topics)}"
    return "the messages"


def _refusals(
    topic: str, records: RawRecords, refused: list[QuarantinedRecord], *, all_of_them: bool
) -> Iterator[SampleFinding]:
    if not refused:
        return
    reasons = Counter(record.reason for record in refused)
    first = refused[0]
    words = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
    detail = f"{len(refused)} of {len(records)} sampled records would be quarantined ({words}): {first.detail}"
    mend = _MENDS.get(first.reason, _LOOK)
    error = ConfigError(detail, do_next=mend, topic=topic, offset=first.offset) if all_of_them else None
    yield SampleFinding(f"records of {first.source or topic}", detail, refused=True, error=error)
