"""Reads the envelopes of a chunk that look alike by templates, and lists the messages that are left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import msgspec
import numpy as np
import numpy.typing as npt

from binlake.decode.events import RowEvents
from binlake.decode.quarantine import Buffer, json_fault
from binlake.decode.slices import Slices
from binlake.decode.templates.envelope_head import (
    BEFORE,
    HEAD,
    IMAGES,
    NEXT_SLOT,
    EnvelopeScan,
    events_of,
    row_bounds,
    sound_heads,
)
from binlake.decode.templates.reading import Bools, TemplatePass
from binlake.decode.templates.template import Layout, Template, template_of

_I64 = npt.NDArray[np.int64]
_ANY = msgspec.json.Decoder().decode
_BAD = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)

#: By the member that is the row of the event: ``before`` where there is no after image.
_LAYOUTS = {
    row: Layout(
        head=HEAD,
        first_column=NEXT_SLOT,
        fixed=frozenset({("source", "db"), ("source", "table")}),
        marks=IMAGES,
        row=(row,),
        depth=2,
    )
    for row in ("before", "after")
}


_Form: TypeAlias = tuple[object, ...]
_MOST_KEPT = 1_024
#: By the form of their messages and the slots before them, the templates of former chunks with the slots behind them.
_kept: dict[_Form, tuple[Template, dict[str, int]]] = {}


def scan_envelopes(
    payloads: Sequence[Buffer], at: Sequence[int], *, traced: bool, max_nesting: int
) -> EnvelopeScan | None:
    """Read the envelopes that look alike; None if there are none.

    ``at``: the numbers that their events get. ``traced``: with server and GTID.
    """
    reading = TemplatePass.of(payloads, _Teacher(max_nesting).learn, NEXT_SLOT, {})
    if reading is None:
        return None
    of_before = _of_before(reading)
    good = reading.known & sound_heads(reading, of_before, traced=traced)
    rows = np.flatnonzero(good)
    numbers = np.asarray(at, dtype=np.int64)[rows]
    events = _events(reading, rows, numbers.tolist(), of_before, traced=traced)
    return EnvelopeScan(rows, np.flatnonzero(~good), events)


@dataclass
class _Teacher:
    """Gives the templates of one chunk. Those of former chunks are kept by what their messages look like, for a small
    batch is read in the time that it takes to learn a template: one that does not read its message is learned anew.

    ``_given``: the templates of former chunks that it has given, by their forms without slots.
    """

    max_nesting: int
    _given: dict[_Form, _Form] = field(default_factory=dict)

    def learn(self, message: Buffer, slots: dict[str, int]) -> Template | None:
        """The template of a Debezium envelope with at least one row image; None for any other message."""
        text = bytes(message)
        try:
            document = _ANY(text)
        except _BAD:
            return None
        row = _row_of(document)
        if row is None:
            return None
        bare = (self.max_nesting, row, *_form(document))
        form = (*bare, *slots)
        if (failed := self._given.get(bare)) is not None:  # the message is still there
            _kept.pop(failed, None)
        elif (kept := _kept.get(form)) is not None:
            self._given[bare] = form
            slots |= kept[1]
            return kept[0]
        if json_fault(text, self.max_nesting) is not None:
            return None
        template = template_of(text, document, _LAYOUTS[row], slots)
        if template is not None:
            if len(_kept) >= _MOST_KEPT:
                _kept.clear()
            _kept[form] = template, dict(slots)
        return template


def _form(document: Mapping[str, Any]) -> _Form:
    """What the messages of a template have in common, and a few others too: names of members in their order, and which
    of them are objects."""
    source = document["source"]
    members = (document, source, *(document.get(image) or () for image in ("before", "after")))
    objects = tuple(isinstance(value, dict) for value in document.values())
    return source["db"], source["table"], objects, *map(tuple, members)


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


def _events(reading: TemplatePass, rows: _I64, at: list[int], of_before: Bools, *, traced: bool) -> RowEvents:
    databases, tables = (
        cast("list[str | None]", reading.by_template(lambda t, n=name: t.document["source"][n], rows))  # type: ignore[misc]
        for name in ("db", "table")
    )
    images = Slices(reading.joined, *row_bounds(reading, of_before), rows, reading.cells())
    befores = Slices(reading.joined, reading.marks[BEFORE], reading.marks[BEFORE + 1], rows)
    return events_of(reading, rows, at, (databases, tables), images, befores, traced=traced)
