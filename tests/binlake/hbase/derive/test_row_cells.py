"""The cells of rows: whatever happens to a table, what is kept on this machine gives what its file slices have."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import mkdtemp

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from binlake.hbase.derive.cell_store import CellStore
from binlake.hbase.derive.row_cells import RowCells
from hudilake.errors import UnsupportedError
from hudilake.services.cleaning import CleaningConfig, clean
from hudilake.services.restore import restore
from hudilake.table.table import HudiTable
from tests.binlake.hbase.derive.cells_table import (
    Cell,
    cells_table,
    commit_cells,
    compact_cells,
    distinct,
    in_order,
    new_cells_table,
)
from tests.hypothesis_profile import scaled

ROWS = ["a", "b", r"\x00", "aa", "BB", "Aa"]  # "BB" and "Aa" have one hash
CELLS = st.lists(
    st.builds(
        Cell,
        st.sampled_from(ROWS),
        st.sampled_from(["d", "m"]),
        st.sampled_from(["", "q", "r"]),
        st.integers(0, 2),
        st.sampled_from(["Put", "DeleteColumn"]),
        st.integers(0, 3),
        st.one_of(st.none(), st.binary(max_size=3)),
    ),
    min_size=1,
    max_size=12,
).map(distinct)


class KeptCells(RuleBasedStateMachine):
    """One table, changed by everything that changes file slices, and stores of several processes and bounds."""

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(mkdtemp(prefix="binlake-cells-"))
        self.commits: list[str] = []

    @initialize()
    def begin(self) -> None:
        """An empty table, and three stores of which one has no memory and one no disk."""
        self.table = new_cells_table(self.place / "table")
        self.new_process()

    @rule(cells=CELLS)
    def commit(self, cells: list[Cell]) -> None:
        """Rows, as the stream writes them."""
        self.commits.append(commit_cells(self.table, cells))

    @rule(cells=CELLS, dead=CELLS)
    def delete(self, cells: list[Cell], dead: list[Cell]) -> None:
        """Rows and deletes, as another writer may write them."""
        written = {(c.row, c.family, c.qualifier, c.timestamp, c.kind) for c in cells}
        gone = [c for c in dead if (c.row, c.family, c.qualifier, c.timestamp, c.kind) not in written]
        self.commits.append(commit_cells(self.table, cells, gone))

    @rule(first=CELLS, second=CELLS)
    def overtake(self, first: list[Cell], second: list[Cell]) -> None:
        """Two commits of which the one that began first completes last: its log file comes before a known one."""
        begun = self.table.begin()
        self.commits.append(commit_cells(self.table, second))
        self.look()
        commit_cells(self.table, first, instant=begun)

    @rule()
    def compact(self) -> None:
        """A compaction."""
        compact_cells(self.table)

    @rule()
    def clean(self) -> None:
        """A clean of everything but the newest slices."""
        clean(self.table, CleaningConfig(commits=1))

    @precondition(lambda self: len(self.commits) > 1)
    @rule(back=st.integers(2, 5))
    def restore(self, back: int) -> None:
        """Back to an earlier commit, if its files are still there."""
        at = max(len(self.commits) - back, 0)
        try:
            restore(self.table, self.commits[at])
        except UnsupportedError:  # cleaned meanwhile: nothing was restored
            return
        self.commits = self.commits[: at + 1]
        self.table = HudiTable.open(self.table.storage)

    @rule()
    def new_process(self) -> None:
        """A process begins with what the directories have."""
        self.open = {
            "usual": CellStore(self.place / "usual"),
            "spills": CellStore(self.place / "spills", max_memory_bytes=0),
            "no room": CellStore(self.place / "no room", max_disk_bytes=0),
        }

    @rule(which=st.integers(0, 99), at=st.integers(0, 999), how=st.sampled_from(["cut", "changed", "gone"]))
    def damage(self, which: int, at: int, how: str) -> None:
        """A local file is cut, changed or gone when a process begins. ``at``: in thousandths."""
        files = sorted((self.place / "spills").rglob("*.cells")) + sorted((self.place / "usual").rglob("*.cells"))
        if files:
            file = files[which % len(files)]
            content = bytearray(file.read_bytes())
            place = at * len(content) // 1000
            content[place] ^= 0xFF
            file.unlink()
            if how != "gone":
                file.write_bytes(bytes(content[:place]) if how == "cut" else bytes(content))
        self.new_process()

    @invariant()
    def look(self) -> None:
        """All stores give what the slices have, of all rows and of one."""
        for rows in (pa.array([*ROWS, "none"]), pa.array(["Aa"])):
            expected = in_order(RowCells(self.table).of(rows))
            for name, store in self.open.items():
                assert in_order(RowCells(self.table, store).of(rows)).equals(expected), name
        assert self.open["spills"].memory_bytes == 0
        assert self.open["no room"].disk_bytes == 0

    def teardown(self) -> None:
        """Nothing is left."""
        shutil.rmtree(self.place)


TestKeptCells = KeptCells.TestCase
TestKeptCells.settings = settings(max_examples=scaled(200, least=8, divisor=20), stateful_step_count=12)


def test_a_delete_keeps_back_what_comes_later(tmp_path: Path) -> None:
    """A delete in the log beats an older cell of a later log file; a run of that file alone would show it."""
    table, store = new_cells_table(tmp_path / "table"), CellStore(tmp_path / "store")
    cell = Cell("a", "d", "q", 1, "Put", 5, b"x")
    commit_cells(table, [cell])
    assert len(RowCells(table, store).of(pa.array(["a"]))) == 1
    commit_cells(table, [], [cell])
    assert len(RowCells(table, store).of(pa.array(["a"]))) == 0
    commit_cells(table, [Cell("a", "d", "q", 1, "Put", 4, b"older")])
    assert len(RowCells(table, store).of(pa.array(["a"]))) == 0


@pytest.mark.full
def test_large_values(tmp_path: Path) -> None:
    """Values of 450 KB: runs of a bounded size, of which a look-up reads what it returns."""
    table, store = new_cells_table(tmp_path / "table"), CellStore(tmp_path / "store", max_memory_bytes=1 << 20)
    cells = [Cell(f"r{n:03}", "d", "q", 1, "Put", n, bytes([n % 256]) * 450_000) for n in range(300)]
    commit_cells(table, cells)
    asked = pa.array(["r007", "r299"])
    for _ in range(2):
        found = in_order(RowCells(table, store).of(asked))
        assert found.equals(cells_table([cells[7], cells[299]]))
        assert store.memory_bytes <= 1 << 20
        assert 135_000_000 < store.disk_bytes < 140_000_000
        compact_cells(table)
    assert max(run.nbytes for kept in store._groups.values() for run in kept.runs) < 70 << 20


def test_old_local_files_make_room(tmp_path: Path) -> None:
    """Files of another table, which nobody in this process uses, go first; what finds no room is read from slices."""
    tables = [new_cells_table(tmp_path / name) for name in ("one", "two")]
    for table in tables:
        commit_cells(table, [Cell(row, "d", "q", 1, "Put", 1, b"x") for row in ROWS])
        compact_cells(table)
    need = 4 * max(piece.base_size for piece in tables[1].file_slices())
    rows = pa.array(ROWS)
    first = CellStore(tmp_path / "store")
    RowCells(tables[0], first).of(rows)
    before = set((tmp_path / "store").rglob("*.cells"))
    store = CellStore(tmp_path / "store", max_disk_bytes=need + first.disk_bytes - 1)
    assert in_order(RowCells(tables[1], store).of(rows)).num_rows == len(ROWS)
    after = set((tmp_path / "store").rglob("*.cells"))
    assert before - after
    assert after - before
    assert store.disk_bytes <= store.max_disk_bytes


@pytest.mark.parametrize("threads", [2])
def test_one_store_for_several_threads(tmp_path: Path, threads: int) -> None:
    """Several threads ask while a file group is taken in for the first time."""
    from concurrent.futures import ThreadPoolExecutor

    table, store = new_cells_table(tmp_path / "table"), CellStore(tmp_path / "store")
    commit_cells(table, [Cell(f"r{n}", "d", "q", 1, "Put", 1, b"x") for n in range(1000)])
    compact_cells(table)
    rows = pa.array([f"r{n}" for n in range(0, 1000, 7)])
    with ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(lambda _: in_order(RowCells(table, store).of(rows)), range(8)))
    assert all(one.equals(found[0]) for one in found)
    assert len(found[0]) == len(rows)
