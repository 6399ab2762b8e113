"""The index of an open table by its kind."""

from __future__ import annotations

from pipeline.errors import UnsupportedError
from pipeline.hudi.index.base import KeyIndex
from pipeline.hudi.index.base_file_index import BaseFileIndex, EveryFile
from pipeline.hudi.index.record import RecordIndex
from pipeline.hudi.table.table import HudiTable


def open_index(table: HudiTable) -> KeyIndex:
    """The index that finds the rows of a table whose kind looks keys up.

    Raises UnsupportedError for a table of another kind.
    """
    kind = table.config.kind
    if kind.index in ("simple", "global_simple"):
        return BaseFileIndex(table, EveryFile(), is_global=kind.is_global)
    if kind.has_record_index:
        return RecordIndex(table)
    raise UnsupportedError(
        f"the index {kind.index} of the table is not looked up",
        do_next="report this error: rows of such a table have their file groups by other means",
        table=table.config.name,
    )
