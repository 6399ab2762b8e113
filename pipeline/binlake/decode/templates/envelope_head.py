"""The head of Debezium's envelopes, whatever encodes them: the slots of its values, and what of it becomes events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from binlake.decode.events import RowEvents
from binlake.decode.slices import Slices
from binlake.decode.templates.reading import Bools, TemplatePass
from binlake.decode.templates.template import Path
from binlake.decode.templates.value_kernel import INT, NULL, TEXT

_I64 = npt.NDArray[np.int64]
MAX_ROW = (1 << 31) - 1
_LETTERS = np.array([chr(byte) for byte in range(128)], dtype=object)
#: The typed decoder refuses it; JSON's INT is never it, Avro's may be.
_LEAST_LONG = -(1 << 63)

#: Slots of the values; those of a format's own, and of the columns, follow.
OP, FILE, POS, ROW, TS_MS, SERVER_ID, GTID = range(7)
NEXT_SLOT = 7
HEAD: Mapping[Path, int] = {
    ("op",): OP,
    ("source", "file"): FILE,
    ("source", "pos"): POS,
    ("source", "row"): ROW,
    ("source", "ts_ms"): TS_MS,
    ("source", "server_id"): SERVER_ID,
    ("source", "gtid"): GTID,
}
#: Rows of the marks: the place where an image begins, and that where it ends; equal for none.
BEFORE, AFTER = 0, 2
IMAGES: Mapping[Path, int] = {("before",): BEFORE, ("after",): AFTER}


@dataclass(frozen=True)
class EnvelopeScan:
    """The result of reading a list of messages.

    Attributes:
        rows: indices of the messages read. rest: indices of all others. Both ascend.
        events: those read, in order; ``at`` has the numbers that the caller gave.
    """

    rows: _I64
    rest: _I64
    events: RowEvents


def sound_heads(reading: TemplatePass, of_before: Bools, *, traced: bool) -> Bools:
    """Which messages have a head that the typed decoder of JSON accepts, and an op that fits their images.

    Args:
        reading: of n messages.
        of_before: by message, whether its row is its before image.
        traced: with server and GTID.
    """
    what, value = reading.what, reading.value
    deletes = reading.text[np.minimum(value[OP], len(reading.text) - 1)] == ord("d")
    sound: Bools = (what[OP] == TEXT) & (reading.length[OP] == 1) & (deletes == of_before)
    sound &= (what[FILE] == TEXT) & (what[POS] == INT) & (value[POS] >= 0)
    sound &= reading.is_one_of(ROW, INT) & (value[ROW] >= 0) & (value[ROW] <= MAX_ROW)
    sound &= reading.is_one_of(TS_MS, INT) & (value[TS_MS] != _LEAST_LONG)
    if traced:
        sound &= reading.is_one_of(SERVER_ID, NULL, INT) & (value[SERVER_ID] != _LEAST_LONG)
        sound &= reading.is_one_of(GTID, NULL, TEXT)
    return sound


def row_bounds(reading: TemplatePass, of_before: Bools) -> tuple[_I64, _I64]:
    """Where the row of each message begins and ends. ``of_before`` as for ``sound_heads``."""
    marks = reading.marks
    return np.where(of_before, marks[BEFORE], marks[AFTER]), np.where(of_before, marks[BEFORE + 1], marks[AFTER + 1])


def events_of(
    reading: TemplatePass,
    rows: _I64,
    at: list[int],
    names: tuple[list[str | None], list[str | None]],
    images: Slices,
    befores: Slices,
    *,
    traced: bool,
) -> RowEvents:
    """The events of messages with a sound head.

    Args:
        reading: of all messages.
        rows: the messages.
        at: the numbers that their events get.
        names: their databases and their tables.
        images, befores: their rows, and their before images.
        traced: with server and GTID.
    """
    value = reading.value
    databases, tables = names
    return RowEvents(
        at=at,
        ops=_LETTERS[reading.text[value[OP, rows]]].tolist(),
        databases=databases,
        tables=tables,
        files=reading.texts(FILE, rows),
        positions=value[POS, rows].tolist(),
        rows=value[ROW, rows].tolist(),
        source_ms=value[TS_MS, rows].tolist(),
        servers=reading.numbers(SERVER_ID, rows) if traced else None,
        gtids=reading.texts(GTID, rows) if traced else None,
        images=images,
        befores=befores,
    )
