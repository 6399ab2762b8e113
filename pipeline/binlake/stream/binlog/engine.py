"""How a batch plan runs on the records of a binlog: in this process, on what the batch has in hand, or reads again.

One connection gives the events one after the other, and reading them costs more than all that follows (measured, see
docs/without-kafka.md). Spark's tasks would wait for it, so there is no Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from binlake.decode.changes import RawRecords
from binlake.rows.tasks.append_parcels import append_parcels
from binlake.rows.tasks.decode_and_route import decode_records
from binlake.rows.tasks.plan import BatchPlan, Item, TaskFailure
from binlake.rows.tasks.write_parcels import write_parcels
from binlake.source.binlog.feed import Portion
from binlake.source.binlog.places import PARTITION
from binlake.source.binlog.reading import BinlogSource, records_of
from binlake.source.offsets import OffsetRange, Ranges
from hudilake.errors import LakeError, TransientError

#: Records of one transaction that catch a table up together leave at its end, once there are so many.
_CATCH_UP_RECORDS = 100_000


class BinlogEngine:
    """Runs plans over the records of one binlog.

    ``held``: the portion that the batch in hand applies; other ranges are read from the server again.
    """

    def __init__(self, source: BinlogSource) -> None:
        self._source = source
        self._start = self._end = 0
        self._portion: Portion | None = None

    def hold(self, start: int, portion: Portion) -> None:
        """Take a portion, which begins at an offset."""
        self._start, self._end, self._portion = start, portion.end, portion

    def release(self) -> None:
        """Forget the portion."""
        self._portion = None

    def run(self, plan: BatchPlan, ranges: Sequence[OffsetRange], *, shuffle: bool) -> list[Item]:
        """All items; with ``shuffle`` the rows are written here, too."""
        items = append_parcels(plan, 0, self._items(plan, ranges))
        return list(write_parcels(plan, items) if shuffle else items)

    def next_portion(self, ranges: Ranges) -> Ranges:
        """The beginning of ranges, cut where a transaction ends after enough records to apply at once."""
        for one in ranges:
            records = 0
            for piece in self._source.pieces(one.start, server_id=0, ends=True):
                if piece is None:
                    continue
                records += len(piece.offsets)
                if piece.end >= one.end:
                    break
                if piece.whole and records >= _CATCH_UP_RECORDS:
                    return Ranges([OffsetRange(one.topic, one.partition, one.start, piece.end)])
        return ranges

    def _items(self, plan: BatchPlan, ranges: Sequence[OffsetRange]) -> Iterator[Item]:
        try:
            yield from decode_records(plan, (records for one in ranges for records in self._records(one)))
        except TransientError:
            raise
        except LakeError as error:
            yield TaskFailure(error)

    def _records(self, wanted: OffsetRange) -> Iterator[RawRecords]:
        portion = self._portion
        if (wanted.topic, wanted.partition) != (self._source.topic, PARTITION):
            return
        if portion is not None and self._start <= wanted.start and wanted.end <= self._end:
            records = records_of(wanted.topic, portion.pieces, wanted)
            if len(records):
                yield records
        else:
            yield from self._source.read(wanted)
