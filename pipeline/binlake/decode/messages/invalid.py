"""Settles values that are not valid messages of a reader's format: Canal's and Maxwell's, which look alike."""

from __future__ import annotations

from binlake.decode.messages.chunk import Chunk
from binlake.decode.messages.format_detection import detect_format
from binlake.decode.options import Format
from binlake.decode.quarantine import Fault, Reason, json_fault

_NULL = b"null"


def reject_invalid(chunk: Chunk, at: int, value: bytes, format_: Format) -> bool:
    """Settle a record that is a tombstone, another reader's, or not JSON; False for any other record."""
    if value.strip() == _NULL:
        chunk.tombstones.append(at)
    elif chunk.options.format is Format.AUTO and detect_format(value) is not format_:
        chunk.foreign.append(at)
    elif (fault := json_fault(value, chunk.options.max_nesting)) is not None:
        chunk.refuse(at, fault)
    else:
        return False
    return True


def reject_misfit(chunk: Chunk, at: int, value: bytes, error: str) -> None:
    """Quarantine a misfit: a bad message if it names a type and a database, else no message of this format."""
    named = value.lstrip()[:1] == b"{" and b'"type"' in value and b'"database"' in value
    chunk.refuse(at, Fault(Reason.BAD_VALUE if named else Reason.UNKNOWN_MESSAGE, error))
