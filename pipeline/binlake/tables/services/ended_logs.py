"""File slices with log files written anew as base files, in one commit of the table.

Where columns take other types, hudi-rs 0.5.0 reads a file slice only if its log files agree in the types of all columns
(measured; the base file may differ). A compaction would end them, too; this is for tables that nobody compacts, or
another process.
"""

from __future__ import annotations

from binlake.position.commit_record import CommitRecord
from binlake.rows.merging.write import write_anew
from binlake.rows.upsert.route import KEY, Counts
from binlake.tables.lake_table import LakeTable
from hudilake.commit.intent import WHOLE_TABLE
from hudilake.format.files.file_group_write import FileGroupWrite, WriteResult
from hudilake.format.files.view import FileSlice
from hudilake.read.slice import read_deletes, read_file_slice
from hudilake.write.group_writer import GroupWriter


def end_logs(table: LakeTable, stream: str) -> int:
    """Write the slices that have log files anew, one after the other. Returns how many there were.

    Args:
        table: open.
        stream: of the commit, which covers no offsets.

    Raises BinlakeError; the table is unchanged then.
    """
    with table.table.exclusively():
        table.refresh(stream)
        pieces = [piece for piece in table.table.file_slices() if piece.log_files]
        if not pieces or table.table.config.kind.appends or table.source is None:
            return 0
        context = table.begin(table.table.schema, WHOLE_TABLE)
        with table.undone_on_error(context.instant):
            writer = table.rows.group_writer(context)
            results = [result for piece in pieces for result in _anew(table, writer, piece)]
            table.commit(context, results, CommitRecord(stream, 0, Counts(), table.source, table.origin))
    return len(pieces)


def _anew(table: LakeTable, writer: GroupWriter, piece: FileSlice) -> list[WriteResult]:
    rows = read_file_slice(table.table, piece, [KEY, *table.table.schema.names])
    deletes = read_deletes(table.table, piece)  # older rows that come late must not return
    kept = deletes.sort_by(KEY) if len(deletes) else None
    return write_anew(
        table.storage, writer, FileGroupWrite(piece.partition_path, piece.file_id, rows.sort_by(KEY), kept)
    )
