"""Histories of a binlog's stream that die, fall behind, are restored and quarantined at random: the state that a moment
gives is what the source had there, or the moment is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random

import pytest

from binlake.decode.changes import SourceTable
from binlake.position.commit_record import CommitNotes, CommitRecord
from binlake.position.cuts import Moments
from binlake.position.recorded import NO_TRANSACTIONS, RecordedLoad, RecordedRepair, RecordedTransactions, load_stream
from binlake.position.waymarks import QuarantinedPlace, TableEvidence
from binlake.rows.upsert.route import Counts
from binlake.schema.rules.entries import DdlEntry
from binlake.source.binlog.places import offset_of
from binlake.source.database.snapshot import SourcePosition
from binlake.source.offsets import Offsets, Ranges
from tests.binlake.position.test_cuts import Committed

TOPIC, STREAM = "binlog/4711", "shop"
_UNIT = offset_of("b.000001", 1) - offset_of("b.000001", 0)
_FILE = offset_of("b.000001", 0)
TABLES = 3


def offset(position: int) -> int:
    return _FILE + position * _UNIT


@dataclass
class Version:
    """A commit of a table, the places of the changes that it has then, and how far the stream has come in it."""

    commit: Committed
    changes: frozenset[int]
    standing: int
    started: int


@dataclass
class History:
    """A stream over tables, whose source has a change at each position that is a transaction's."""

    draw: Random
    ends: list[int] = field(default_factory=list)
    table_of: dict[int, int] = field(default_factory=dict)
    versions: list[list[Version]] = field(default_factory=lambda: [[] for _ in range(TABLES)])
    restores: list[list[str]] = field(default_factory=lambda: [[] for _ in range(TABLES)])
    lacks: list[list[QuarantinedPlace]] = field(default_factory=lambda: [[] for _ in range(TABLES)])
    behind: dict[int, int] = field(default_factory=dict)
    position: int = 0
    batches: int = 0
    clock: int = 1

    def __post_init__(self) -> None:
        at = 0
        while at < 120:
            at += self.draw.randrange(1, 9)
            self.ends.append(at)
        self.table_of = {position: self.draw.randrange(TABLES) for position in range(at)}

    def run(self) -> None:
        while self.position < self.ends[-1]:
            moves = [self.batch, self.die, self.catch_up, self.restore, self.lose_ledger]
            [move] = self.draw.choices(moves, [12, 3, 4, 1, 1])
            move()
        if self.draw.random() < 0.3:
            self.restore(noticed=False)

    def end(self) -> tuple[int, bool]:
        """Where a portion ends, and whether within a transaction."""
        if self.draw.random() < 0.15:
            most = min(self.ends[-1], self.position + 12)
            end = self.draw.randrange(self.position + 1, most + 1)
            return end, end not in self.ends
        return self.draw.choice([end for end in self.ends if end > self.position][:4]), False

    def batch(self, tables: int = TABLES) -> None:
        end, split = self.end()
        for table in range(tables):
            mine = [one for one in range(self.position, end) if self.table_of[one] == table]
            if not mine:
                continue
            if table in self.behind:
                continue
            if self.draw.random() < 0.08:
                self.behind[table] = self.position
                continue
            if self.draw.random() < 0.03 and mine[-1] >= self.standing(table):
                self.lacks[table].append(QuarantinedPlace(TOPIC, 0, offset(mine[-1])))
                mine.pop()
            self.commit(table, self.position, end, mine, split=split, alone=False)
        if tables == TABLES:
            self.position, self.batches = end, self.batches + 1

    def die(self) -> None:
        """Some of the tables have committed; the ledger does not know it."""
        held = dict(self.behind)
        self.batch(self.draw.randrange(TABLES))
        self.behind = held

    def catch_up(self) -> None:
        for table, start in list(self.behind.items()):
            if start < self.position:
                mine = [one for one in range(start, self.position) if self.table_of[one] == table]
                self.commit(table, start, self.position, mine, split=False, alone=True)
            del self.behind[table]

    def restore(self, *, noticed: bool = True) -> None:
        table = self.draw.randrange(TABLES)
        versions = self.versions[table]
        if len(versions) < 2:
            return
        del versions[self.draw.randrange(1, len(versions)) :]
        self.clock += 2
        self.restores[table].append(f"{self.clock:017}")
        if noticed:  # else the ledger says nothing of it yet
            self.behind[table] = min(versions[-1].standing, self.behind.get(table, self.position))

    def lose_ledger(self) -> None:
        newest = [versions[-1].started for versions in self.versions if versions]
        if len(newest) == TABLES:
            self.position, self.batches, self.behind = min([self.position, *newest]), 0, {}

    def standing(self, table: int) -> int:
        return self.versions[table][-1].standing if self.versions[table] else 0

    def commit(self, table: int, start: int, end: int, mine: list[int], *, split: bool, alone: bool) -> None:
        standing = self.standing(table)
        if not [one for one in mine if one >= standing]:
            return
        had = self.versions[table][-1].changes if self.versions[table] else frozenset()
        self.clock += 2
        until = max(end, standing)
        note = RecordedTransactions(
            None if alone or split else f"0-1-{end}",
            split,
            NO_TRANSACTIONS,
            {0: offset(end)},
            {0: offset(max(start, standing))},
            alone=True,
        )
        ranges = Ranges(Offsets({TOPIC: {0: offset(start)}}).ranges_to(Offsets({TOPIC: {0: offset(end)}})))
        positions = {STREAM: Offsets({TOPIC: {0: offset(until)}})}
        record = CommitRecord(
            STREAM, 1, Counts(), ranges=ranges, positions=positions, notes=CommitNotes(transactions=note)
        )
        committed = Committed(f"{self.clock:017}", f"{self.clock + 1:017}", record.to_extra())
        changes = had | frozenset(one for one in mine if one >= standing)
        self.versions[table].append(Version(committed, changes, until, start))

    def moments(self) -> Moments:
        return Moments(
            STREAM,
            {
                str(table): TableEvidence(
                    [version.commit for version in self.versions[table]],
                    self.restores[table],
                    {0: offset(self.behind.get(table, self.position))} if self.batches else None,
                    lacks=self.lacks[table],
                    binlog=True,
                )
                for table in range(TABLES)
            },
        )

    def wrong(self) -> Iterator[tuple[int, int, bool]]:
        """(position, table, whether it is wrong) for all that is not refused."""
        moments = self.moments()
        for position in range(self.ends[-1] + 3):
            cut = moments.at({0: offset(position)})
            for table, requested in cut.commits.items():
                [mine] = [v for v in self.versions[int(table)] if v.commit.requested == requested]
                there = {one for one, its in self.table_of.items() if its == int(table) and one < position}
                yield position, int(table), mine.changes != there


