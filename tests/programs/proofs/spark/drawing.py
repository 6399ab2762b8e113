"""What a seed draws: a table's properties, its columns, and the operations that make it."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

Draw = Callable[[random.Random], Any]
Row = dict[str, Any]

#: Texts that paths, JSON and Avro treat in their own way.
_TEXTS = ("", "a", "Zürich", "a/b", "x=1", "%41", "a b", "null", "NULL", "\U0001f600", "é", "a\nb", '"', "1", "__x__")
_FOLDERS = ("a", "b", "2024-02-29", "x y", "ü", "10", "a.b")


def _moment(rng: random.Random) -> datetime:
    seconds = rng.choice((0, -1, -2_208_988_800, 4_102_444_800, rng.randrange(2_000_000_000)))
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds, microseconds=rng.randrange(1_000_000))


#: Types of Spark and how a value of each is drawn.
TYPES: Mapping[str, Draw] = {
    "int": lambda rng: rng.choice((0, -1, 2**31 - 1, -(2**31), rng.randrange(100))),
    "bigint": lambda rng: rng.choice((0, 2**63 - 1, -(2**63), rng.randrange(100))),
    "float": lambda rng: rng.choice((0.0, -0.0, 1.5, float(rng.randrange(100)))),
    "double": lambda rng: rng.choice((0.0, -0.0, 1e308, 0.1, rng.random())),
    "boolean": lambda rng: rng.random() < 0.5,
    "string": lambda rng: rng.choice(_TEXTS),
    "binary": lambda rng: bytearray(rng.randbytes(rng.randrange(4))),
    "date": lambda rng: date(1970, 1, 1) + timedelta(days=rng.choice((0, -1, 20_000, -100_000, 47_482))),
    "timestamp": _moment,
    "decimal(9,2)": lambda rng: Decimal(rng.randrange(-(10**9) + 1, 10**9)).scaleb(-2),
    "decimal(38,10)": lambda rng: Decimal(rng.randrange(10**27)).scaleb(-10),
    "array<int>": lambda rng: [rng.randrange(9) for _ in range(rng.randrange(3))],
    "struct<a:int,b:string>": lambda rng: {"a": rng.randrange(9), "b": rng.choice(_TEXTS)},
    "map<string,bigint>": lambda rng: {rng.choice(_TEXTS): rng.randrange(9) for _ in range(rng.randrange(3))},
}
#: Hudi's writer itself fails where it rewrites integers as floating point numbers.
_WIDER = {"int": ("bigint",), "float": ("double",)}


@dataclass(frozen=True)
class Step:
    """``kind``: a write operation of Hudi, or a service. ``rows``: that it writes. ``columns``: the table's then."""

    kind: str
    columns: Mapping[str, str]
    rows: tuple[Row, ...] = ()


@dataclass(frozen=True)
class DrawnTable:
    """A table that a seed draws.

    Args:
        options: of Hudi's writer.
        steps: what is done to it, in this order.
    """

    seed: int
    options: Mapping[str, str]
    steps: tuple[Step, ...]

    @property
    def told(self) -> str:
        """In words, for a verdict."""
        own = {name.removeprefix("hoodie."): value for name, value in sorted(self.options.items())}
        return f"{own} steps {[step.kind for step in self.steps]} columns {dict(self.steps[-1].columns)}"


@dataclass
class _Drawing:
    """The state of a drawing: its columns and the keys that were written. ``has_logs``: whether Hudi compacts it."""

    rng: random.Random
    key: tuple[str, ...]
    partition: tuple[str, ...]
    columns: dict[str, str]
    has_logs: bool
    clock: int = 0
    homes: dict[tuple[Any, ...], Row] = field(default_factory=dict)

    def row(self, known: bool) -> Row:
        """A row of a key that was written (in its partition, mostly), or of any key."""
        rng = self.rng
        self.clock += 1
        row: Row = {name: self._cell(name, kind) for name, kind in self.columns.items()}
        row["ts"] = self.clock if rng.random() < 0.8 else rng.randrange(self.clock + 1)
        home = rng.choice(list(self.homes.values())) if known and self.homes else None
        if home is not None:
            row |= {name: home[name] for name in self.key}
            if rng.random() < 0.9:
                row |= {name: home[name] for name in self.partition}
        self.homes[tuple(row[name] for name in (*self.key, *self.partition))] = row
        return row

    def rows(self, most: int, known: bool) -> tuple[Row, ...]:
        """Up to ``most`` rows, one of each key: which of two rows of one write wins is Hudi's own matter."""
        drawn = [self.row(known and self.rng.random() < 0.7) for _ in range(self.rng.randrange(1, most))]
        return tuple({tuple(row[name] for name in self.key): row for row in drawn}.values())

    def _cell(self, name: str, kind: str) -> Any:  # noqa: ANN401 - a value of any type
        if name == "k":
            return self.rng.randrange(30) if kind == "bigint" else f"k:{self.rng.randrange(30)}"
        if name == "k2":
            return self.rng.choice(("x", "y", "z,z", "a:b"))
        if name == "p":
            return self.rng.choice(_FOLDERS)
        if name == "q":
            return self.rng.randrange(3)
        return None if self.rng.random() < 0.15 else TYPES[kind](self.rng)


