"""Cells without a place in the wide table as entries of the quarantine.

The table of cells holds the cell in any case, so an entry is a report, and to replay it is to derive its row again. An
entry is named by the cell: the topic by the table of cells, partition and offset by a digest of row, column and
timestamp. So a cell that is met in each derivation of its row has one entry.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from binlake.decode.cells import FAMILY, QUALIFIER, ROW, TIMESTAMP, VALUE
from binlake.decode.changes import QuarantinedRecord, SourceTable
from binlake.hbase.derive.pairs import DerivedPair

#: In front of the table's name in place of a topic; no topic of Kafka has a colon in its name.
CELLS: Final = "cells:"
#: HBase's timestamps are milliseconds, Bigtable's microseconds; a time in milliseconds is below this until year 5138.
_LATEST_MS: Final = 100_000_000_000_000


def quarantined_cells(faults: pa.Table, pair: DerivedPair) -> list[QuarantinedRecord]:
    """The entries of n faults (``WideRows.faults``)."""
    return [_entry(fault, pair) for fault in faults.to_pylist()]


def is_cell(topic: str) -> bool:
    """Whether the entries of that topic are cells that have no place in their wide table."""
    return topic.startswith(CELLS)


def cells_topic(cells: SourceTable) -> str:
    """What stands for the topic in the entries of a table of cells."""
    return f"{CELLS}{cells}"


def _entry(fault: Mapping[str, Any], pair: DerivedPair) -> QuarantinedRecord:
    place = (fault[ROW], fault[FAMILY], fault[QUALIFIER], fault[TIMESTAMP])
    digest = hashlib.blake2b("\0".join(map(str, place)).encode(), digest_size=12).digest()
    partition, offset = int.from_bytes(digest[:4]) >> 1, int.from_bytes(digest[4:]) >> 1
    stamp = max(0, fault[TIMESTAMP] or 0)
    column = f" ({fault[FAMILY]}:{fault[QUALIFIER]} at {fault[TIMESTAMP]})" if fault[FAMILY] is not None else ""
    return QuarantinedRecord(
        topic=cells_topic(pair.cells),
        partition=partition,
        offset=offset,
        timestamp_ms=stamp if stamp < _LATEST_MS else min(stamp // 1000, _LATEST_MS),
        key=fault[ROW].encode(),
        value=fault[VALUE],
        reason=fault["reason"],
        detail=f"{fault['detail']}{column}",
        source=pair.wide,
    )
