"""The pieces of work on a lake: batches of the stream, and the services of its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from binlake.decode.changes import SourceTable
from binlake.tables.lake import Lake
from binlake.tables.lake_table import LakeTable
from binlake.tables.rebucket import rebucket, resize
from binlake.tables.services.policy import clustering_of
from hudilake.format.definition.bucketing import SimpleBuckets
from hudilake.format.timeline.instant import REPLACE_COMMIT
from hudilake.policies import ClusteringPolicy, OrderPolicy
from hudilake.services.archival import ArchivalConfig, archive
from hudilake.services.cleaning import CleaningConfig, clean
from hudilake.services.clustering.config import ClusteringConfig
from hudilake.services.compaction import CompactionConfig, run
from hudilake.services.planned import ServiceReport, ServiceSteps, run_planned
from hudilake.services.rebucket.steps import rings_of
from hudilake.services.rebucket.units import BucketChange
from hudilake.services.restore import restore
from hudilake.services.savepoint import create_savepoint, delete_savepoint
from hudilake.storage import Storage
from hudilake.table.table import HudiTable
from tests.programs.crash_points.story import TABLES, Place, Rows, pasts, run_to, trouble, wrong_rows

_BEFORE, _LAST = 2, 4


@dataclass
class Batch:
    """A batch of the stream, with a record for the quarantine; ``more``: settings; ``before``: those of the batches
    before it."""

    more: Mapping[str, Any] = field(default_factory=dict)
    first: bool = False
    before: Mapping[str, Any] = field(default_factory=dict)
    _pasts: dict[str, dict[str, Rows]] = field(default_factory=dict)

    def prepare(self, place: Place) -> None:
        if self.first:
            place.open().write("empty", b"")
            return
        for number in range(_BEFORE + 1):
            run_to(number, place, place.open(), place.settings(**self.before))
        self._pasts = pasts(place, _BEFORE)

    def do(self, place: Place, root: Storage) -> None:
        run_to(_BEFORE + 1, place, root, place.settings(**self.more))

    def trouble(self, place: Place) -> list[str]:
        return wrong_rows(place, _BEFORE + 1)

    def go_on(self, place: Place) -> list[str]:
        run_to(_LAST, place, place.open(), place.settings(**self.more))
        return trouble(place, _LAST, self._pasts)


Service = Callable[[HudiTable, list[str]], object]


@dataclass
class Upkeep:
    """A service of both tables, which changes no row. ``service``: takes a table and its commits' times, oldest first.
    ``before``: what is done to them first. ``keeps``: how many of the stream's last commits it must keep readable.
    ``more``: settings."""

    service: Service
    before: Service | None = None
    keeps: int = 4
    more: Mapping[str, Any] = field(default_factory=dict)
    _pasts: dict[str, dict[str, Rows]] = field(default_factory=dict)

    def prepare(self, place: Place) -> None:
        for number in range(_BEFORE + 2):
            run_to(number, place, place.open(), place.settings(**self.more))
        self._pasts = pasts(place, _BEFORE + 1)
        if self.before is not None:
            self._each(place, place.open(), self.before)

    def do(self, place: Place, root: Storage) -> None:
        self._each(place, root, self.service)

    def _each(self, place: Place, root: Storage, service: Service) -> None:
        lake = Lake(root)
        for name in TABLES:
            table = lake.get(place.settings(**self.more).table_rules(SourceTable("shop", name)))
            assert table is not None
            service(table.hudi, list(self._pasts[name]))

    def trouble(self, place: Place) -> list[str]:
        return wrong_rows(place, _BEFORE + 1)

    def _kept(self) -> list[str]:
        return [instant for mine in self._pasts.values() for instant in list(mine)[len(mine) - self.keeps :]]

    def go_on(self, place: Place) -> list[str]:
        run_to(_LAST, place, place.open(), place.settings(**self.more))
        return trouble(place, _LAST, self._pasts, self._kept())


@dataclass
class Restored(Upkeep):
    """Both tables are restored to the second commit, and the stream delivers again what was taken back."""

    def prepare(self, place: Place) -> None:
        super().prepare(place)
        kept = {name: dict(list(mine.items())[:2]) for name, mine in self._pasts.items()}
        self._pasts = kept

    def trouble(self, place: Place) -> list[str]:
        run_to(_BEFORE + 1, place, place.open(), place.settings(**self.more))
        return super().trouble(place)


@dataclass
class Rebucketed(Upkeep):
    """Both tables move from one bucket to three. Their rows and pasts stay."""

    def _each(self, place: Place, root: Storage, service: Service) -> None:
        settings, lake = place.settings(**self.more), Lake(root)
        for name in TABLES:
            table = lake.get(settings.table_rules(SourceTable("shop", name)))
            assert table is not None
            rebucket(table, SimpleBuckets(3), settings.name, CompactionConfig(), serially)

    def go_on(self, place: Place) -> list[str]:
        found = super().go_on(place)
        lake = Lake(place.open())
        for name in TABLES:
            table = lake.get(place.settings(**self.more).table_rules(SourceTable("shop", name)))
            if table is None or table.hudi.config.bucket_count != 3:
                found.append(f"{name} has not three buckets")
        return found


@dataclass
class Resized(Upkeep):
    """The only bucket of every partition of both tables is split. Their rows and pasts stay."""

    def _each(self, place: Place, root: Storage, service: Service) -> None:
        settings, lake = place.settings(**self.more), Lake(root)
        for name in TABLES:
            table = lake.get(settings.table_rules(SourceTable("shop", name)))
            assert table is not None
            paths = {piece.partition_path for piece in table.hudi.file_slices()}
            whole = [BucketChange(path, (0,)) for path in sorted(paths) if rings_of(table.hudi, "t").count(path) == 1]
            resize(table, whole, settings.name, CompactionConfig(), serially)

    def go_on(self, place: Place) -> list[str]:
        found = super().go_on(place)
        lake = Lake(place.open())
        for name in TABLES:
            table = lake.get(place.settings(**self.more).table_rules(SourceTable("shop", name)))
            if table is None or not any(len(ring.nodes) == 2 for ring in rings_of(table.hudi, "t").partitions.values()):
                found.append(f"{name} has no bucket that was split")
        return found


@dataclass
class Clustered(Upkeep):
    """The rows of both tables are laid out anew. They stay, and so do their pasts."""

    def _each(self, place: Place, root: Storage, service: Service) -> None:
        settings, lake = place.settings(**self.more), Lake(root)
        for name in TABLES:
            table = lake.get(settings.table_rules(SourceTable("shop", name)))
            assert table is not None
            lay_out_anew(table)

    def go_on(self, place: Place) -> list[str]:
        found = super().go_on(place)
        self.do(place, place.open())  # the file that begins one may come late: that one was rolled back
        for name in TABLES:
            timeline = HudiTable.open(place.open().sub(f"shop/{name}")).timeline
            if timeline.pending() or not any(write.action == REPLACE_COMMIT for write in timeline.completed()):
                found.append(f"{name} was not clustered")
        return [*found, *wrong_rows(place, _LAST)]


def lay_out_anew(table: LakeTable) -> None:
    """All file groups, by their owners: what is planned, and what would become better."""
    order = OrderPolicy(columns=("owner",), curve="linear")
    config = ClusteringConfig(ClusteringPolicy(select="all", order_by=order))
    service = replace(clustering_of(table, serially), config=config)
    run_planned(service, ServiceSteps(now=True), ServiceReport(table.rules.path))


def serially(task: Callable[[Any], Any], operations: Any) -> list[Any]:  # noqa: ANN401 - any task
    """One after the other, in this thread."""
    return [task(operation) for operation in operations]


def compact(table: HudiTable, _: list[str]) -> None:
    """Compacts all log files; done again, only what is pending."""
    done = any(i.action == "commit" for i in table.timeline.completed())
    run(table, CompactionConfig(after_commits=1 << 20, log_ratio=None), serially, now=not done)


def compact_twice(table: HudiTable, commits: list[str]) -> None:
    """So that the log files are in no slice that a clean keeps."""
    config = CompactionConfig(after_commits=1 << 20, log_ratio=None)
    run(table, config, serially, now=True)
    instant = table.begin()
    table.commit(instant, [])
    run(table, config, serially, now=True)


def clean_up(table: HudiTable, _: list[str]) -> None:
    """Deletes what only time travel before the last write needs."""
    clean(table, CleaningConfig(commits=1))


def put_away(table: HudiTable, _: list[str]) -> None:
    """Moves all instants but two to the history."""
    archive(table, ArchivalConfig(2, 3))


def hold(table: HudiTable, commits: list[str]) -> None:
    """A savepoint of the first commit is made, one of the second is deleted."""
    create_savepoint(table, commits[0], "test")
    create_savepoint(table, commits[1], "test")
    delete_savepoint(table, commits[1])


def go_back(table: HudiTable, commits: list[str]) -> None:
    """Restores the table to its second commit."""
    restore(table, commits[1], metadata_config_of(table))


def metadata_config_of(table: HudiTable) -> Any:  # noqa: ANN401 - the same type
    """The settings that its metadata table has."""
    return table.state.metadata_config
