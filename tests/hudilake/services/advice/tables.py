"""Tables whose rows came in some order, file after file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

import numpy as np
import pyarrow as pa

from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.kind import TableKind
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.file_group_write import FileGroupWrite
from hudilake.format.layout.order import Order, order_extra
from hudilake.metadata.config import MetadataConfig
from hudilake.storage.local import LocalStorage
from hudilake.table.table import HudiTable
from hudilake.write.group_writer import BaseWriter

ORDER = "_binlake_order"


def file_table(
    path: Path, columns: Mapping[str, pa.Array], files: int, order: Order | None = None, *, metadata: bool = True
) -> HudiTable:
    """A copy-on-write table: so many base files with the rows in the order in which they are given, in one commit.

    ``order``: what the commit says of it.
    """
    count = len(next(iter(columns.values())))
    rows = pa.table({"id": np.arange(count), **columns, ORDER: np.ones(count, np.int64)})
    config = TableConfig("t", ("id",), ORDER, 0, kind=TableKind("copy_on_write", "simple"))
    kept = MetadataConfig() if metadata else None
    table = HudiTable.create(LocalStorage(path, fsync=False), config, rows.schema, kept)
    instant = table.begin()
    writer, results = BaseWriter(table.write_context(instant), {}), []
    keys = pa.array([f"{i:09d}" for i in range(count)])
    keyed = rows.add_column(0, RECORD_KEY_FIELD, keys)
    for number in range(files):
        first, last = count * number // files, count * (number + 1) // files
        group = FileGroupWrite("", f"{uuid5(NAMESPACE_URL, str(number))}-0", upserts=keyed.slice(first, last - first))
        results += writer.write(table.storage, group)
    table.commit(instant, results, order_extra(order))
    return table
