"""A table with a past: commits and compactions one after the other, and what it held at every moment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hudilake.errors import UnsupportedError
from hudilake.metadata.config import MetadataConfig
from hudilake.read import Snapshot, TableReader
from hudilake.services.compaction import CompactedFile, CompactionConfig, CompactionOperation, run
from hudilake.services.fsck import fsck
from hudilake.storage.base import Storage
from hudilake.table.table import HudiTable
from tests.hudilake.lake import (
    SCHEMA,
    Change,
    Model,
    Row,
    check,
    commit,
    config,
    deletes,
    sorted_rows,
    storage_at,
    upserts,
)

COMPACTION = CompactionConfig(after_commits=1, tombstone_retention_hours=0)
INDEX = MetadataConfig(compact_after=4, compact_at_most=4, archive_after=12, archive_keep=6)


def serially(
    task: Callable[[CompactionOperation], CompactedFile], operations: Sequence[CompactionOperation]
) -> list[CompactedFile]:
    """The tasks one after the other."""
    return [task(operation) for operation in operations]


@dataclass
class Aged:
    """One table. ``moments``: after each write its instant and the rows that the table held."""

    path: Path
    indexed: bool
    partitioned: bool = True
    buckets: int = 1
    model: Model = field(default_factory=Model)
    moments: list[tuple[str, list[Row]]] = field(default_factory=list)
    order: int = 100
    table: HudiTable = field(init=False)

    def __post_init__(self) -> None:
        made = config(buckets=self.buckets, partitioned=self.partitioned)
        self.table = HudiTable.create(storage_at(self.path), made, SCHEMA, INDEX if self.indexed else None)

    def reopen(self, storage: Storage | None = None) -> HudiTable:
        """As a new process would find it."""
        self.table = HudiTable.open(storage or storage_at(self.path), metadata=INDEX if self.indexed else None)
        return self.table

    def write(self, changes: Sequence[Change] | None = None, extra: dict[str, str] | None = None) -> str:
        """One commit: some upserts and a delete."""
        self.order += 1
        turn = self.order
        if changes is None:
            changes = upserts([turn % 4, 4 + turn % 3], turn, f"v{turn}-") + deletes([(turn + 1) % 4], turn)
        self.model.apply(changes)
        instant = commit(self.table, changes, extra)
        self.moments.append((instant, self.model.rows()))
        assert self.table.maintain() is None
        return instant

    def compact(self) -> str:
        """A compaction of all that there is."""
        (done,) = run(self.table, COMPACTION, serially)
        self.moments.append((done.requested_time, self.model.rows()))
        return done.requested_time

    def live(self, rounds: int, commits: int = 2) -> None:
        """Rounds of some commits and a compaction."""
        for _ in range(rounds):
            for _ in range(commits):
                self.write()
            self.compact()

    def as_of(self, instant: str) -> list[Row]:
        """The rows of that time through our reader."""
        reader = TableReader.open(str(self.path))
        plan = reader.plan(Snapshot(instant), columns=SCHEMA.names)
        return sorted_rows(r for batch in reader.batches(plan) for r in batch.to_pylist())

    def readable(self) -> list[bool]:
        """For every moment whether it can be read; then it is read right."""
        answers = []
        for instant, rows in self.moments:
            try:
                assert self.as_of(instant) == rows, instant
                answers.append(True)
            except UnsupportedError:
                answers.append(False)
        return answers

    def check(self, tolerated: tuple[str, ...] = ("info",)) -> None:
        """Our reader and hudi-rs agree with the model, and fsck finds nothing that matters."""
        check(self.path, self.model)
        found = [f"{f.what}: {f.path}" for f in fsck(storage_at(self.path)).findings if f.severity not in tolerated]
        assert found == [], found
