"""Which methods are served. A method that a client needs does not go by accident."""

from __future__ import annotations

import pytest
from thrift.Thrift import TApplicationException

from hudilake.storage import StorageError
from lakemetastore import errors
from lakemetastore.hive.failures import exception
from lakemetastore.hive.handlers.table import METHODS
from tests.lakemetastore.hive.clients import client
from tests.lakemetastore.hive.conftest import Calls
from tests.lakemetastore.hive.hive_server import HiveServer

SPARK = """
set_ugi get_database get_databases get_all_databases get_tables get_tables_by_type get_table get_partitions
get_partitions_by_filter get_partitions_ps_with_auth get_partition_names get_partition_names_ps get_partition_with_auth
create_table_with_environment_context alter_table_with_environment_context drop_table_with_environment_context
create_database alter_database drop_database shutdown add_partitions_req rename_partition
drop_partition_with_environment_context alter_partitions_with_environment_context
alter_partition_with_environment_context
get_functions get_all_functions get_function create_function alter_function drop_function
get_table_objects_by_name get_config_value getMetaConf
"""
HUDI = "add_partitions_req add_partitions get_all_tables get_schema get_fields alter_table_with_cascade"
TRINO = """
get_all_databases get_table_meta get_table_req get_partition_names get_partition_names_ps get_partition get_table
get_partitions_by_names get_table_objects_by_name_req get_table_column_statistics get_partitions_statistics_req
get_table_statistics_req update_table_column_statistics list_roles list_privileges get_all_functions get_functions
"""
PYTHON = """
lock check_lock unlock heartbeat create_table get_table drop_table get_partition_by_name get_table_column_statistics
"""
PROCESS = "getName getStatus getVersion aliveSince getCounters"
NEWER = """
get_database_req drop_database_req create_table_req alter_table_req get_fields_req get_schema_req get_partition_req
get_partitions_req get_partitions_ps_with_auth_req get_partition_names_ps_req get_partitions_by_names_req
alter_partitions_req rename_partition_req drop_partitions_req get_open_txns_req
"""


@pytest.mark.parametrize("names", [SPARK, HUDI, TRINO, PYTHON, PROCESS, NEWER], ids=range(6))
def test_what_clients_call_is_served(names: str) -> None:
    assert [name for name in names.split() if name not in METHODS] == []


def test_every_error_of_the_catalog_is_an_exception_of_the_protocol() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.CatalogError)]
    for kind in kinds:
        for method in METHODS.values():
            named = exception(kind("what happened"), method.declared)
            assert named is None or named[0] in method.declared.values()
        declared = {type_: field for method in METHODS.values() for type_, field in method.declared.items()}
        named = exception(kind("what happened"), declared)
        assert named is not None
        assert kind is errors.CatalogError or named[1].message == "what happened"  # type: ignore[attr-defined]


def test_an_error_that_a_method_does_not_declare_is_its_meta_exception() -> None:
    declared = METHODS["alter_table"].declared
    field, error = exception(errors.NoSuchObjectError("x"), declared) or ("", Exception())
    assert (field, str(error)) == ("o2", "MetaException(message='NoSuchObjectException(message:x)')")
    field, error = exception(StorageError("the disk is full", path="/x"), declared) or ("", Exception())
    assert "the disk is full" in str(error)
    assert exception(errors.NoSuchObjectError("x"), METHODS["get_table_objects_by_name"].declared) is None


def test_a_method_that_declares_nothing_answers_as_thrift_does(server: HiveServer, calls: Calls) -> None:
    with client(server.address) as c:
        with pytest.raises(TApplicationException, match="Internal error processing get_table_objects_by_name"):
            c.get_table_objects_by_name("nope", ["t"])
        assert c.getStatus() == 2
    assert calls.outcomes[0] == ("get_table_objects_by_name", "refused")
