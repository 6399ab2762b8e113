"""A seeded random workload at a real HBase: all kinds of families, writes, deletes, and timestamps.

It leaves out what no change event tells, so that a replay can equal the final scan: a cell's own TTL; deletes of
versions in families that keep few versions (a flush drops surplus versions, and a version delete would bring them to
light); several writes of one timestamp under NEW_VERSION_BEHAVIOR, and the empty qualifier there.
"""

from __future__ import annotations

import random
import struct
import threading
from collections.abc import Callable, Sequence

from binlake.hbase.settings.families import FamilyRule
from embedded.hbase_source import HBaseSource
from embedded.hbase_statements import (
    Amount,
    Append,
    Cell,
    CheckAndMutate,
    Delete,
    Increment,
    MarkerKind,
    Put,
    RowMutations,
    Statement,
    Target,
)
from hudilake import clock

HOUR_MS = 3_600_000
#: Versions of a column never reach this number.
_MANY = 1000
FAMILIES = (
    FamilyRule("d"),
    FamilyRule("s", versions=3),
    FamilyRule("m"),
    FamilyRule("c"),
    FamilyRule("x", versions=_MANY),
    FamilyRule("k", versions=_MANY, keep_deleted=True),
    FamilyRule("n", versions=3, by_sequence=True),
    FamilyRule("t", versions=2, ttl_ms=HOUR_MS),
)
STATUS = ("new", "paid", "packed", "shipped", "geöffnet", "完成")
_COLUMN_MARKERS: tuple[MarkerKind, ...] = ("Delete", "DeleteColumn")
_FAMILY_MARKERS: tuple[MarkerKind, ...] = ("DeleteFamily", "DeleteFamilyVersion")
_ODD_BYTES = (b"\0", b"\xff", b"a\0b", b"\xc3\x28", b"a,b", b'\n\r"\\', b"%")


