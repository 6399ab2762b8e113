"""Where each method of the Hive Metastore's service goes. A method that is not here is answered as an unknown one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final


class Route(Enum):
    """Which backends answer."""

    DATABASE = "the backend of the database that the request names; the primary if it names none"
    PRIMARY = "the primary backend; names of databases in the request mean what they mean to the client"
    PRIMARY_ONLY = "the primary backend, which keeps transactions and notifications; refused for databases of others"
    MERGED = "all backends; the answers are put together"
    EVERY = "each backend before its first other call of the client; the primary's answer counts"
    SESSION = "none: the router lets the client's connections to the backends go"


@dataclass(frozen=True, slots=True)
class MethodRoute:
    """Where a method goes, and whether it changes what a backend holds (refused if that is read-only)."""

    route: Route
    writes: bool = False


_DATABASE_READS = """
    find_package get_aggr_stats_for get_all_packages get_all_stored_procedures get_all_table_constraints
    get_all_tables get_check_constraints get_database get_database_req get_default_constraints get_fields
    get_fields_req get_fields_with_environment_context get_foreign_keys get_function get_functions get_ischema
    get_latest_committed_compaction_info get_materialization_invalidation_info get_materialized_views_for_rewriting
    get_not_null_constraints get_num_partitions_by_filter get_part_specs_by_filter get_partition
    get_partition_by_name get_partition_column_statistics get_partition_names get_partition_names_ps
    get_partition_names_ps_req get_partition_names_req get_partition_req get_partition_values
    get_partition_with_auth get_partitions get_partitions_by_expr get_partitions_by_filter get_partitions_by_names
    get_partitions_by_names_req get_partitions_ps get_partitions_ps_with_auth get_partitions_ps_with_auth_req
    get_partitions_pspec get_partitions_req get_partitions_spec_by_expr get_partitions_statistics_req
    get_partitions_with_auth get_partitions_with_specs get_primary_keys get_privilege_set get_schema
    get_schema_all_versions get_schema_latest_version get_schema_req get_schema_version
    get_schema_with_environment_context get_stored_procedure get_table get_table_column_statistics
    get_table_names_by_filter get_table_objects_by_name get_table_objects_by_name_req get_table_req
    get_table_statistics_req get_tables get_tables_by_type get_tables_ext get_unique_constraints
    isPartitionMarkedForEvent list_privileges translate_table_dryrun
"""
_DATABASE_WRITES = """
    add_check_constraint add_default_constraint add_foreign_key add_not_null_constraint add_package add_partition
    add_partition_with_environment_context add_partitions add_partitions_pspec add_partitions_req add_primary_key
    add_schema_version add_unique_constraint alter_database alter_function alter_ischema alter_partition
    alter_partition_with_environment_context alter_partitions alter_partitions_req
    alter_partitions_with_environment_context alter_table alter_table_req alter_table_with_cascade
    alter_table_with_environment_context append_partition append_partition_by_name
    append_partition_by_name_with_environment_context append_partition_with_environment_context cache_file_metadata
    compact compact2 create_database create_function create_ischema create_stored_procedure create_table
    create_table_req create_table_with_constraints create_table_with_environment_context
    delete_partition_column_statistics delete_table_column_statistics drop_constraint drop_database
    drop_database_req drop_function drop_ischema drop_package drop_partition drop_partition_by_name
    drop_partition_by_name_with_environment_context drop_partition_with_environment_context drop_partitions_req
    drop_schema_version drop_stored_procedure drop_table drop_table_with_environment_context exchange_partition
    exchange_partitions fire_listener_event grant_privileges grant_revoke_privileges map_schema_version_to_serde
    markPartitionForEvent refresh_privileges remove_compaction_metrics_data rename_partition rename_partition_req
    revoke_privileges set_aggr_stats_for set_schema_version_state truncate_table truncate_table_req
    update_compaction_metrics_data update_creation_metadata update_partition_column_statistics
    update_partition_column_statistics_req update_table_column_statistics update_table_column_statistics_req
