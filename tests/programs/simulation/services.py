"""What services do to a table in a history: one call for a step."""

from __future__ import annotations

import contextlib

from binlake.tables.lake_table import LakeTable
from binlake.tables.rebucket import rebucket, resize
from hudilake.errors import ConfigError
from hudilake.format.definition.bucketing import SimpleBuckets
from hudilake.services.archival import ArchivalConfig, archive
from hudilake.services.cleaning import CleaningConfig, clean
from hudilake.services.compaction import CompactionConfig, run
from hudilake.services.rebucket.units import BucketChange
from hudilake.services.savepoint import create_savepoint, delete_savepoint
from hudilake.table.table import HudiTable
from tests.programs.crash_points.works import lay_out_anew, serially
from tests.programs.simulation.steps import Happening, Step

_COMPACTION = CompactionConfig(after_commits=1 << 20, log_ratio=None)
_RETENTION = 3


def serve(table: HudiTable, step: Step, *, undecided: bool) -> None:
    """Compaction, clean, archival or a savepoint. ``undecided``: somebody asks the timeline for all commits still."""
    if step.what is Happening.COMPACT:
        if not table.config.kind.copies:
            run(table, _COMPACTION, serially, now=True)
    elif step.what is Happening.CLEAN:
        clean(table, CleaningConfig(commits=_RETENTION, hours=None))
    elif step.what is Happening.ARCHIVE:
        if not undecided:
            archive(table, ArchivalConfig(2, 3))
    else:
        _hold(table, step.number)


def move_rows(table: LakeTable, step: Step) -> None:
    """Rows of a bucket table go to other buckets, those of any other table are laid out anew; nothing for others."""
    kind = table.hudi.config.kind
    has_buckets = kind.index in ("bucket", "consistent_bucket")
    if step.what is Happening.LAY_OUT:
        if not has_buckets:
            lay_out_anew(table)
    elif kind.index == "bucket":
        rebucket(table, SimpleBuckets(1 + step.number % 3), "shop", _COMPACTION, serially)
    elif has_buckets:
        resize(table, [BucketChange("region=eu", (step.number % 2,))], "shop", _COMPACTION, serially)


def _hold(table: HudiTable, number: int) -> None:
    """A savepoint of a drawn write is made; if there is one, it is deleted."""
    held = table.timeline.completed_actions({"savepoint"})
    if held:
        delete_savepoint(table, held[0].requested_time)
        return
    writes = table.timeline.completed()
    if writes:  # a refusal says that the files of that time may have been cleaned
        with contextlib.suppress(ConfigError):
            create_savepoint(table, writes[number % len(writes)].requested_time, "simulation")
