"""Some data pages of a column as a Parquet file of their own, in memory.

pyarrow reads column chunks as a whole (26.0.1): of pages that are not wanted it would have the bytes and decode them.
So the wanted pages of a column, the dictionary page before them, are put into a small file with a footer that names
these pages alone, and pyarrow decodes that: encodings, codecs, page checksums and types are as in the whole file. A run
of pages becomes a row group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hudilake.format.files.pages.compact import I32, I64, LIST, STRUCT, Items, Struct, read_struct, write_struct
from hudilake.format.files.pages.footer import (
    MAGIC,
    ChunkFields,
    ColumnFields,
    FileFields,
    Footer,
    RowGroupFields,
    SchemaFields,
    number,
)


@dataclass(frozen=True)
class PageRun:
    """Pages of one column chunk that follow each other.

    ``chunk``: the ColumnChunk. ``dictionary``: its dictionary page, empty if there is none. ``pages``: the bytes of the
    pages. ``rows``: their rows.
    """

    chunk: Struct
    dictionary: memoryview
    pages: memoryview
    rows: int


def excerpt(footer: Footer, element: Struct, runs: Sequence[PageRun]) -> bytes:
    """A Parquet file with one column.

    Args:
        footer: of the whole file.
        element: the column's SchemaElement.
        runs: at least one.
    """
    parts: list[bytes | memoryview] = [MAGIC]
    offset = len(MAGIC)
    groups = []
    for run in runs:
        size = len(run.dictionary) + len(run.pages)
        chunk = {ChunkFields.FILE_OFFSET: (I64, offset), ChunkFields.META: (STRUCT, _meta(run, offset))}
        groups.append(
            {
                RowGroupFields.COLUMNS: (LIST, Items(STRUCT, [chunk])),
                RowGroupFields.BYTES: (I64, size),
                RowGroupFields.ROWS: (I64, run.rows),
            }
        )
        parts += [run.dictionary, run.pages]
        offset += size
    root = {**footer.schema[0], SchemaFields.CHILDREN: (I32, 1)}
    written = write_struct(
        {
            **footer.head,
            FileFields.SCHEMA: (LIST, Items(STRUCT, [root, element])),
            FileFields.ROWS: (I64, sum(run.rows for run in runs)),
            FileFields.ROW_GROUPS: (LIST, Items(STRUCT, groups)),
        }
    )
    return b"".join([*parts, written, len(written).to_bytes(4, "little"), MAGIC])


def _meta(run: PageRun, at: int) -> Struct:
    meta = run.chunk[ChunkFields.META][1]
    kept = (ColumnFields.TYPE, ColumnFields.ENCODINGS, ColumnFields.PATH, ColumnFields.CODEC)
    size = len(run.dictionary) + len(run.pages)
    made: Struct = {
        **{field: meta[field] for field in kept},
        ColumnFields.VALUES: (I64, run.rows),
        ColumnFields.PLAIN_BYTES: (I64, max(size, number(meta, ColumnFields.PLAIN_BYTES) or 0)),
        ColumnFields.STORED_BYTES: (I64, size),
        ColumnFields.DATA_OFFSET: (I64, at + len(run.dictionary)),
    }
    if run.dictionary:
        made[ColumnFields.DICTIONARY_OFFSET] = (I64, at)
    return made


_DATA_PAGE, _DATA_PAGE_V2 = 5, 8
_USUAL_HEADER = 512


def check_page(data: memoryview, rows: int) -> None:
    """Raise ValueError, IndexError if a page does not hold that many rows, or does not end where its bytes end.

    Rows of several columns are put side by side by the page index, which has no checksum; so what it says is compared
    with the page.
    """
    header, start = _header(data)
    inner = header.get(_DATA_PAGE) or header.get(_DATA_PAGE_V2)
    if inner is None or inner[1].get(1, (0, None))[1] != rows or start + (number(header, 3) or 0) != len(data):
        raise ValueError("a page is not what its page index says")


def _header(data: memoryview) -> tuple[Struct, int]:
    """The page header and its size. Older writers put bounds of any length into it."""
    try:
        return read_struct(bytes(data[:_USUAL_HEADER]), 0)
    except IndexError:
        return read_struct(bytes(data), 0)
