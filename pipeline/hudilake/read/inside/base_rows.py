"""The rows of a base file that a condition needs: row groups and pages without such rows are not fetched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from hudilake.format.files.base_file import read_base_file
from hudilake.format.files.lance_file import is_lance
from hudilake.format.files.pages.chunks import ChunkedFile
from hudilake.format.files.pages.page_index import RowRanges
from hudilake.format.files.view import BaseFile
from hudilake.read.filters.bounds import may_match
from hudilake.read.filters.expressions import Filter, columns_of
from hudilake.read.inside.contested import ContestedRows
from hudilake.read.inside.pieces import RowGroupPieces, pages, row_groups
from hudilake.read.inside.tally import ReadTally
from hudilake.storage.base import Storage


def wanted_rows(
    storage: Storage,
    base: BaseFile,
    schema: pa.Schema,
    condition: Filter,
    held_back: ContestedRows | None,
    tally: ReadTally | None = None,
) -> pa.Table:
    """The rows of a base file that may pass a condition, or may keep a row of the log back; others may be among them.

    Args:
        storage: the table's root.
        base: the file.
        schema: the columns to read, in the types in which they are read.
        condition: normalised.
        held_back: of the slice's log, None to leave out nothing.
        tally: counts what is read.

    Returns the columns that the file has. Raises CorruptDataError, UnsupportedError, StorageError.
    """
    if is_lance(base.path):
        if tally is not None:
            tally.add(whole_file(base))
        return read_base_file(storage, base.path, schema.names)
    file = ChunkedFile(storage, base.path, base.size)
    chosen = chosen_rows(file, schema, condition, held_back)
    rows = file.read(schema.names, chosen)
    if tally is not None:
        tally.add(tally_of(file, schema.names, chosen))
    return rows


def chosen_rows(
    file: ChunkedFile, schema: pa.Schema, condition: Filter, held_back: ContestedRows | None
) -> dict[int, RowRanges | None]:
    """The rows of a base file to read: row group -> ranges, None for all. Arguments and errors as ``wanted_rows``."""
    rows = file.group_rows
    if held_back is None:
        return dict.fromkeys(range(len(rows)))
    columns = list(dict.fromkeys([*columns_of(condition), *held_back.columns]))
    pieces = row_groups(file, schema, columns)
    chosen = _wanted(pieces, condition, held_back, rows)
    if chosen and file.can_pick_pages(schema.names):
        pieces = pages(file, schema, columns, list(chosen))
        chosen = _wanted(pieces, condition, held_back, rows)
    return chosen


def _wanted(
    pieces: RowGroupPieces, condition: Filter, held_back: ContestedRows, rows: Sequence[int]
) -> dict[int, RowRanges | None]:
    count = len(pieces.group)
    wanted = may_match(condition, pieces.bounds, count) | held_back.may_be_in(pieces.bounds, count)
    return pieces.chosen(np.asarray(wanted, dtype=np.bool_), rows)


def whole_file(base: BaseFile) -> ReadTally:
    """The counts of a base file of which nothing can be left out."""
    size = base.size
    return ReadTally(files=1, row_groups=1, of_row_groups=1, bytes=size, of_bytes=size, fetched=size, requests=1)


def tally_of(file: ChunkedFile, columns: Sequence[str], chosen: Mapping[int, RowRanges | None]) -> ReadTally:
    """The counts of a base file of which these rows are read."""
    tally = ReadTally(files=1, row_groups=len(chosen), of_row_groups=len(file.group_rows))
    for group in range(tally.of_row_groups):
        size = file.stored_bytes(group, columns)
        tally.of_bytes += size
        ranges = chosen.get(group, [])
        if ranges is None:
            tally.bytes += size
        elif ranges:
            pages_read, read, of_pages = file.pages_read(group, columns, ranges)
            tally.bytes += read
            tally.pages += pages_read
            tally.of_pages += of_pages
    tally.fetched, tally.requests = file.parts.fetched, file.parts.requests
    return tally
