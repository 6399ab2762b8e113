"""How the table services work, by the rules of a table."""

from __future__ import annotations

from binlake.position.record_reader import RecordKey
from binlake.settings import ClusteringSettings, CompactionSettings, RetentionSettings, TableRules
from binlake.tables.definition import bloom_fpp, order_of_files
from binlake.tables.lake_table import LakeTable
from binlake.tables.services.kept_cells import KeptCells
from hudilake.services.archival import ArchivalConfig
from hudilake.services.clustering.config import ClusteringConfig
from hudilake.services.compaction import CompactionConfig

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
    return clusters(rules) and rules.clustering.mode != "process" and not table.table.config.kind.computed


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
    return table.rules.compaction is not None and not left_to_others(table.rules) and not table.table.config.kind.copies
