"""Every method of the service has its way, and none goes where its databases are not looked at."""

from __future__ import annotations

import pytest
from hive_metastore import ThriftHiveMetastore

from lakemetastore.hive.generated import result_class
from lakemetastore.router.merged import _LISTINGS
from lakemetastore.router.methods import METHODS, Route
from lakemetastore.router.name_fields import argument_names

SERVICE = {name for name in dir(ThriftHiveMetastore.Iface) if not name.startswith("_")}
#: Calls of the primary that name databases: locks and transactions are about names, wherever the databases are.
NAMES_ONLY = {"lock", "show_locks", "commit_txn"}


def test_the_table_is_complete() -> None:
    assert set(METHODS) == SERVICE
    assert len(SERVICE) == 270 + 13  # the Hive Metastore's, and those of every Thrift service of its time (fb303)


def test_a_call_that_names_databases_goes_by_them() -> None:
    naming = {name for name in SERVICE if argument_names(name).any_names}
    by_database = {name for name, method in METHODS.items() if method.route in (Route.DATABASE, Route.PRIMARY_ONLY)}
    assert naming - NAMES_ONLY == by_database


def test_all_listings_know_their_elements() -> None:
    assert set(_LISTINGS) == {name for name, method in METHODS.items() if method.route is Route.MERGED}


def test_all_calls_that_change_databases_say_so() -> None:
    reading = ("get", "list_privileges", "isPartition", "find_", "translate_table_dryrun", "heartbeat_lock")
    quiet = {n for n, m in METHODS.items() if m.route in (Route.DATABASE, Route.PRIMARY_ONLY) and not m.writes}
    assert all(name.startswith(reading) for name in quiet)
    changing = ("create_", "drop_", "alter_", "add_", "append_", "rename_", "truncate_", "exchange_", "grant", "revoke")
    assert all(METHODS[name].writes for name in SERVICE if name.startswith(changing))


def test_only_the_calls_of_a_session_have_no_answer() -> None:
    assert {n for n in SERVICE if result_class(n) is None} == {
        n for n, m in METHODS.items() if m.route is Route.SESSION
    }


@pytest.mark.parametrize("name", ["get_table", "alter_table", "add_partitions_req", "exchange_partition", "lock"])
def test_names_are_known_by_their_fields(name: str) -> None:
    assert argument_names(name).any_names
