"""Canal's messages of rows that look alike: their heads by templates, and the places of their rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from binlake.decode.quarantine import Buffer
from binlake.decode.slices import Slices
from binlake.decode.templates.cells import keeps_key
from binlake.decode.templates.kernel import elements
from binlake.decode.templates.reading import Bools, TemplatePass
from binlake.decode.templates.template import Layout, Template, template_of
from binlake.decode.templates.value_kernel import INT, NESTED, NULL, TEXT

_I64 = npt.NDArray[np.int64]
_ES, _GTID, _DATA, _OLD = range(4)
_FIRST_COLUMN = 4
_FIXED = frozenset((name,) for name in ("database", "table", "type", "isDdl", "sql", "mysqlType", "sqlType", "pkNames"))
_ROW = 0
_UPDATE = "UPDATE"
#: Of messages with one row, whose values are read with the head; and of messages with any number of rows.
_OF_ONE = Layout(
    head={("es",): _ES, ("gtid",): _GTID},
    first_column=_FIRST_COLUMN,
    fixed=_FIXED,
    spans={("old",): _OLD},
    marks={("data",): _ROW},
    row=("data",),
    depth=2,
)
_OF_ANY = Layout(
    head={("es",): _ES, ("gtid",): _GTID},
    first_column=_FIRST_COLUMN,
    fixed=_FIXED,
    spans={("data",): _DATA, ("old",): _OLD},
)


@dataclass(frozen=True)
class CanalRows:
    """The messages that templates have read, ``rows`` of all; all other arrays are by message read.

    Attributes:
        reading: of all messages.
        rows: their indices, ascending.
        counts: the rows of each. firsts: the index of its first image; first_olds: of its first old values, of updates.
        images: the rows of all of them. olds: the old values of updates.
    """

    reading: TemplatePass
    rows: _I64
    counts: _I64
    firsts: _I64
    first_olds: _I64
    images: Slices
    olds: Slices

    def template(self, read: _I64) -> npt.NDArray[np.int8]:
        """The templates of messages, by their places among those read."""
        return self.reading.template[self.rows[read]]

    def es(self, read: _I64) -> _I64:
        """Their times in milliseconds, 0 where there is none."""
        return np.asarray(self.reading.value[_ES, self.rows[read]])

    def gtids(self, read: _I64) -> list[str | None]:
        """Their GTIDs."""
        return self.reading.texts(_GTID, self.rows[read])

    def unchanged(self, olds: _I64, names: Sequence[str], key: Sequence[str]) -> Bools:
        """By index of old values: whether they are valid, of these columns alone, and of none of the key."""
        starts, ends = (places[self.olds.rows[olds]] for places in (self.olds.starts, self.olds.ends))
        return keeps_key(self.reading.text, starts, ends, names, key)


def read_rows(payloads: Sequence[Buffer], content: Callable[[Buffer], Mapping[str, Any] | None]) -> CanalRows | None:
    """Read the messages that look alike; None if there are none.

    ``content``: what is to be known of a message for its template, ``type`` and ``rows`` at least (1 for one row, 0
    for any number); None if it is no valid message of rows.
    """

    def learn(message: Buffer, slots: dict[str, int]) -> Template | None:
        document = content(message)
        if document is None:
            return None
        layout = _OF_ONE if document["rows"] == 1 else _OF_ANY
        return template_of(bytes(message), document, layout, slots)

    reading = TemplatePass.of(payloads, learn, _FIRST_COLUMN, {})
    if reading is None:
        return None
    rows = np.flatnonzero(reading.known & _sound(reading))
    updates, ones = _by_template(reading, "type", _UPDATE)[rows], _by_template(reading, "rows", 1)[rows]
    counts, of_old = np.ones(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
    counts[~ones], many = _elements(reading, rows[~ones], _DATA)
    of_old[updates], olds = _elements(reading, rows[updates], _OLD)
    first_olds = np.cumsum(np.maximum(of_old, 0)) - np.maximum(of_old, 0)
    firsts = rows.copy()
    there = np.maximum(counts[~ones], 0)
    firsts[~ones] = len(payloads) + np.cumsum(there) - there
    starts, ends = (
        np.concatenate([mark, place]) for mark, place in zip(reading.marks, (many.starts, many.ends), strict=False)
    )
    images = Slices(reading.joined, starts, ends, np.arange(len(starts)), reading.cells())
    good = (counts > 0) & (of_old == np.where(updates, counts, 0))
    return CanalRows(reading, rows[good], counts[good], firsts[good], first_olds[good], images, olds)


def _by_template(reading: TemplatePass, name: str, value: object) -> Bools:
    """By message, whether its template has this value of a fact."""
    return np.array([t.document[name] == value for t in reading.templates])[reading.template]


def _sound(reading: TemplatePass) -> Bools:
    """Which messages have a head that the typed decoder accepts, and rows."""
    what = reading.what
    sound = reading.is_one_of(_ES, NULL, INT) & reading.is_one_of(_GTID, NULL, TEXT)
    sound &= (what[_DATA] == NESTED) | _by_template(reading, "rows", 1)
    return np.asarray(sound & (what[_OLD] == np.where(_by_template(reading, "type", _UPDATE), NESTED, NULL)))


def _elements(reading: TemplatePass, rows: _I64, slot: int) -> tuple[_I64, Slices]:
    """How many objects the array of each message has, -1 if it is none of objects alone; and all these objects."""
    value, length = reading.value[slot], reading.length[slot]
    counts = np.zeros(len(rows), dtype=np.int64)
    size = 2 * len(rows)
    while True:
        starts, ends = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
        total = elements(reading.text, rows, value, length, counts, starts, ends)
        if total >= 0:
            return counts, Slices(reading.joined, starts, ends, np.arange(total))
        size = int(length[rows].sum()) // 2 + 1  # an object has two bytes at least
