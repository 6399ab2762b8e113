"""What remains to do for a table after its commits: cleaning, archival, and deletes that nobody needs any more."""

from __future__ import annotations

from binlake.rows.merging.tombstone_upkeep import tidy
from binlake.settings import CompactionSettings, TableRules
from binlake.tables.services.configs import archival_config
from hudilake.format.definition.merging import Merging
from hudilake.format.timeline.instant import Instant
from hudilake.services import cleaning
from hudilake.services.archival import archive
from hudilake.services.cleaning import CleaningConfig
from hudilake.table.table import HudiTable


def retire(table: HudiTable, rules: TableRules, *, clean: bool) -> None:
    """Delete files that the retention no longer keeps, and shorten the timeline, according to the rules.

    ``clean``: whether a compaction or a clustering has completed, or a commit of a copy-on-write table: only these make
    a file slice superfluous. Errors as ``cleaning.clean`` and ``archive``.
    """
    if clean:
        _tidy_tombstones(table, rules)
        clean_if_due(table, rules)
    archive_if_long(table, rules)


def clean_if_due(table: HudiTable, rules: TableRules) -> Instant | None:
    """Delete the files that the retention no longer keeps. Returns the clean's instant; None if there was none."""
    config = CleaningConfig.of(rules.retention) if rules.retention is not None else None
    return cleaning.clean(table, config) if config is not None and cleaning.due(table, config) else None


def archive_if_long(table: HudiTable, rules: TableRules) -> int:
    """Move the instants beyond the bounds to the history. Returns their number."""
    rule = rules.retention
    if rule is None:
        return 0
    bounds = archival_config(rules, rule)
    if len(table.timeline.completed()) > bounds.max_commits:
        _tidy_tombstones(table, rules)  # those of instants that were rolled back would count after the archival
    return archive(table, bounds, CleaningConfig.of(rule))


def _tidy_tombstones(table: HudiTable, rules: TableRules) -> None:
    if Merging.of(table.config).by_writer or table.config.kind.copies or table.config.kind.looks_up:
        tidy(table, (rules.compaction or CompactionSettings()).tombstone_retention_hours)
