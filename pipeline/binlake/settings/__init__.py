"""Typed settings of a stream: one YAML file, units in the names, secrets by reference, all mistakes in one error."""

from binlake.settings.database import DatabaseSettings, MysqlSettings, ReplicaSettings
from binlake.settings.dumps import DumpSettings
from binlake.settings.kafka import KafkaSettings
from binlake.settings.model import Settings, json_schema
from binlake.settings.sections import (
    BatchSettings,
    DebeziumSettings,
    LakeSettings,
    LockingSettings,
    MonitoringSettings,
    QuarantineSettings,
    SchemaSettings,
    SourceSettings,
    SparkSettings,
    StateSettings,
)
from binlake.settings.table_rules import (
    ClusteringSettings,
    CompactionSettings,
    MetadataSettings,
    PartitionSettings,
    RetentionSettings,
    TableRules,
)
from binlake.settings.tables import SourceName, TablesSettings
from binlake.settings.templates import path_name
from lakemetastore.settings.document import SettingsProblem
from lakemetastore.settings.problems import SettingsError

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
    "MysqlSettings",
    "PartitionSettings",
    "QuarantineSettings",
    "ReplicaSettings",
    "RetentionSettings",
    "SchemaSettings",
    "Settings",
    "SettingsError",
    "SettingsProblem",
    "SourceName",
    "SourceSettings",
    "SparkSettings",
    "StateSettings",
    "TableRules",
    "TablesSettings",
    "json_schema",
    "path_name",
]
