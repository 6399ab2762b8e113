"""Reads the envelopes of a chunk that look alike by templates, and lists the messages that are left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import msgspec
import numpy as np
import numpy.typing as npt

from binlake.decode.events import RowEvents
from binlake.decode.quarantine import Buffer, json_fault
from binlake.decode.slices import Slices
from binlake.decode.templates.kernel import INT, NULL, TEXT
from binlake.decode.templates.reading import Bools, TemplatePass
from binlake.decode.templates.template import Layout, Path, Template, template_of

_I64 = npt.NDArray[np.int64]
MAX_ROW = (1 << 31) - 1
_LETTERS = np.array([chr(byte) for byte in range(128)], dtype=object)
_ANY = msgspec.json.Decoder().decode
_BAD = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)

#: Slots of the values in an event's head; those of the row's columns follow.
_OP, _FILE, _POS, _ROW, _TS_MS, _SERVER_ID, _GTID = range(7)
_FIRST_COLUMN = 7
_HEAD: Mapping[Path, int] = {
    ("op",): _OP,
    ("source", "file"): _FILE,
    ("source", "pos"): _POS,
    ("source", "row"): _ROW,
    ("source", "ts_ms"): _TS_MS,
    ("source", "server_id"): _SERVER_ID,
    ("source", "gtid"): _GTID,
}
_BEFORE, _AFTER = 0, 2
#: By the member that is the row of the event: ``before`` where there is no after image.
_LAYOUTS = {
    row: Layout(
        head=_HEAD,
        first_column=_FIRST_COLUMN,
        fixed=frozenset({("source", "db"), ("source", "table")}),
        marks={("before",): _BEFORE, ("after",): _AFTER},
        row=(row,),
        depth=2,
    )
    for row in ("before", "after")
}


@dataclass(frozen=True)
class TemplateScan:
    """The result of reading a list of messages.

    Attributes:
        rows: indices of the messages read. rest: indices of all others. Both ascend.
        events: those read, in order; ``at`` has the numbers given to ``scan_envelopes``.
    """

    rows: _I64
    rest: _I64
    events: RowEvents


def scan_envelopes(
    payloads: Sequence[Buffer], at: Sequence[int], *, traced: bool, max_nesting: int
) -> TemplateScan | None:
    """Read the envelopes that look alike; None if there are none.

    ``at``: the numbers that their events get. ``traced``: with server and GTID.
    """
    reading = TemplatePass.of(payloads, lambda message, slots: _learn(message, slots, max_nesting), _FIRST_COLUMN, {})
    if reading is None:
        return None
    good = reading.known & _sound(reading, traced)
    rows = np.flatnonzero(good)
    numbers = np.asarray(at, dtype=np.int64)[rows]
    return TemplateScan(rows, np.flatnonzero(~good), _events(reading, rows, numbers.tolist(), traced=traced))


def _learn(message: Buffer, slots: dict[str, int], max_nesting: int) -> Template | None:
    """The template of a Debezium envelope with at least one row image; None for any other message."""
    text = bytes(message)
    try:
        document = _ANY(text)
    except _BAD:
        return None
    row = _row_of(document)
    if row is None or json_fault(text, max_nesting) is not None:
        return None
    return template_of(text, document, _LAYOUTS[row], slots)


def _row_of(document: Any) -> str | None:  # noqa: ANN401 - JSON
    """The member that is the row of an envelope; None if the message is none with a row."""
    if not isinstance(document, dict) or not isinstance(document.get("source"), dict):
        return None
    source, images = document["source"], [document.get("before", 0), document.get("after", 0)]
    named = all(isinstance(source.get(name), str) for name in ("db", "table", "file"))
    if not named or not isinstance(document.get("op"), str) or "pos" not in source:
        return None
    if images == [None, None] or not all(image is None or isinstance(image, dict) for image in images):
        return None
    return "before" if images[1] is None else "after"


def _of_before(reading: TemplatePass) -> Bools:
    """By message, whether its row is its before image."""
    return np.array([t.layout.row == ("before",) for t in reading.templates])[reading.template]


def _sound(reading: TemplatePass, traced: bool) -> Bools:
    """Which messages have a head that the typed decoder accepts."""
    what, value = reading.what, reading.value
    deletes = reading.text[np.minimum(value[_OP], len(reading.text) - 1)] == ord("d")
    sound: Bools = (what[_OP] == TEXT) & (reading.length[_OP] == 1) & (deletes == _of_before(reading))
    sound &= (what[_FILE] == TEXT) & (what[_POS] == INT) & (value[_POS] >= 0)
    sound &= reading.is_one_of(_ROW, INT) & (value[_ROW] >= 0) & (value[_ROW] <= MAX_ROW)
    sound &= reading.is_one_of(_TS_MS, INT)
    if traced:
        sound &= reading.is_one_of(_SERVER_ID, NULL, INT) & reading.is_one_of(_GTID, NULL, TEXT)
    return sound


def _events(reading: TemplatePass, rows: _I64, at: list[int], *, traced: bool) -> RowEvents:
    value, marks, before = reading.value, reading.marks, _of_before(reading)
    first, last = (np.where(before, marks[_BEFORE + n], marks[_AFTER + n]) for n in (0, 1))
    return RowEvents(
        at=at,
        ops=_LETTERS[reading.text[value[_OP, rows]]].tolist(),
        databases=cast("list[str | None]", reading.by_template(lambda t: t.document["source"]["db"], rows)),
        tables=cast("list[str | None]", reading.by_template(lambda t: t.document["source"]["table"], rows)),
        files=reading.texts(_FILE, rows),
        positions=value[_POS, rows].tolist(),
        rows=value[_ROW, rows].tolist(),
        source_ms=value[_TS_MS, rows].tolist(),
        servers=reading.numbers(_SERVER_ID, rows) if traced else None,
        gtids=reading.texts(_GTID, rows) if traced else None,
        images=Slices(reading.joined, first, last, rows, reading.cells()),
        befores=Slices(reading.joined, marks[_BEFORE], marks[_BEFORE + 1], rows),
    )
