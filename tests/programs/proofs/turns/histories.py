"""Histories of one table that hudi-rs and binlake write, in turns or at the same time."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

import hudilake
from hudilake.errors import LakeError, TransientError
from hudilake.policies import TableType
from tests.judges import hudi_rs
from tests.programs.proofs.turns.writer import RustWriter

COLUMNS = pa.schema([("id", pa.string()), ("v", pa.string()), ("ts", pa.int64())])
BUCKETS = 4
_KEYS, _TURNS, _TRIES = 12, 16, 8


def new_table(root: Path, kind: TableType) -> hudilake.Table:
    """An empty table that hudi-rs can write: it refuses metadata tables with bloom filters."""
    policy = hudilake.MetadataPolicy(bloom_filters=False)
    return hudilake.create_table(
        str(root), COLUMNS, key="id", order_by="ts", type=kind, buckets=BUCKETS, metadata=policy
    )


def rows_of(cells: Mapping[str, tuple[str, int]]) -> pa.Table:
    """Rows by key: their text and their order."""
    return pa.Table.from_pylist([{"id": key, "v": v, "ts": ts} for key, (v, ts) in cells.items()], COLUMNS)


def shown(rows: pa.Table) -> list[tuple[str, str]]:
    """The key and the text of each row, sorted; a key that is there twice is seen."""
    return sorted(zip(rows["id"].to_pylist(), rows["v"].to_pylist(), strict=True))


@dataclass
class TurnsHistory:
    """A history that a seed draws.

    Args:
        root: of the table.
        kind: of the table.
        seed: what decides each turn.
        new_keys: whether hudi-rs writes keys that are not there.
        truth: what the table must hold.
        writes: how many writes each side made.
    """

    root: Path
    kind: TableType
    seed: int
    new_keys: bool
    truth: dict[str, tuple[str, int]] = field(default_factory=dict)
    writes: dict[str, int] = field(default_factory=lambda: {"ours": 0, "theirs": 0})

    def run(self) -> str:
        """Take turns; what is wrong, or nothing. Raises LakeError with which our writer stopped."""
        draw, table = random.Random(self.seed), new_table(self.root, self.kind)
        self._ours(table, {f"k{n}": ("ours0", 1) for n in range(_KEYS)})
        with RustWriter(self.root) as theirs:
            for turn in range(2, 2 + _TURNS):
                if draw.random() < 0.5:
                    chosen = draw.sample(range(2 * _KEYS), 3)
                    self._ours(table, {f"k{n}": (f"ours{turn}", turn) for n in chosen})
                else:
                    known = sorted(self.truth)
                    key = f"n{draw.randrange(99)}" if self.new_keys else draw.choice(known)
                    delete = key in self.truth and draw.random() < 0.2
                    why = theirs.delete(key) if delete else theirs.upsert(key, f"theirs{turn}", turn)
                    if why:
                        return f"hudi-rs failed at turn {turn}: {why}"
                    self.writes["theirs"] += 1
                    if delete:
                        del self.truth[key]
                    else:
                        self.truth[key] = f"theirs{turn}", turn
                if wrong := self.differs(table, turn):
                    return wrong
        self._ours(table, {})
        return self.differs(table, 2 + _TURNS)

    def _ours(self, table: hudilake.Table, cells: Mapping[str, tuple[str, int]]) -> None:
        table.refresh()
        cells = cells or {min(self.truth): self.truth[min(self.truth)]}
        table.upsert(rows_of(cells))
        self.truth |= cells
        self.writes["ours"] += 1

    def differs(self, table: hudilake.Table, turn: int) -> str:
        """What both readers show otherwise than the truth, or nothing."""
        table.refresh()
        expected = sorted((key, text) for key, (text, _) in self.truth.items())
        for who, rows in (("binlake", table.scan().to_arrow()), ("hudi-rs", hudi_rs.snapshot(self.root))):
            if shown(rows) != expected:
                only = [set(shown(rows)) - set(expected), set(expected) - set(shown(rows))]
                return f"turn {turn}: {who} has {len(shown(rows))} rows of {len(expected)}: {only}"[:600]
        return ""


@dataclass
class RaceHistory:
    """Both write at the same time, each keys of its own that are all there from the beginning.

    Args:
        root: of the table.
        kind: of the table.
        seed: which keys are whose.
        said: what our writer raised, in its order.
        kept: how many acknowledged writes of each side are in the table.
    """

    root: Path
    kind: TableType
    seed: int
    said: list[LakeError] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)

    def run(self) -> str:
        """Race; what is wrong, or nothing.

        What our writer acknowledged is in the table, or its next write stops. What hudi-rs acknowledged may be gone.
        """
        keys = [f"k{n}" for n in range(_KEYS)]
        random.Random(self.seed).shuffle(keys)
        table = new_table(self.root, self.kind)
        table.upsert(rows_of(dict.fromkeys(keys, ("first", 1))))
        done: dict[str, dict[str, str]] = {"ours": {}, "theirs": {}}
        with RustWriter(self.root) as theirs, ThreadPoolExecutor(2) as pool:

            def ours(key: str, text: str, order: int) -> bool:
                return self._acknowledged(lambda: table.upsert(rows_of({key: (text, order)})))

            def rust(key: str, text: str, order: int) -> bool:
                return not theirs.upsert(key, text, order)

            def write(side: str, write_one: Callable[[str, str, int], bool], own: list[str]) -> None:
                for order in range(2, 2 + _TRIES):
                    for key in own[:2]:
                        if write_one(key, f"{side}{order}", order):
                            done[side][key] = f"{side}{order}"

            sides = [
                pool.submit(write, "ours", ours, keys[: _KEYS // 2]),
                pool.submit(write, "theirs", rust, keys[_KEYS // 2 :]),
            ]
            for side in sides:
                side.result()
        return self.judged(table, done)

    def judged(self, table: hudilake.Table, done: Mapping[str, Mapping[str, str]]) -> str:
        """What is wrong with the table, or nothing. ``done``: the acknowledged texts by side and key."""
        stopped = not self._acknowledged(lambda: table.upsert(rows_of({"k0": ("last", 99)})))
        there = dict(shown(hudilake.open_table(str(self.root)).scan().to_arrow())) | {"k0": ""}
        for side, cells in done.items():
            cells = {key: text for key, text in cells.items() if key != "k0"}
            kept = sum(there.get(key) == text for key, text in cells.items())
            self.kept[side] = f"{kept} of {len(cells)}"
            if side == "ours" and kept < len(cells) and not stopped:
                return f"{len(cells) - kept} acknowledged rows of ours are gone, and our writer goes on"
        return ""

    def _acknowledged(self, write: Callable[[], object]) -> bool:
        """Whether a write ended well. What another writer overtook is written again."""
        for _ in range(_TRIES):
            try:
                write()
                return True
            except TransientError as error:
                self.said.append(error)
            except LakeError as error:
                self.said.append(error)
                return False
        return False