"""
_PRIMARY_READS = """
    abort_txn abort_txns aliveSince cancel_delegation_token check_lock commit_txn find_next_compact
    find_next_compact2 flushCache getCounter getCounters getCpuProfile getMetaConf getName getOption getOptions
    getStatus getStatusDetails getVersion get_active_resource_plan get_all_resource_plans get_all_token_identifiers
    get_catalog get_catalogs get_config_value get_current_notificationEventId get_dataconnector_req
    get_dataconnectors get_delegation_token get_file_metadata get_file_metadata_by_expr
    get_latest_txnid_in_conflict get_master_keys get_metastore_db_uuid get_next_notification get_open_txns
    get_open_txns_info get_open_txns_req get_principals_in_role get_replication_metrics get_resource_plan
    get_role_grants_for_principal get_role_names get_runtime_stats get_scheduled_query get_schemas_by_cols
    get_serde get_token get_triggers_for_resourceplan get_type get_type_all heartbeat heartbeat_txn_range
    list_roles lock open_txns partition_name_has_valid_characters partition_name_to_spec partition_name_to_vals
    renew_delegation_token set_hadoop_jobid setOption show_locks unlock validate_resource_plan
"""
_PRIMARY_WRITES = """
    add_master_key add_replication_metrics add_runtime_stats add_serde add_token alter_catalog alter_dataconnector
    alter_resource_plan alter_wm_pool alter_wm_trigger clear_file_metadata cm_recycle create_catalog
    create_dataconnector create_or_drop_wm_trigger_to_pool_mapping create_or_update_wm_mapping create_resource_plan
    create_role create_type create_wm_pool create_wm_trigger drop_catalog drop_dataconnector drop_resource_plan
    drop_role drop_type drop_wm_mapping drop_wm_pool drop_wm_trigger grant_revoke_role grant_role
    put_file_metadata remove_master_key remove_token revoke_role scheduled_query_maintenance scheduled_query_poll
    scheduled_query_progress seed_txn_id update_master_key update_transaction_statistics
"""
_PRIMARY_ONLY_READS = """
    find_columns_with_stats get_all_write_event_info get_max_allocated_table_write_id get_notification_events_count
    get_valid_write_ids heartbeat_lock_materialization_rebuild
"""
_PRIMARY_ONLY_WRITES = """
    add_dynamic_partitions add_write_notification_log add_write_notification_log_in_batch allocate_table_write_ids
    get_lock_materialization_rebuild mark_cleaned mark_compacted mark_failed mark_refused repl_tbl_writeid_state
    seed_write_id update_compactor_state
"""
_MERGED = """
    get_all_databases get_all_functions get_all_materialized_view_objects_for_rewriting get_databases get_table_meta
    show_compact
"""
_EVERY = "set_ugi setMetaConf"
_SESSION = "reinitialize shutdown"


def _table() -> Mapping[str, MethodRoute]:
    parts = (
        (MethodRoute(Route.DATABASE), _DATABASE_READS),
        (MethodRoute(Route.DATABASE, writes=True), _DATABASE_WRITES),
        (MethodRoute(Route.PRIMARY), _PRIMARY_READS),
        (MethodRoute(Route.PRIMARY, writes=True), _PRIMARY_WRITES),
        (MethodRoute(Route.PRIMARY_ONLY), _PRIMARY_ONLY_READS),
        (MethodRoute(Route.PRIMARY_ONLY, writes=True), _PRIMARY_ONLY_WRITES),
        (MethodRoute(Route.MERGED), _MERGED),
        (MethodRoute(Route.EVERY), _EVERY),
        (MethodRoute(Route.SESSION), _SESSION),
    )
    return MappingProxyType({name: method for method, names in parts for name in names.split()})


METHODS: Final = _table()