@pytest.mark.first(1)
@pytest.mark.parametrize("first", range(0, 400, 100))
def test_no_moment_of_a_random_history_is_wrong(first: int) -> None:
    had = refused = torn = 0
    for seed in range(first, first + 100):
        history = History(Random(seed))
        history.run()
        told = list(history.wrong())
        assert [one for one in told if one[2]] == [], seed
        had += len(told)
        refused += TABLES * (history.ends[-1] + 3) - len(told)
        moments = history.moments()
        for name, place in moments.transactions.items():
            torn += moments.at(place).place != {0: offset(int(name.rpartition("-")[2]))}
    assert had > 2_000  # most places lie inside a batch
    assert refused > 5_000
    assert torn == 0


@pytest.mark.first(1)
@pytest.mark.parametrize("forgotten", ["restores", "behind", "lacks"])
def test_what_is_not_heeded_is_noticed(forgotten: str) -> None:
    """The control."""
    wrong = 0
    for seed in range(100):
        history = History(Random(seed))
        history.run()
        setattr(history, forgotten, {} if forgotten == "behind" else [[] for _ in range(TABLES)])
        wrong += sum(one[2] for one in history.wrong())
    assert wrong > 10


def plain(*batches: tuple[int, int]) -> History:
    """A history of one table with a change at each position, in these batches."""
    history = History(Random(1))
    history.table_of = dict.fromkeys(history.table_of, 0)
    for start, end in batches:
        history.commit(0, start, end, list(range(start, end)), split=False, alone=False)
    history.position, history.batches = batches[-1][1], 1
    return history