class Workload:
    """Statements at one table, in the order that a seed says.

    Args:
        source: an HBase.
        table: ``namespace:table``; ``create`` makes it.
        seed: of the statements.
        rows: how many rows there are.
        binary: row keys that are no text, too.
    """

    def __init__(self, source: HBaseSource, table: str, seed: int, *, rows: int = 40, binary: bool = False) -> None:
        self._source, self.table, self._random = source, table, random.Random(seed)
        self._keys = [b"o%05d" % number for number in range(rows)] + (list(_ODD_BYTES) if binary else [])
        self._written = 0
        kinds: Sequence[tuple[Callable[[bytes], Statement], int]] = (
            (self._order, 4),
            (self._small_put, 4),
            (self._late_put, 3),
            (self._versions, 2),
            (self._free_column, 4),
            (self._delete, 4),
            (self._few_timestamps, 6),
            (self._under_new_version_behavior, 4),
            (self._mutations, 2),
            (self._checked, 2),
            (self._counted, 3),
            (self._expiring, 2),
        )
        self._kinds = [kind for kind, weight in kinds for _ in range(weight)]

    def create(self) -> None:
        """Make the table, with two regions."""
        self._source.create_table(self.table, FAMILIES, splits=[self._keys[len(self._keys) // 2]])

    def run(self, statements: int) -> None:
        """Carry out so many statements; one of fifteen is a batch of several rows."""
        for _ in range(statements):
            if self._random.randrange(15) == 0:
                self._source.batch(self.table, self._batch())
            else:
                self._source.apply(self.table, self._random.choice(self._kinds)(self._row()))

    def _row(self) -> bytes:
        return self._random.choice(self._keys)

    def _past(self, most_ms: int) -> int:
        """A timestamp up to ``most_ms`` milliseconds ago."""
        return clock.now_ms() - self._random.randrange(most_ms)

    def _text(self, name: str) -> bytes:
        self._written += 1
        return f"{name} {self._written}".encode()

    def _order(self, row: bytes) -> Put:
        draw = self._random.randrange
        cells = [
            Cell(b"d", b"user_id", struct.pack(">q", draw(1000) - 3)),
            Cell(b"d", b"status", self._random.choice(STATUS).encode()),
            Cell(b"d", b"price", struct.pack(">d", draw(100_000) / 8)),
            Cell(b"d", b"qty", struct.pack(">i", draw(50))),
            Cell(b"d", b"gift", self._random.choice((b"\xff", b"\0"))),
            Cell(b"d", b"amount", _decimal(draw(1_000_000) - 1000, 2)),
            Cell(b"d", b"note", b"" if draw(4) == 0 else self._text("note 😀")),
            Cell(b"s", b"loc", self._text("depot")),
            Cell(b"m", b"attr:%d" % draw(8), self._text("v")),
        ]
        return Put(row, cells)

    def _small_put(self, row: bytes) -> Put:
        return Put(row, [Cell(b"d", b"status", self._random.choice(STATUS).encode())])

    def _late_put(self, row: bytes) -> Put:
        return Put(row, [Cell(b"d", b"status", self._text("late"), self._past(60_000))])

    def _versions(self, row: bytes) -> Put:
        return Put(row, [Cell(b"s", b"loc", self._text("depot"), self._past(30_000)) for _ in range(4)])

    def _free_column(self, row: bytes) -> Put:
        if self._random.randrange(3):
            return Put(row, [Cell(b"m", b"attr:%d" % self._random.randrange(8), self._text("free"))])
        qualifier = self._random.choice((b"", *_ODD_BYTES))
        return Put(row, [Cell(b"m", qualifier, self._random.randbytes(self._random.randrange(9)))])

    def _delete(self, row: bytes) -> Delete:
        """Of columns, families and rows, up to now or to a time before."""
        at = self._random.choice((None, self._past(30_000)))
        match self._random.randrange(6):
            case 0:
                return Delete(row, timestamp_ms=at)
            case 1:
                return Delete(row, [Target("DeleteFamily", self._random.choice((b"m", b"s", b"t")), timestamp_ms=at)])
            case 2:
                return Delete(row, [Target("DeleteColumn", b"s", b"loc", at)])
            case 3:
                return Delete(row, [Target("DeleteColumn", b"m", self._random.choice((b"", *_ODD_BYTES)), at)])
        return Delete(row, [Target("DeleteColumn", b"m", b"attr:%d" % self._random.randrange(8), at)])

    def _few_timestamps(self, row: bytes) -> Put | Delete:
        """Families that keep all versions: markers of each kind and puts meet at a few timestamps, in any order."""
        family, at = self._random.choice((b"x", b"k")), self._random.randrange(1, 9)
        qualifier = self._random.choice((b"", b"q", b"p"))
        match self._random.randrange(5):
            case 0:
                return Delete(row, [Target(self._random.choice(_COLUMN_MARKERS), family, qualifier, at)])
            case 1:
                return Delete(row, [Target(self._random.choice(_FAMILY_MARKERS), family, timestamp_ms=at)])
        return Put(row, [Cell(family, qualifier, self._text("x"), at)])

    def _under_new_version_behavior(self, row: bytes) -> Put | Delete:
        """Timestamps are used once, in no order."""
        at = self._written * 7919 % 10_007 * 1000 + self._written
        match self._random.randrange(5):
            case 0:
                return Delete(row, [Target(self._random.choice(_COLUMN_MARKERS), b"n", b"q", at)])
            case 1:
                return Delete(row, [Target("DeleteFamily", b"n", timestamp_ms=at)])
            case 2:
                return Delete(row, [Target("Delete", b"n", b"q")])
        return Put(row, [Cell(b"n", b"q", self._text("n"), at)])

    def _mutations(self, row: bytes) -> RowMutations:
        at = self._random.randrange(1, 9)
        put = Put(row, [Cell(b"d", b"status", b"mutated"), Cell(b"x", b"q", self._text("x"), at)])
        delete = Delete(row, [Target("DeleteColumn", b"d", b"gift"), Target("Delete", b"x", b"q", at)])
        return RowMutations(row, [put, delete] if self._random.randrange(2) else [delete, put])

    def _checked(self, row: bytes) -> CheckAndMutate:
        then: Put | Delete = Put(row, [Cell(b"d", b"status", b"checked")])
        if self._random.randrange(3) == 0:
            then = Delete(row, [Target("DeleteColumn", b"d", b"status")])
        return CheckAndMutate(row, b"d", b"status", self._random.choice((None, b"new", b"mutated")), then)

    def _counted(self, row: bytes) -> Increment | Append | Delete:
        match self._random.randrange(5):
            case 0:
                return Append(row, [Cell(b"c", b"log", self._text(","))])
            case 1:
                return Delete(row, [Target("DeleteColumn", b"c", self._random.choice((b"log", b"hits")))])
        return Increment(row, [Amount(b"c", b"hits", 1), Amount(b"c", b"sum", self._random.randrange(100) - 20)])

    def _expiring(self, row: bytes) -> Put:
        """Half of them has expired long before; the others do not within a test."""
        age = self._random.choice((2 * HOUR_MS, 0))
        return Put(row, [Cell(b"t", b"q%d" % self._random.randrange(2), self._text("t"), self._past(10_000) - age)])

    def _batch(self) -> list[Statement]:
        """Rows that differ: HBase says nothing of the order of two statements of one row."""
        rows = self._random.sample(self._keys, 6)
        kinds = (self._order, self._small_put, self._free_column, self._delete, self._few_timestamps)
        return [self._random.choice(kinds)(row) for row in rows]


class BackgroundRun(threading.Thread):
    """Statements of a workload beside the test, which moves, aborts and kills meanwhile."""

    def __init__(self, workload: Workload, statements: int) -> None:
        super().__init__(name="workload", daemon=True)
        self._workload, self._statements = workload, statements
        self._error: Exception | None = None

    def run(self) -> None:
        """Carry them all out."""
        try:
            self._workload.run(self._statements)
        except Exception as error:
            self._error = error

    def finish(self, timeout_s: float = 120) -> None:
        """Wait for the end, and see that it came in order."""
        self.join(timeout_s)
        assert self._error is None, self._error
        assert not self.is_alive()


def _decimal(unscaled: int, scale: int) -> bytes:
    """As ``Bytes.toBytes(BigDecimal)``: the scale, and the shortest number in two's complement."""
    return struct.pack(">i", scale) + unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)
