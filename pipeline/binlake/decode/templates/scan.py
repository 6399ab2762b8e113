"""Reads the envelopes of a chunk that look alike by templates, and lists the messages that are left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from binlake.decode.events import RowEvents
from binlake.decode.quarantine import Buffer
from binlake.decode.slices import Slices
from binlake.decode.templates.cells import TemplateCells
from binlake.decode.templates.kernel import ABSENT, INT, NULL, TEXT, scan
from binlake.decode.templates.template import (
    AFTER,
    BEFORE,
    FILE,
    FIRST_COLUMN,
    GTID,
    OP,
    POS,
    ROW,
    SERVER_ID,
    TS_MS,
    Template,
    learn,
)

_I64 = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]
#: The most messages of a chunk that templates are learned from: tables and forms (with and without before image).
_MOST_LESSONS = 8
_NONE = -1
_MAX_ROW = (1 << 31) - 1
_LETTERS = np.array([chr(byte) for byte in range(128)], dtype=object)


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


@dataclass
class _Pass:
    """The state of reading: the arrays that the kernel fills, and the templates so far."""

    joined: bytes
    text: npt.NDArray[np.uint8]
    starts: _I64
    ends: _I64
    what: npt.NDArray[np.int8]
    value: _I64
    length: npt.NDArray[np.int32]
    marks: _I64
    template: npt.NDArray[np.int8]
    templates: list[Template]
    slots: dict[str, int]

    @staticmethod
    def over(payloads: Sequence[Buffer]) -> _Pass:
        count = len(payloads)
        ends = np.cumsum(np.fromiter(map(len, payloads), dtype=np.int64, count=count))
        starts = np.concatenate([np.zeros(1, dtype=np.int64), ends[:-1]])
        joined = b"".join(payloads)
        return _Pass(
            joined=joined,
            text=np.frombuffer(joined, dtype=np.uint8),
            starts=starts,
            ends=ends,
            what=np.zeros((0, count), dtype=np.int8),
            value=np.zeros((0, count), dtype=np.int64),
            length=np.zeros((0, count), dtype=np.int32),
            marks=np.zeros((4, count), dtype=np.int64),
            template=np.full(count, _NONE, dtype=np.int8),
            templates=[],
            slots={},
        )

    def read(self, rows: _I64, template: Template) -> _I64:
        """Read the rows that match the template; returns the others."""
        missing = FIRST_COLUMN + len(self.slots) - len(self.what)
        if missing:
            self.what, self.value, self.length = (
                np.concatenate([held, np.zeros((missing, held.shape[1]), dtype=held.dtype)])
                for held in (self.what, self.value, self.length)
            )
        matched = np.zeros(len(self.starts), dtype=bool)
        scan(
            self.text, rows, self.starts, self.ends, *template.arrays(),
            matched, self.what, self.value, self.length, self.marks,
        )  # fmt: skip
        self.template[matched] = len(self.templates)
        self.templates.append(template)
        return rows[~matched[rows]]

    def of_before(self) -> _Bools:
        """By message, whether its row is its before image."""
        return np.array([t.image == "before" for t in self.templates])[self.template]


def scan_envelopes(
    payloads: Sequence[Buffer], at: Sequence[int], *, traced: bool, max_nesting: int
) -> TemplateScan | None:
    """Read the envelopes that look alike; None if there are none.

    ``at``: the numbers that their events get. ``traced``: with server and GTID.
    """
    scan_pass: _Pass | None = None
    left = np.arange(len(payloads))
    for _ in range(_MOST_LESSONS):
        slots = scan_pass.slots if scan_pass is not None else {}
        template = learn(payloads[left[0]], slots, max_nesting) if len(left) else None
        if template is None:
            left = left[1:]
            continue
        if scan_pass is None:
            scan_pass = _Pass.over(payloads)
            scan_pass.slots = slots
        left = scan_pass.read(left, template)
    if scan_pass is None:
        return None
    good = (scan_pass.template != _NONE) & _sound(scan_pass, traced)
    rows = np.flatnonzero(good)
    numbers = np.asarray(at, dtype=np.int64)[rows]
    return TemplateScan(rows, np.flatnonzero(~good), _events(scan_pass, rows, numbers.tolist(), traced=traced))


def _sound(found: _Pass, traced: bool) -> _Bools:
    """Which messages have a head that the typed decoder accepts."""
    what, value = found.what, found.value
    deletes = found.text[np.minimum(value[OP], len(found.text) - 1)] == ord("d")
    sound: _Bools = (what[OP] == TEXT) & (found.length[OP] == 1) & (deletes == found.of_before())
    sound &= (what[FILE] == TEXT) & (what[POS] == INT) & (value[POS] >= 0)
    sound &= _int_or_absent(what[ROW]) & (value[ROW] >= 0) & (value[ROW] <= _MAX_ROW) & _int_or_absent(what[TS_MS])
    if traced:
        sound &= (what[SERVER_ID] <= NULL) | (what[SERVER_ID] == INT)
        sound &= (what[GTID] <= NULL) | (what[GTID] == TEXT)
    return sound


def _int_or_absent(what: npt.NDArray[np.int8]) -> _Bools:
    return np.asarray((what == INT) | (what == ABSENT))


def _events(found: _Pass, rows: _I64, at: list[int], *, traced: bool) -> RowEvents:
    cells = TemplateCells(
        found.text, found.what, found.value, found.length,
        found.slots, [t.columns for t in found.templates], found.template,
    )  # fmt: skip
    before = found.of_before()
    first, last = (np.where(before, found.marks[BEFORE + n], found.marks[AFTER + n]) for n in (0, 1))
    return RowEvents(
        at=at,
        ops=_LETTERS[found.text[found.value[OP, rows]]].tolist(),
        databases=_of_templates([t.database for t in found.templates], found.template[rows]),
        tables=_of_templates([t.table for t in found.templates], found.template[rows]),
        files=_repeated(cells, rows, FILE),
        positions=found.value[POS, rows].tolist(),
        rows=found.value[ROW, rows].tolist(),
        source_ms=found.value[TS_MS, rows].tolist(),
        servers=_or_none(found, rows, SERVER_ID) if traced else None,
        gtids=_repeated(cells, rows, GTID) if traced else None,
        images=Slices(found.joined, first, last, rows, cells),
        befores=Slices(found.joined, found.marks[BEFORE], found.marks[BEFORE + 1], rows),
    )


def _of_templates(names: list[str], template: npt.NDArray[np.int8]) -> list[str | None]:
    if len(set(names)) == 1:
        return [*names[:1]] * len(template)
    listed: list[str | None] = np.array(names, dtype=object)[template].tolist()
    return listed


def _repeated(cells: TemplateCells, rows: _I64, slot: int) -> list[str | None]:
    """Texts, many of them equal: equal ones share one object."""
    coded = cells.texts(rows, {slot: (TEXT,)})[slot].dictionary_encode()
    names = np.array([*coded.dictionary.to_pylist(), None], dtype=object)
    listed: list[str | None] = names[coded.indices.fill_null(-1).to_numpy()].tolist()
    return listed


def _or_none(found: _Pass, rows: _I64, slot: int) -> list[int | None]:
    numbers = found.value[slot, rows].tolist()
    return [n if there else None for n, there in zip(numbers, (found.what[slot, rows] == INT).tolist(), strict=True)]
