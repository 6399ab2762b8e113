"""Two bucketed tables joined pair by pair: a plan as a value, and the rows of a pair."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from duckdb import DuckDBPyConnection

from hudilake.query.join.bucketed import BucketedScan
from hudilake.query.join.columns import JoinColumns
from hudilake.query.join.engine import BUILD_BYTES_A_MB, ArrowStream, JoinLimits, bounded_connection, run
from hudilake.query.join.keys import HashedKey
from hudilake.query.join.pairs import BucketSlice, Pair
from hudilake.query.join.parts import HashedRows
from hudilake.query.join.rows import rows_of


@dataclass(frozen=True)
class JoinSide:
    """One table of a join.

    Args:
        scan: the table.
        key: its hashed columns.
    """

    scan: BucketedScan
    key: HashedKey


@dataclass(frozen=True)
class BucketJoin:
    """A join of two bucketed tables. It can be pickled, and any process can join its pairs.

    Args:
        left, right: the tables.
        columns: the result.
        bounds: of the memory of one pair.
    """

    left: JoinSide
    right: JoinSide
    columns: JoinColumns
    bounds: JoinLimits

    def read(self, pairs: Iterable[Pair]) -> Iterator[pa.RecordBatch]:
        """The rows of some pairs, one pair after the other, in no promised order. Errors as ``rows.rows_of`` and
        ``engine.run``; OSError if the local disk fails."""
        with bounded_connection(self.bounds) as (connection, spilled):
            for pair in pairs:
                left, right = self._side(self.left, pair, pair.left), self._side(self.right, pair, pair.right)
                in_left = self.columns.builds_left(pair.left_size < pair.right_size)
                yield from self._joined(connection, left, right, in_left, spilled / "0")

    def _side(self, side: JoinSide, pair: Pair, slices: Sequence[BucketSlice]) -> HashedRows:
        return HashedRows(side.scan.schema, side.key, rows_of(side.scan, side.key, slices, pair), pair.of)

    def _joined(
        self, connection: DuckDBPyConnection, left: HashedRows, right: HashedRows, in_left: bool, place: Path
    ) -> Iterator[pa.RecordBatch]:
        """The join of rows whose partners are all among them.

        Args:
            connection: bounded.
            left, right: the rows.
            in_left: whether the hash table is made of the left rows.
            place: the beginning of the names of files.
        """
        build, fits = (left if in_left else right).within(self.bounds.memory_mb * BUILD_BYTES_A_MB)
        left, right = (build, right) if in_left else (left, build)
        if fits or not build.can_be_cut:
            streams = {name: ArrowStream(rows.schema, rows.batches) for name, rows in (("l", left), ("r", right))}
            yield from run(connection, self.columns.sql(in_left), streams, self.columns.schema)
            return
        parts = zip(left.cut(Path(f"{place}-l")), right.cut(Path(f"{place}-r")), strict=True)
        for number, (one, other) in enumerate(parts):
            yield from self._joined(connection, one, other, in_left, Path(f"{place}-{number}"))
