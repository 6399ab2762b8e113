"""What a format of change events does not carry, so that rows stay in the lake that the source has removed.

The page on formats has the whole list; here is what removes rows.
"""

from __future__ import annotations

import msgspec

from binlake.decode.messages.format_detection import format_of, is_avro
from binlake.decode.messages.frames import open_loose
from binlake.decode.options import Format
from binlake.decode.quarantine import Buffer

_CHANGES = frozenset({Format.AUTO, Format.DEBEZIUM, Format.MAXWELL})
_BAD = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
_ANY = msgspec.json.Decoder().decode
_STAY = "rows that they remove stay, and binlake verify finds them"
_MAXWELL = f"TRUNCATE, and without output_ddl any DDL, does not come in Maxwell's format: {_STAY}"


def not_carried(declared: Format, message: Buffer | None, *, ddl_topics: bool) -> str | None:
    """What does not come with the change events of a table, in words; None if all of it comes or that is not known.

    Args:
        declared: the format as the settings have it.
        message: one of its messages, if there is one at hand.
        ddl_topics: whether the stream reads a topic with DDL.
    """
    if declared is Format.MAXWELL:
        return _MAXWELL
    if declared not in _CHANGES or message is None or is_avro(message):
        return None
    try:
        document = _ANY(open_loose(bytes(message))[0])
    except _BAD:
        return None
    if not isinstance(document, dict):
        return None
    if declared is Format.AUTO and format_of(document) is Format.MAXWELL:
        return _MAXWELL
    if format_of(document) is not Format.DEBEZIUM or "op" in document or "status" in document:
        return None  # an envelope, a record of a transaction topic or another format
    ddl = "" if ddl_topics else " and DDL (kafka.ddl_topics is empty)"
    return f"TRUNCATE{ddl} does not come in the flat form: {_STAY}"