def state(history: History, position: int, **more: object) -> str:
    """The commit of the table at a position, or why there is none."""
    commits = [version.commit for version in history.versions[0]]
    evidence = TableEvidence(commits, reached={0: offset(history.position)}, binlog=True)
    cut = Moments(STREAM, {"t": replace(evidence, **more)}).at({0: offset(position)})  # type: ignore[arg-type]
    return cut.missing["t"] if cut.missing else str(int(cut.commits["t"]))


def statement(position: int) -> DdlEntry:
    return DdlEntry(SourceTable("s", "t"), 1 << 32 | position, None, "", "d", "ALTER", ())


def other(clock: int, stream: str, notes: CommitNotes) -> Committed:
    return Committed(f"{clock:017}", f"{clock + 1:017}", CommitRecord(stream, 0, Counts(), notes=notes).to_extra())


def test_a_statement_is_carried_out_before_the_state_behind_it() -> None:
    history = plain((0, 10), (10, 20))
    commits = [version.commit for version in history.versions[0]]
    carried = other(100, f"{STREAM}.ddl", CommitNotes(ddl=(statement(15),)))
    assert state(history, 20) == str(int(commits[1].requested))
    assert state(history, 20, commits=[*commits, carried]) == "100"
    assert state(history, 10, commits=[*commits, carried]) == str(int(commits[0].requested))
    assert "not carried out yet" in state(history, 20, waiting=[offset(15)])
    later = other(100, f"{STREAM}.ddl", CommitNotes(ddl=(statement(25),)))
    reached = {0: offset(30)}
    assert state(history, 25, commits=[*commits, later], reached=reached) == str(int(commits[1].requested))
    assert state(history, 26, commits=[*commits, later], reached=reached) == "100"


def test_rows_of_a_load_or_a_repair_are_no_state_before_the_place_where_they_were_read() -> None:
    def read(position: int) -> SourcePosition:
        return SourcePosition("b.000001", position, 4711)

    load = RecordedLoad(read(5), "d", 3, done=True, reached=read(12))
    loaded = other(1, load_stream(STREAM), CommitNotes(load=load))
    history = plain((5, 10), (10, 20), (20, 30))
    commits = [version.commit for version in history.versions[0]]
    assert "at a later place" in state(history, 10, commits=[loaded, *commits], loaded=load)
    assert "at a later place" in state(history, 10, commits=commits, loaded=load)  # the load's commit is archived
    assert state(history, 20, commits=[loaded, *commits], loaded=load) == str(int(commits[1].requested))
    assert state(history, 20, commits=[loaded], loaded=load, reached={0: offset(20)}) == "1"
    assert "not come so far" in state(history, 20, commits=[loaded], loaded=load, reached={0: offset(19)})
    unsure = replace(load, reached=None)
    assert "at a later place" in state(history, 20, commits=commits, loaded=unsure)
    repair = CommitNotes(repaired=RecordedRepair("b.000001:25 (0-1-25)", 1, 0))
    mended = other(int(commits[0].requested) + 1, f"{STREAM}.verify", repair)
    assert "at a later place" in state(history, 20, commits=[*commits, mended])
    assert state(history, 10, commits=[*commits, mended]) == str(int(commits[0].requested))
    assert state(history, 30, commits=[*commits, mended]) == str(int(commits[2].requested))


def test_a_quarantined_record_is_missing_until_it_is_brought() -> None:
    history = plain((0, 10), (10, 20))
    second = int(history.versions[0][1].commit.requested)
    lacks = QuarantinedPlace(TOPIC, 0, offset(12))
    assert "in quarantine" in state(history, 20, lacks=[lacks])
    assert state(history, 10, lacks=[lacks]) != state(history, 20, lacks=[lacks])
    assert "in quarantine" in state(history, 20, lacks=[replace(lacks, since=f"{second + 1:017}")])
    assert state(history, 20, lacks=[replace(lacks, since=f"{second - 1:017}")]) == str(second)
