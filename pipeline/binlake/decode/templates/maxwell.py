"""Maxwell's messages of rows that look alike, by templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from binlake.decode.quarantine import Buffer
from binlake.decode.slices import Slices
from binlake.decode.templates.cells import TemplateCells, keeps_key
from binlake.decode.templates.kernel import NO_SLOT, split_places
from binlake.decode.templates.reading import Bools, TemplatePass
from binlake.decode.templates.template import Layout, Template, template_of
from binlake.decode.templates.value_kernel import FALSE, INT, NESTED, NULL, TEXT, TRUE

_I64 = npt.NDArray[np.int64]
_TS, _XOFFSET, _COMMIT, _POSITION, _SERVER_ID, _GTID, _OLD = range(7)
_FIRST_COLUMN = 7
_ROW = 0
_LATEST = 1 << 53
_LAYOUT = Layout(
    head={
        ("ts",): _TS,
        ("xoffset",): _XOFFSET,
        ("commit",): _COMMIT,
        ("position",): _POSITION,
        ("server_id",): _SERVER_ID,
        ("gtid",): _GTID,
    },
    first_column=_FIRST_COLUMN,
    fixed=frozenset((name,) for name in ("database", "table", "type", "primary_key_columns")),
    spans={("old",): _OLD, ("primary_key",): NO_SLOT, ("query",): NO_SLOT},
    marks={("data",): _ROW},
    row=("data",),
    depth=2,
)


@dataclass(frozen=True)
class MaxwellRows:
    """The messages that templates have read, ``rows`` of all, ascending; *places* are those among the messages read."""

    reading: TemplatePass
    rows: _I64

    def template(self, read: _I64) -> npt.NDArray[np.int8]:
        """The templates of messages, by their places."""
        return self.reading.template[self.rows[read]]

    def documents(self) -> list[Mapping[str, Any]]:
        """By template, what its message is."""
        return [template.document for template in self.reading.templates]

    def images(self, read: _I64) -> Slices:
        """Their rows."""
        first, last = self.reading.marks[_ROW], self.reading.marks[_ROW + 1]
        return Slices(self.reading.joined, first, last, self.rows[read], self.reading.cells())

    def olds(self, read: _I64) -> Slices:
        """The old values of updates."""
        first = self.reading.value[_OLD]
        return Slices(self.reading.joined, first, first + self.reading.length[_OLD], self.rows[read])

    def keeps_key(self, read: _I64, key: Sequence[str]) -> Bools:
        """Which updates have valid old values of columns of their rows, and of none of the key."""
        keeps, template, olds = np.zeros(len(read), dtype=bool), self.template(read), self.olds(read)
        for n in np.unique(template).tolist():
            among = template == n
            starts, ends = (places[olds.rows[among]] for places in (olds.starts, olds.ends))
            keeps[among] = keeps_key(self.reading.text, starts, ends, self.reading.templates[n].columns, key)
        return keeps

    def places(self, read: _I64) -> tuple[list[str | None], list[int]]:
        """Their files and positions; "" and -1 where there are none."""
        rows = self.rows[read]
        starts, numbers, sizes = (
            self.reading.value[_POSITION, rows],
            np.full(len(rows), -1),
            np.zeros(len(rows), np.int32),
        )
        there = self.reading.what[_POSITION, rows] == TEXT
        ends = np.where(there, starts + self.reading.length[_POSITION, rows], starts)
        split_places(self.reading.text, starts, ends, numbers, sizes)
        kind = np.full((1, len(rows)), TEXT, dtype=np.int8)
        cells = TemplateCells(
            self.reading.text, kind, starts[None], sizes[None], {}, [[]], np.zeros(len(rows), dtype=np.int8)
        )
        coded = cells.texts(np.arange(len(rows)), {0: (TEXT,)})[0].dictionary_encode()
        names = np.array([*coded.dictionary.to_pylist(), None], dtype=object)
        return names[coded.indices.to_numpy()].tolist(), numbers.tolist()

    def row_numbers(self, read: _I64, last: int) -> list[int]:
        """Their numbers in the event; ``last`` at most, and for the end of a transaction without a number."""
        numbered = self.reading.what[_XOFFSET, self.rows[read]] == INT
        ends = self.reading.what[_COMMIT, self.rows[read]] == TRUE
        numbers = np.minimum(self.reading.value[_XOFFSET, self.rows[read]], last)
        listed: list[int] = np.where(numbered, numbers, np.where(ends, last, 0)).tolist()
        return listed

    def are_numbered(self, read: _I64) -> Bools:
        """Which of them say their number."""
        rows = self.rows[read]
        return np.asarray((self.reading.what[_XOFFSET, rows] == INT) | (self.reading.what[_COMMIT, rows] == TRUE))

    def are_bootstrap(self, read: _I64) -> Bools:
        """Which of them are rows of a bootstrap."""
        bootstrap = np.array([document["type"] == "bootstrap-insert" for document in self.documents()])
        return np.asarray(bootstrap[self.template(read)])

    def have_place(self) -> Bools:
        """Which of all have a position."""
        return np.asarray(self.reading.what[_POSITION, self.rows] == TEXT)

    def seconds(self, read: _I64) -> _I64:
        """Their times since 1970."""
        return np.asarray(self.reading.value[_TS, self.rows[read]])

    def servers(self, read: _I64) -> list[int | None]:
        """Their servers."""
        return self.reading.numbers(_SERVER_ID, self.rows[read])

    def gtids(self, read: _I64) -> list[str | None]:
        """Their GTIDs."""
        return self.reading.texts(_GTID, self.rows[read])


def read_rows(payloads: Sequence[Buffer], content: Callable[[Buffer], Mapping[str, Any] | None]) -> MaxwellRows | None:
    """Read the messages that look alike; None if there are none.

    ``content``: what is to be known of a message for its template, ``type`` at least; None if it is no valid message of
    a row.
    """

    def learn(message: Buffer, slots: dict[str, int]) -> Template | None:
        document = content(message)
        return None if document is None else template_of(bytes(message), document, _LAYOUT, slots)

    reading = TemplatePass.of(payloads, learn, _FIRST_COLUMN, {})
    if reading is None:
        return None
    return MaxwellRows(reading, np.flatnonzero(reading.known & _sound(reading)))


def _sound(reading: TemplatePass) -> Bools:
    """Which messages have a head that the typed decoder accepts, and old values if they are updates."""
    value, updates = reading.value, np.array([t.document["type"] == "update" for t in reading.templates])
    sound = (reading.what[_TS] == INT) & (value[_TS] >= 0) & (value[_TS] <= _LATEST)
    sound &= reading.is_one_of(_XOFFSET, NULL, INT) & (value[_XOFFSET] >= 0)
    sound &= reading.is_one_of(_COMMIT, NULL, TRUE, FALSE) & reading.is_one_of(_SERVER_ID, NULL, INT)
    sound &= reading.is_one_of(_POSITION, NULL, TEXT) & reading.is_one_of(_GTID, NULL, TEXT)
    changes = updates[reading.template]
    return np.asarray(sound & np.where(changes, reading.what[_OLD] == NESTED, reading.is_one_of(_OLD, NULL)))
