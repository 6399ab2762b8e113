"""Reads the Avro messages of one writer's schema by compiled code: envelopes as events, and keys to know them valid."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from binlake.decode.events import RowEvents
from binlake.decode.quarantine import Buffer
from binlake.decode.slices import Slices
from binlake.decode.templates.avro_cells import AvroCells
from binlake.decode.templates.avro_kernel import walk
from binlake.decode.templates.avro_program import DB, TABLE, AvroProgram
from binlake.decode.templates.envelope_head import AFTER, BEFORE, EnvelopeScan, events_of, row_bounds, sound_heads
from binlake.decode.templates.kernel import words_of
from binlake.decode.templates.reading import Bools, TemplatePass
from binlake.decode.templates.value_kernel import TEXT

_I64 = npt.NDArray[np.int64]
_JSON_NULL = b"null"

#: Writes an image of a message as JSON: by the index of the message, and the image's name.
SpellImage = Callable[[int, str], Buffer]


def scan_avro(messages: Sequence[bytes], head: int, program: AvroProgram) -> TemplatePass:
    """Read messages of one schema. ``known`` of the result says which records are valid, and are whole messages.

    ``head``: the bytes before each record.
    """
    slots = program.slots
    reading = TemplatePass.over(messages, slots, {}, held=slots, skipped=head, behind=program.symbols)
    first_symbol = int(reading.ends[-1]) if messages else 0
    matched = np.zeros(len(messages), dtype=bool)
    walk(
        reading.text, words_of(reading.joined), np.arange(len(messages)), reading.starts, reading.ends,
        program.steps, program.bounds[:-1] + first_symbol, np.diff(program.bounds),
        matched, reading.what, reading.value, reading.length, reading.marks,
    )  # fmt: skip
    reading.template[matched] = 0
    return reading


def scan_avro_envelopes(
    messages: Sequence[bytes], at: Sequence[int], head: int, program: AvroProgram, spell: SpellImage, *, traced: bool
) -> EnvelopeScan:
    """Read the envelopes of one schema that have a row.

    ``at``: the numbers that their events get. ``traced``: with server and GTID.
    """
    reading = scan_avro(messages, head, program)
    of_before = ~_there(reading, AFTER)
    good = reading.known & sound_heads(reading, of_before, traced=traced) & (_there(reading, BEFORE) | ~of_before)
    for slot in (DB, TABLE):
        good &= reading.what[slot] == TEXT
    rows = np.flatnonzero(good)
    numbers = np.asarray(at, dtype=np.int64)[rows]
    events = _events(reading, program, rows, numbers.tolist(), of_before, spell, traced=traced)
    return EnvelopeScan(rows, np.flatnonzero(~good), events)


def _there(reading: TemplatePass, image: int) -> Bools:
    return np.asarray(reading.marks[image] != reading.marks[image + 1])


def _events(
    reading: TemplatePass,
    program: AvroProgram,
    rows: _I64,
    at: list[int],
    of_before: Bools,
    spell: SpellImage,
    *,
    traced: bool,
) -> RowEvents:
    before = _there(reading, BEFORE)

    def row_image(row: int) -> Buffer:
        return spell(row, "before" if of_before[row] else "after")

    def before_image(row: int) -> Buffer:
        return spell(row, "before") if before[row] else _JSON_NULL

    cells = AvroCells(reading.cells(), program.columns)
    images = Slices(reading.joined, *row_bounds(reading, of_before), rows, cells, spelled=row_image)
    befores = Slices(reading.joined, reading.marks[BEFORE], reading.marks[BEFORE + 1], rows, spelled=before_image)
    names = reading.texts(DB, rows), reading.texts(TABLE, rows)
    return events_of(reading, rows, at, names, images, befores, traced=traced)
