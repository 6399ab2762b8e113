"""Typed settings of a stream: one YAML file, units in the names, secrets by reference, all mistakes at once."""

from pipeline.settings.document import Problem
from pipeline.settings.dumps import DumpSettings
from pipeline.settings.model import Settings, json_schema
from pipeline.settings.problems import SettingsError
from pipeline.settings.sections import (
    BatchSettings,
    DebeziumSettings,
    KafkaSettings,
    LakeSettings,
    LockingSettings,
    MonitoringSettings,
    QuarantineSettings,
    SchemaSettings,
    SourceSettings,
    SparkSettings,
    StateSettings,
)
from pipeline.settings.tables import (
    CompactionRule,
    MetadataRule,
    PartitionRule,
    RetentionRule,
    SourceName,
    TableRules,
    TablesSettings,
    path_name,
)

__all__ = [
    "BatchSettings",
    "CompactionRule",
    "DebeziumSettings",
    "DumpSettings",
    "KafkaSettings",
    "LakeSettings",
    "LockingSettings",
    "MetadataRule",
    "MonitoringSettings",
    "PartitionRule",
    "Problem",
    "QuarantineSettings",
    "RetentionRule",
    "SchemaSettings",
    "Settings",
    "SettingsError",
    "SourceName",
    "SourceSettings",
    "SparkSettings",
    "StateSettings",
    "TableRules",
    "TablesSettings",
    "json_schema",
    "path_name",
]
