"""WAL entries that look alike, read by templates: the heads of the entries, and the bytes of their cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from binlake.decode.quarantine import Buffer, json_fault
from binlake.decode.templates.reading import TemplatePass
from binlake.decode.templates.template import Layout, Template, template_of
from binlake.decode.templates.value_kernel import INT, NESTED
from binlake.hbase.formats.cell_rows import LOGGED_KINDS, CellColumns
from binlake.hbase.formats.wal_kernel import ALPHABET, LEAST_CELL, NAME_BOUNDS, NAMES, VALUE, read_cells

_I64 = npt.NDArray[np.int64]
_ANY = msgspec.json.Decoder().decode
_BAD = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
_WRITE_TIME, _SEQUENCE, _CELLS = range(3)
_FIRST_COLUMN = 3
_LAYOUT = Layout(
    head={("key", "writeTime"): _WRITE_TIME, ("key", "sequenceId"): _SEQUENCE},
    first_column=_FIRST_COLUMN,
    fixed=frozenset({("key", "tablename")}),
    later={("edit", "cells"): _CELLS},
    texts=frozenset({("edit", "families")}),
    depth=2,
)
#: The members that an entry has once, at any level.
MEMBERS = ("key", "edit", "cells", "writeTime", "sequenceId", "tablename")
_COLUMNS = 4
#: The kinds of cells as text with bounds, for the compiled loop.
_KIND_NAMES = np.frombuffer("".join(LOGGED_KINDS).encode(), dtype=np.uint8)
_KIND_BOUNDS = np.cumsum([0, *map(len, LOGGED_KINDS)], dtype=np.int64)


@dataclass(frozen=True)
class ScannedEntries:
    """n cells of some entries.

    Attributes:
        counts: the cells of each entry, int64; -1 for entries that are not read, which have none here.
        columns: of the cells; a value is null where the entry has none.
    """

    counts: _I64
    columns: CellColumns


@dataclass(frozen=True)
class WalScan:
    """The messages that look like entries: ``rows`` of all, ascending. Their cells are not read yet."""

    reading: TemplatePass
    rows: _I64

    @staticmethod
    def of(payloads: Sequence[Buffer], max_nesting: int) -> WalScan | None:
        """Read the heads of entries that look alike; None if there are none."""
        reading = TemplatePass.of(payloads, lambda message, _: _learn(message, max_nesting), _FIRST_COLUMN, {})
        if reading is None:
            return None
        what = reading.what
        sound = (what[_WRITE_TIME] == INT) & (what[_SEQUENCE] == INT) & (what[_CELLS] == NESTED)
        return WalScan(reading, np.flatnonzero(reading.known & sound))

    def by_table(self) -> Iterator[tuple[str, _I64]]:
        """HBase's names of the tables, and the rows of each."""
        names: dict[str, list[int]] = {}
        for number, template in enumerate(self.reading.templates):
            names.setdefault(template.document["key"]["tablename"], []).append(number)
        of = self.reading.template[self.rows]
        for name, numbers in names.items():
            rows = self.rows[np.isin(of, numbers)]
            if len(rows):
                yield name, rows

    def written_ms(self, rows: _I64) -> _I64:
        """When entries were written, milliseconds."""
        return np.asarray(self.reading.value[_WRITE_TIME, rows])

    def sequences(self, rows: _I64) -> _I64:
        """The sequence ids of entries."""
        return np.asarray(self.reading.value[_SEQUENCE, rows])

    def sizes(self, rows: _I64) -> _I64:
        """The bytes of the cells of entries, as JSON."""
        return np.asarray(self.reading.length[_CELLS, rows], dtype=np.int64)

    def cells(self, rows: _I64) -> ScannedEntries:
        """The cells of entries, which have less than 2 GiB."""
        starts, sizes = self.reading.value[_CELLS, rows], self.sizes(rows)
        most = int(sizes.sum()) // LEAST_CELL + len(rows)
        data = np.empty((_COLUMNS, int(sizes.sum()) * 3 // 4 + _COLUMNS), dtype=np.uint8)
        places = np.zeros((_COLUMNS, most + 1), dtype=np.int32)
        timestamps, kinds = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int8)
        filled, counts = np.empty(most, dtype=bool), np.empty(len(rows), dtype=np.int64)
        count = read_cells(
            self.reading.text, starts, starts + sizes, ALPHABET, NAMES, NAME_BOUNDS, _KIND_NAMES, _KIND_BOUNDS,
            data, places, timestamps, kinds, filled, counts,
        )  # fmt: skip
        valid = None if filled[:count].all() else pa.array(filled[:count]).buffers()[1]
        row, family, qualifier, value = (
            pa.Array.from_buffers(
                pa.binary(),
                count,
                [valid if n == VALUE else None, pa.py_buffer(places[n, : count + 1]), pa.py_buffer(data[n])],
            )
            for n in range(_COLUMNS)
        )
        coded = pa.DictionaryArray.from_arrays(kinds[:count], pa.array(LOGGED_KINDS))
        kinds_of_cells = coded.cast(pa.string())
        columns = CellColumns(row, family, qualifier, pa.array(timestamps[:count]), kinds_of_cells, value)
        return ScannedEntries(counts, columns)


def _learn(message: Buffer, max_nesting: int) -> Template | None:
    """The template of an entry; None for any other message."""
    text = bytes(message)
    try:
        document = _ANY(text)
    except _BAD:
        return None
    if not _is_entry(document) or json_fault(text, max_nesting) is not None:
        return None
    return template_of(text, document, _LAYOUT, {})


def _is_entry(document: Any) -> bool:  # noqa: ANN401 - JSON
    if not isinstance(document, dict) or document.keys() != {"key", "edit"}:
        return False
    key, edit = document["key"], document["edit"]
    if not isinstance(key, dict) or not isinstance(edit, dict) or not isinstance(edit.get("cells"), list):
        return False
    names = ["key", "edit", *key, *edit]
    return isinstance(key.get("tablename"), str) and all(names.count(member) == 1 for member in MEMBERS)
