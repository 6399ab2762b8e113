"""Typed settings of a stream: one YAML file, units in the names, secrets by reference, all mistakes in one error."""

from pipeline.settings.database import DatabaseSettings, ReplicaSettings
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
from pipeline.settings.table_names import path_name
from pipeline.settings.table_rules import (
    ClusteringSettings,
    CompactionSettings,
    MetadataSettings,
    PartitionSettings,
    RetentionSettings,
    TableRules,
)
from pipeline.settings.tables import SourceName, TablesSettings

__all__ = [
    "BatchSettings",
    "ClusteringSettings",
    "CompactionSettings",
    "DatabaseSettings",
    "DebeziumSettings",
    "DumpSettings",
    "KafkaSettings",
    "LakeSettings",
    "LockingSettings",
    "MetadataSettings",
    "MonitoringSettings",
    "PartitionSettings",
    "Problem",
    "QuarantineSettings",
    "ReplicaSettings",
    "RetentionSettings",
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
