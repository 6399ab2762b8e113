"""The settings of topics whose records are no change events, as the decoder takes them."""

from __future__ import annotations

from pathlib import Path

from binlake.decode.changes import SourceTable
from binlake.decode.formats.plain_avro_schema import plain_schema
from binlake.decode.options import PlainTopics
from binlake.decode.schemas.schemas import DeclaredTable, declared_table
from binlake.settings import Settings
from binlake.settings.plain import PlainTopicsSettings
from binlake.settings.plain_tables import no_delete
from hudilake.errors import ConfigError


def plain_topics(settings: Settings) -> tuple[PlainTopics, ...]:
    """The topics of ``source.plain``, with the schemas of their files. Raises ConfigError if a file cannot be read."""
    return tuple(_topics(entry, settings) for entry in settings.source.plain)


def declared_plain_tables(settings: Settings) -> dict[SourceTable, DeclaredTable]:
    """The tables of ``source.plain`` whose columns are declared. Raises UnsupportedError for an unknown type."""
    return {
        SourceTable(*entry.source): declared_table(entry.declared, entry.key)
        for entry in settings.source.plain
        if entry.declared is not None
    }


def _topics(entry: PlainTopicsSettings, settings: Settings) -> PlainTopics:
    rules = settings.plain_rules(entry)
    return PlainTopics(
        patterns=entry.topics,
        table=SourceTable(*entry.source),
        key=entry.key,
        metadata=tuple(entry.metadata_columns.items()),
        inferred=settings.source.format == "json" and entry.declared is None,
        no_delete=None if rules is None else no_delete(entry, rules),
        avro_schema=_schema(entry.schema_file),
    )


def _schema(file: str | None) -> str | None:
    if file is None:
        return None
    try:
        text = Path(file).read_text(encoding="utf-8")
        plain_schema(text)
        return text
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"the Avro schema cannot be read: {error}", do_next="correct schema_file in source.plain", path=file
        ) from error
