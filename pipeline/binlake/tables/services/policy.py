"""What the rules of a table ask of its services: which it has, who runs them, and how they work.

Cleaning, archival and the deletes that nobody needs any more follow from the rules alone; compaction and clustering are
made here as services that a runner carries out.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from binlake.position.record_reader import RecordKey
from binlake.rows.merging.tombstone_upkeep import tidy
from binlake.settings import ClusteringSettings, CompactionSettings, RetentionSettings, TableRules
from binlake.tables.definition import bloom_fpp, order_of_files
from binlake.tables.lake_table import LakeTable
from binlake.tables.services.kept_cells import KeptCells
from hudilake.format.definition.kind_support import TableOperation
from hudilake.format.timeline.instant import Instant
from hudilake.services import cleaning
from hudilake.services.archival import ArchivalConfig, archive
from hudilake.services.cleaning import CleaningConfig
from hudilake.services.clustering.completion import ClusteringResult
from hudilake.services.clustering.config import ClusteringConfig
from hudilake.services.clustering.service import Clustering
from hudilake.services.compaction import Compaction, CompactionConfig
from hudilake.services.planned import MapTasks
from hudilake.table.table import HudiTable

_log = logging.getLogger(__name__)

#: Commits that stay in the active timeline beyond those that retention and compaction count there.
_SPARE_COMMITS = 20
#: Number of instants that are moved to the history together.
_ARCHIVED_AT_ONCE = 50


def archival_config(rules: TableRules, rule: RetentionSettings) -> ArchivalConfig:
    """The archival configuration: instants that retention, the next compaction and the next clustering count stay
    active."""
    compaction = rules.compaction.after_commits if rules.compaction is not None else None
    clustering = rules.clustering.after_commits if clusters(rules) else None
    least = max(rule.commits or 0, compaction or 0, clustering or 0) + _SPARE_COMMITS
    return ArchivalConfig(least, least + _ARCHIVED_AT_ONCE, newest_only=(RecordKey.KEYLESS.value,))


def clusters(rules: TableRules) -> bool:
    """Whether the settings ask for clustering of a table: some rule of it differs from the default."""
    return rules.clustering != ClusteringSettings()


def clusters_here(table: LakeTable) -> bool:
    """Whether the process that commits a table clusters it."""
    rules = table.rules
    return (
        clusters(rules) and rules.clustering.mode != "process" and table.hudi.config.kind.has(TableOperation.CLUSTERING)
    )


def clustering_config(rules: TableRules) -> ClusteringConfig:
    """The clustering configuration of a table; base files have the form of those that compaction writes."""
    return ClusteringConfig(
        rules.clustering, rules.files, compaction_config(rules, rules.compaction or CompactionSettings())
    )


def compaction_config(rules: TableRules, rule: CompactionSettings) -> CompactionConfig:
    """The compaction configuration of a rule, with the table's codec and, of a table of cells, what it keeps."""
    return CompactionConfig.of(
        rule.model_copy(
            update={"bloom_filter_fpp": bloom_fpp(rules, rule), "order_by": order_of_files(rules, rule)},
        ),
        compression=rules.compression,
        compression_level=rules.compression_level if rules.compression == "zstd" else None,
        row_retention=KeptCells(rules.cells) if rules.cells is not None else None,
    )


def left_to_others(rules: TableRules) -> bool:
    """Whether compaction, with cleaning and archival, is left to another process."""
    return rules.compaction is not None and rules.compaction.mode == "process"


def compacts_here(table: LakeTable) -> bool:
    """Whether the process that commits a table compacts it. Every commit of a copy-on-write table is what a compaction
    is elsewhere."""
    compacts = table.rules.compaction is not None and not left_to_others(table.rules)
    return compacts and table.hudi.config.kind.has(TableOperation.COMPACTION)


def compaction_of(table: LakeTable, map_tasks: MapTasks, *, inline: bool = True) -> Compaction:
    """The compaction of a table by its rules, or by the defaults if they have none.

    ``inline``: whether its end may wait for the commits of other writers; no caller that commits the table waits.
    """
    config = compaction_config(table.rules, table.rules.compaction or CompactionSettings())
    service = Compaction(table.hudi, config, map_tasks)
    return service if inline else replace(service, patience_s=0.0)


def clustering_of(table: LakeTable, map_tasks: MapTasks, *, of_hudi: bool = False) -> Clustering:
    """The clustering of a table by its rules. ``of_hudi``: whether plans of Hudi that wait are carried out too."""

    def log(done: ClusteringResult) -> None:
        path, fields = table.rules.path, {"event": "clustered", "table": table.rules.path, **vars(done)}
        text = "%s: clustering %s: %d file groups became %d, %d rows; %d units gave way to commits"
        _log.info(text, path, done.instant, done.replaced, done.made, done.rows, done.gave_way, extra=fields)

    return Clustering(
        table.hudi,
        clustering_config(table.rules),
        map_tasks,
        table.rows.keep_keys,
        of_hudi=of_hudi,
        ended=log,
    )


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
    if table.config.merging.by_writer or table.config.kind.rewrites:
        hours = (rules.compaction or CompactionSettings()).tombstone_retention_hours
        tidy(table, None if table.config.merging.keeps_versions else hours)
