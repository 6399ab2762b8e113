"""Two bucketed tables joined pair by pair: a plan as a value, and the rows of a pair."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from pipeline.hudi.join.bucketed import BucketedScan
from pipeline.hudi.join.columns import JoinColumns
from pipeline.hudi.join.engine import ArrowStream, Bounds, run
from pipeline.hudi.join.keys import JoinKeys
from pipeline.hudi.join.pairs import Pair
from pipeline.hudi.join.rows import rows_of
from pipeline.hudi.read.plan import BATCH_ROWS


@dataclass(frozen=True)
class BucketJoin:
    """A join of two bucketed tables. It can be pickled, and any process can join its pairs.

    Args:
        left, right: the tables.
        keys: how their rows meet.
        columns: the result.
        bounds: of the memory of one pair.
    """

    left: BucketedScan
    right: BucketedScan
    keys: JoinKeys
    columns: JoinColumns
    bounds: Bounds

    def read(self, pair: Pair) -> Iterator[pa.RecordBatch]:
        """The rows of one pair, in no promised order. Errors as ``rows.rows_of`` and ``engine.run``."""
        streams = {
            "l": ArrowStream(self.left.schema, lambda: rows_of(self.left, self.keys.left, pair.left, pair)),
            "r": ArrowStream(self.right.schema, lambda: rows_of(self.right, self.keys.right, pair.right, pair)),
        }
        yield from run(self.bounds, self.columns.sql, streams, self.columns.schema, BATCH_ROWS)
