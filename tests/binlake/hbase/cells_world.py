"""A stream without Spark and Kafka over the recorded topics of an HBase, and its tables of cells."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from binlake.decode.cells import CELL_SCHEMA
from binlake.decode.changes import RawRecords
from binlake.decode.types.cell_text import bytes_of
from binlake.rows.upsert.target import ORDER_FIELD
from tests.binlake.hbase.recordings import CellPlace, RawCell, topic
from tests.binlake.stream.test_fanout import World
from tests.judges import hudi_rs

STORED = (*CELL_SCHEMA.names, ORDER_FIELD)


def store(table: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - any YAML value
    """An entry of ``tables.cells`` for a recorded table (``shop:orders``)."""
    return {"source": table.replace(":", "."), **more}


class CellsWorld(World):
    """A stream of the topics ``hbase.*``; the tables of these names have an entry unless ``tables`` says others."""

    def __init__(self, path: Path, names: Iterable[str], /, form: str = "hbase_wal", **sections: Any) -> None:  # noqa: ANN401
        cells = {"cells": [store(name) for name in names], "defaults": {"buckets": 4}}
        given = {"tables": {**cells, **sections.pop("tables", {})}, "kafka": {"topics": ["hbase.*"]}}
        super().__init__(path, [], source={"format": form, **sections.pop("source", {})}, **given, **sections)

    def deliver(self, records: RawRecords) -> None:
        """Append recorded records to their topic partition."""
        place = self.log.records.setdefault((records.topic, records.partition), [])
        place += zip(records.keys, records.values, strict=True)

    def play(self, table: str) -> None:
        """All recorded WAL entries of a table, in one batch."""
        for records in topic(table, "wal").values():
            self.deliver(records)
        self.feed()

    def cells(self, name: str) -> pa.Table:
        """The table of cells ``shop.NAME_cells`` as hudi-rs reads it, sorted by its key."""
        found = hudi_rs.snapshot(str(self.path / "lake" / "shop" / f"{name}_cells")).select(list(STORED))
        return found.sort_by([(column, "ascending") for column in STORED if column not in ("value", "written")])


def cells_of(table: pa.Table) -> list[RawCell]:
    """Rows of a table of cells as the cells of a raw scan."""
    columns = [bytes_of(table.column(name).combine_chunks()) for name in ("row", "qualifier")]
    rows, qualifiers = (column.to_pylist() for column in columns)
    families = [family.encode() for family in table.column("family").to_pylist()]
    rest = (table.column(name).to_pylist() for name in ("timestamp", "kind", "value"))
    return [
        RawCell(CellPlace(row, family, qualifier, at), kind, value or b"")
        for row, family, qualifier, at, kind, value in zip(rows, families, qualifiers, *rest, strict=True)
    ]


def wal_entry(cells: Any, sequence: Any = 1, table: str = "shop:orders", written: int = 1) -> bytes:  # noqa: ANN401
    """A message of one WAL entry; cells as in the message."""
    key = {"writeTime": written, "sequenceId": sequence, "tablename": table}
    return json.dumps({"key": key, "edit": {"cells": cells}}).encode()