def draw(seed: int) -> DrawnTable:
    """The table of a seed."""
    rng = random.Random(seed)
    key = ("k",) if rng.random() < 0.7 else ("k", "k2")
    partition = rng.choice(((), (), ("p",), ("p",), ("p", "q")))
    columns = {"k": rng.choice(("bigint", "string"))} | {name: "string" for name in ("k2",) if name in key}
    columns |= {name: {"p": "string", "q": "int"}[name] for name in partition} | {"ts": "bigint"}
    columns |= {f"c{at}": rng.choice(list(TYPES)) for at in range(rng.randrange(1, 7))}
    options = _options(rng, key, partition)
    has_logs = options["hoodie.datasource.write.table.type"] == "MERGE_ON_READ"
    drawing = _Drawing(rng, key, partition, columns, has_logs)
    steps = [Step(rng.choice(("insert", "bulk_insert", "upsert")), dict(columns), drawing.rows(40, known=False))]
    for _ in range(rng.randrange(2, 8)):
        steps.append(_step(drawing))
    return DrawnTable(seed, options, tuple(steps))


def _options(rng: random.Random, key: tuple[str, ...], partition: tuple[str, ...]) -> dict[str, str]:
    kind = rng.choice(("COPY_ON_WRITE", "MERGE_ON_READ"))
    options = {
        "hoodie.table.name": "drawn",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.datasource.write.recordkey.field": ",".join(key),
        "hoodie.datasource.write.partitionpath.field": ",".join(partition),
        "hoodie.write.table.version": rng.choice(("9", "9", "9", "8", "6")),
        "hoodie.datasource.write.hive_style_partitioning": rng.choice(("true", "false")),
        "hoodie.datasource.write.partitionpath.urlencode": rng.choice(("true", "false")),
        "hoodie.metadata.enable": rng.choice(("true", "true", "false")),
        "hoodie.metadata.index.column.stats.enable": rng.choice(("true", "false")),
        "hoodie.datasource.write.reconcile.schema": "true",
        "hoodie.embed.timeline.server": "false",
        "hoodie.parquet.small.file.limit": rng.choice(("0", "104857600")),
        "hoodie.upsert.shuffle.parallelism": "2",
        "hoodie.write.complex.keygen.validation.enable": "false",
        "hoodie.logfile.data.block.format": rng.choice(("avro", "parquet")),
        "hoodie.record.merge.mode": rng.choice((*["EVENT_TIME_ORDERING"] * 3, "COMMIT_TIME_ORDERING")),
    }
    if options["hoodie.record.merge.mode"] == "EVENT_TIME_ORDERING":
        options["hoodie.datasource.write.precombine.field"] = "ts"
    index = rng.choice(("SIMPLE", "BLOOM", "GLOBAL_BLOOM", "GLOBAL_SIMPLE", "RECORD_INDEX", *["BUCKET"] * 4))
    options["hoodie.index.type"] = index
    # Without these a row stays in the folder of its former partition, and Spark shows the folder's value.
    for name in ("bloom.index", "simple.index", "record.index"):
        options[f"hoodie.{name}.update.partition.path"] = "true"
    if index == "BUCKET":
        options["hoodie.bucket.index.num.buckets"] = str(rng.randrange(1, 5))
        if kind == "MERGE_ON_READ" and rng.random() < 0.3:
            options |= {
                "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
                "hoodie.bucket.index.min.num.buckets": "1",
                "hoodie.bucket.index.max.num.buckets": "8",
            }
    if index == "RECORD_INDEX":
        options |= {"hoodie.metadata.record.index.enable": "true", "hoodie.metadata.enable": "true"}
    if rng.random() < 0.25 and kind == "MERGE_ON_READ":
        options |= {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"}
    return options


def _step(drawing: _Drawing) -> Step:
    rng = drawing.rng
    kinds = ("upsert",) * 6 + ("insert", "bulk_insert", "delete", "delete", "compact", "cluster", "clean", "columns")
    kind = rng.choice((*kinds, "insert_overwrite", "insert_overwrite_table", "delete_partition", "rollback"))
    if kind == "columns":
        _alter(drawing)
        kind = "upsert"
    if kind == "compact" and not drawing.has_logs:
        kind = "upsert"
    if kind in {"compact", "cluster", "clean", "rollback"}:
        return Step(kind, dict(drawing.columns))
    if kind == "delete_partition" and not drawing.partition:
        kind = "delete"
    rows = drawing.rows(15, known=kind in {"upsert", "delete", "delete_partition"})
    return Step(kind, dict(drawing.columns), rows[:1] if kind == "delete_partition" else rows)


def _alter(drawing: _Drawing) -> None:
    """One more column, or a wider one."""
    rng, columns = drawing.rng, drawing.columns
    wider = [(name, kind) for name, kind in columns.items() if name.startswith("c") and _WIDER.get(kind)]
    if wider and rng.random() < 0.5:
        name, kind = rng.choice(wider)
        columns[name] = rng.choice(_WIDER[kind])
    else:
        columns[f"c{len(columns)}n"] = rng.choice(list(TYPES))
