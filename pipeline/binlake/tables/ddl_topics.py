"""The topics of statements that a stream reads though its settings name none, as the lake has recorded them.

It stands alone: commands that ask no broker need them, and the stream, which finds them, is above this room.
"""

from __future__ import annotations

from collections.abc import Iterable

from binlake.decode.options import EventFormat
from binlake.settings import Settings
from binlake.tables.names import TableNames
from hudilake.storage import Storage


def with_heard_topics(settings: Settings, root: Storage) -> Settings:
    """The settings with the topics of statements that the stream has read; unchanged where they name topics, or need
    none. ``root``: of the lake. Raises StorageError, CorruptDataError."""
    if not may_find_topics(settings):
        return settings
    heard = TableNames.load(root, settings.name).heard
    return naming(settings, heard) if heard else settings


def may_find_topics(settings: Settings) -> bool:
    """Whether the settings leave it to binlake where the statements are. Other formats than Debezium's have no topic of
    their own for them, and declared columns need none."""
    theirs = settings.source.format in (EventFormat.AUTO, EventFormat.DEBEZIUM)
    return theirs and not settings.source.schemas and "ddl_topics" not in settings.kafka.model_fields_set


def naming(settings: Settings, topics: Iterable[str]) -> Settings:
    """The settings with these topics as ``kafka.ddl_topics``."""
    kafka = settings.kafka.model_copy(update={"ddl_topics": tuple(sorted(topics))})
    return settings.model_copy(update={"kafka": kafka})
