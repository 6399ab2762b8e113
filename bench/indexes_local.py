"""Lookups of every index in one table, without Spark: ``python -m bench.indexes_local``.

A table of N base files with the same number of rows, keys spread over the files (``spread``: a key says nothing of its
file, as a UUID) or ascending (``ascending``: each file has a range of keys of its own, as with a sequence). One batch:
updates of keys that there are, and inserts of keys that there are not, among them. The keys are drawn from the whole
table (``uniform``) or from its newest twentieth (``recent``); in ``new`` all but a thousandth are inserts. Each figure
is of the second batch after a table was opened (``first`` is the seconds of the first one), on local disk, in one
process.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from uuid import NAMESPACE_URL, uuid5

import numpy as np
import pyarrow as pa

from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.kind import TableKind
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.file_group_write import FileGroupWrite, KeyChanges
from hudilake.index.base import KeyLocations, LookupCost
from hudilake.index.open import open_index
from hudilake.metadata.config import MetadataConfig
from hudilake.policies import ExternalStorePolicy, IndexType, LookupPolicy
from hudilake.storage.local import LocalStorage
from hudilake.table.table import HudiTable
from hudilake.write.form import LOOKUP_FPP, BaseFileForm
from hudilake.write.group_writer import BaseWriter

ORDER: Final = "_binlake_order"
INDEXES: Final[tuple[IndexType, ...]] = ("record_index", "global_bloom", "global_simple", "in_memory", "external")
_TYPE: Final = "merge_on_read"
_FURTHER: Final = 6


@dataclass(frozen=True)
class Layout:
    """N files of ``rows`` rows. ``ascending``: whether a file has a range of keys of its own; ``fpp``: the rate of
    false positives of its filter."""

    files: int
    rows: int
    ascending: bool
    fpp: float

    def keys(self, number: int) -> list[str]:
        """The keys of a file, ascending. Every other number is a key of none."""
        first = number * self.rows if self.ascending else number
        step = 1 if self.ascending else self.files
        return [_key(2 * (first + step * i)) for i in range(self.rows)]

    def batch(self, updates: int, inserts: int, *, recent: bool, seed: int) -> pa.Array:
        """Keys to look up, distinct: of rows that there are, then of none."""
        random, total = np.random.default_rng(seed), self.files * self.rows
        low = total - max(total // 20, updates) if recent else 0
        known = low + random.choice(total - low, updates, replace=False)
        new = total - inserts + np.arange(inserts) if recent else random.choice(total, inserts, replace=False)
        return pa.array([_key(2 * int(i)) for i in known] + [_key(2 * int(i) + 1) for i in new], pa.string())


@dataclass(frozen=True)
class Measured:
    """A lookup."""

    index: str
    layout: Layout
    keys: str
    first: float
    cost: LookupCost

    def row(self) -> str:
        """Of the table in Markdown."""
        c, seconds = self.cost, f"{self.first:.2f} | {self.cost.seconds:.3f}"
        spread = "ascending" if self.layout.ascending else "spread"
        counts = f"{c.candidates} of {c.files} | {c.false_positives} | {c.bytes_read / 1e6:,.1f}"
        return f"| {self.index} | {self.layout.files} | {spread} | {self.keys} | {seconds} | {counts} |"


HEAD: Final = (
    "| index | files | keys of files | batch | first (s) | lookup (s) | candidates | false positives | read (MB) |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)


def _key(number: int) -> str:
    return f"order-{number:012d}"


def build(root: Path, layout: Layout) -> HudiTable:
    """The table with its metadata table; a base file a file group, four columns beside the key."""
    names = [f"c{i}" for i in range(_FURTHER)]
    schema = pa.schema([("id", pa.string()), *((name, pa.int64()) for name in names), (ORDER, pa.int64())])
    config = TableConfig("bench", ("id",), ORDER, 0, kind=TableKind(_TYPE, "record_index"))
    table = HudiTable.create(LocalStorage(root, fsync=False), config, schema, MetadataConfig())
    instant = table.begin()
    context = table.write_context(instant)
    writer, results = BaseWriter(context, {}, form=BaseFileForm(bloom_filter_fpp=layout.fpp)), []
    for number in range(layout.files):
        keys = pa.array(layout.keys(number), pa.string())
        random = np.random.default_rng(number)
        filled = {name: random.integers(0, 1 << 40, len(keys)) for name in names}
        rows = pa.table({RECORD_KEY_FIELD: keys, "id": keys, **filled, ORDER: np.full(len(keys), number)})
        group = FileGroupWrite("", f"{uuid5(NAMESPACE_URL, str(number))}-0", upserts=rows)
        changed = KeyChanges("", group.file_id, keys, keys[:0])
        results += [replace(result, keys=changed) for result in writer.write(table.storage, group)]
    table.commit(instant, results)
    return table


def measure(root: Path, layout: Layout, updates: int, inserts: int, indexes: Sequence[IndexType]) -> Iterator[Measured]:
    """Two batches of each index and kind of keys, the second one counted."""
    build(root / "t", layout)
    for index in indexes:
        for keys in ("uniform", "recent", "new"):
            table = HudiTable.open(LocalStorage(root / "t", fsync=False))
            kept = [p for p in table.config.metadata_partitions if p != "record_index" or index == "record_index"]
            table.state.config = replace(
                table.config.with_metadata_partitions(tuple(kept)), kind=TableKind(_TYPE, index)
            )
            store = ExternalStorePolicy(store="lmdb", path=str(root / f"lmdb-{keys}"))
            opened = open_index(table, LookupPolicy(external=store))
            answers: list[KeyLocations] = []
            known = updates if keys != "new" else (updates + inserts) // 1000
            for seed in (1, 2):
                asked = layout.batch(known, updates + inserts - known, recent=keys == "recent", seed=seed)
                answers.append(opened.locate(asked, pa.array([""] * len(asked), pa.string())))
                check(asked, answers[-1], known)
            yield Measured(index, layout, keys, answers[0].cost.seconds, answers[1].cost)


def check(asked: pa.Array, answer: KeyLocations, updates: int) -> None:
    """Every update is found, and no insert."""
    found = answer.file_ids.is_valid().to_numpy(zero_copy_only=False)
    if not found[:updates].all() or found[updates:].any():
        raise AssertionError(f"of {len(asked)} keys the index finds {int(found.sum())}, not the first {updates}")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=lambda text: [int(n) for n in text.split(",")], default=[10, 50, 200])
    parser.add_argument("--rows", type=int, default=20_000, help="of a file")
    parser.add_argument("--updates", type=int, default=8_000)
    parser.add_argument("--inserts", type=int, default=2_000)
    parser.add_argument("--fpp", type=float, default=LOOKUP_FPP, help="of the bloom filters")
    parser.add_argument("--indexes", type=lambda text: text.split(","), default=list(INDEXES))
    given = parser.parse_args()
    print(HEAD)
    for files in given.files:
        for ascending in (False, True):
            layout = Layout(files, given.rows, ascending, given.fpp)
            with tempfile.TemporaryDirectory() as root:
                for one in measure(Path(root), layout, given.updates, given.inserts, given.indexes):
                    print(one.row(), flush=True)


if __name__ == "__main__":
    main()
