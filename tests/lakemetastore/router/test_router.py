"""Two metastores behind one router: where calls go, what comes back, and what happens when one is lost."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hive_metastore.ttypes import (
    Database,
    GetDatabaseRequest,
    GetTableRequest,
    GetTablesExtRequest,
    MetaException,
    NoSuchObjectException,
    PartitionsRequest,
    ShowCompactRequest,
    Table,
)
from thrift.Thrift import TApplicationException
from thrift.transport.TTransport import TTransportException

from embedded.hive_client import hive_client
from lakemetastore.hive.limits import Limits
from lakemetastore.hive.server import ThriftServer, listen
from lakemetastore.hive.wire import MessageReader
from lakemetastore.router.router import Router
from lakemetastore.settings.router import RouterSettings
from tests.lakemetastore.router.thrift_backend import ServedMetastore, served, storage


@dataclass
class Fixture:
    """A router at a port, with its backends."""

    server: ThriftServer
    router: Router
    lake: ServedMetastore
    old: ServedMetastore
    calls: list[tuple[str, str, str]]

    def client(self) -> contextlib.AbstractContextManager[Any]:
        return hive_client(*self.server.address)


RULES = ({"match": "ods_*", "to": "lake"}, {"match": "raw", "to": "old", "as": "old_raw"}, {"match": "*", "to": "old"})


@contextlib.contextmanager
def routing(
    lake: ServedMetastore,
    old: ServedMetastore,
    rules: Sequence[dict[str, Any]] = RULES,
    **old_settings: Any,  # noqa: ANN401 - any YAML
) -> Iterator[Fixture]:
    settings = RouterSettings.model_validate(
        {
            "backends": {
                "lake": {"uri": lake.uri, "retry_seconds": 0.0},
                "old": {"uri": old.uri, "retry_seconds": 0.0, "connect_seconds": 2.0} | old_settings,
            },
            "primary": "old",
            "rules": list(rules),
        }
    )
    calls: list[tuple[str, str, str]] = []
    router = Router(settings, on_call=lambda name, backend, _, outcome: calls.append((name, backend, outcome)))
    server = ThriftServer(router.answer, listener=listen("127.0.0.1", 0))
    server.start()
    try:
        yield Fixture(server, router, lake, old, calls)
    finally:
        server.stop(drain_seconds=1.0)


@pytest.fixture
def backends() -> Iterator[tuple[ServedMetastore, ServedMetastore]]:
    lake_served = served(ods_shop=["orders", "items"], hidden=["x"])
    old_served = served(default=["d"], sales=["years"], raw=["r1", "r2"])
    with lake_served as lake, old_served as old:
        yield lake, old


@pytest.fixture
def routed(backends: tuple[ServedMetastore, ServedMetastore]) -> Iterator[Fixture]:
    with routing(*backends) as fixture:
        yield fixture


def table(database: str, name: str) -> Table:
    return Table(tableName=name, dbName=database, sd=storage(f"/{name}"), partitionKeys=[], parameters={})


def test_calls_go_to_the_backend_of_their_database(routed: Fixture) -> None:
    with routed.client() as client:
        assert client.get_table("ods_shop", "orders").sd.location == "/orders"
        assert client.get_table("sales", "years").dbName == "sales"
        client.create_table(table("ODS_shop", "new"))  # HMS takes names in any case
        assert client.get_config_value("a", "b") == "b"
    assert [call[1] for call in routed.calls] == ["lake", "old", "lake", "old"]


def test_listings_have_the_databases_of_all_backends_by_the_names_that_clients_see(routed: Fixture) -> None:
    with routed.client() as client:
        assert client.get_all_databases() == ["default", "ods_shop", "old_raw", "sales"]
        assert client.get_databases("o*") == ["ods_shop", "old_raw"]
        assert client.get_databases("r*") == []
        metas = client.get_table_meta("o*", "*", None)
        assert sorted((meta.dbName, meta.tableName) for meta in metas) == [
            ("ods_shop", "items"),
            ("ods_shop", "orders"),
            ("old_raw", "r1"),
            ("old_raw", "r2"),
        ]
        with pytest.raises(MetaException, match="no functions here"):
            client.get_all_functions()
        with pytest.raises(TApplicationException, match="show_compact"):
            client.show_compact(ShowCompactRequest())  # neither has it


def test_a_listing_leaves_out_who_does_not_have_the_call(routed: Fixture) -> None:
    del routed.old.processor._processMap["get_databases"]
    with routed.client() as client:
        assert client.get_databases("ods*") == ["ods_shop"]
        assert client.get_databases("s*") == []


def test_a_renamed_database_has_its_new_name_in_requests_and_answers(routed: Fixture) -> None:
    with routed.client() as client:
        assert client.get_database("old_raw").name == "old_raw"
        assert client.get_table("OLD_RAW", "r1").dbName == "old_raw"
        assert {part.dbName for part in client.get_partitions("old_raw", "r1", -1)} == {"old_raw"}
        client.create_table(table("old_raw", "r3"))
        assert routed.old.metastore.tables["raw"]["r3"].dbName == "raw"
        client.alter_table("old_raw", "r3", table("old_raw", "r4"))
        assert client.get_all_tables("old_raw") == ["r1", "r2", "r4"]
        with pytest.raises(NoSuchObjectException, match=r"raw\.missing"):
            client.get_table("old_raw", "missing")


def test_names_that_no_rule_matches_are_answered_as_missing(
    backends: tuple[ServedMetastore, ServedMetastore],
) -> None:
    with routing(*backends, rules=RULES[:2]) as routed, routed.client() as client:
        with pytest.raises(NoSuchObjectException, match="no rule matches it"):
            client.get_table("sales", "years")
        assert client.get_all_tables("sales") == []
        with pytest.raises(NoSuchObjectException, match="Database sales is in no metastore"):
            client.create_table(table("sales", "new"))
        with pytest.raises(MetaException, match="Database other is in no metastore"):
            client.create_database(Database(name="other"))
        assert client.get_all_databases() == ["ods_shop", "old_raw"]


def test_a_read_only_backend_gets_no_change(backends: tuple[ServedMetastore, ServedMetastore]) -> None:
    with routing(*backends, read_only=True) as routed, routed.client() as client:
        with pytest.raises(MetaException, match="Database sales is read-only here"):
            client.drop_table("sales", "years", True)
        with pytest.raises(MetaException, match="The metastore old is read-only"):
            client.create_role(None)
        assert client.get_table("sales", "years")
        client.drop_table("ods_shop", "items", False)
        assert client.get_all_tables("ods_shop") == ["orders"]
    assert "drop_table" not in routed.old.metastore.calls


def test_a_call_over_two_metastores_is_refused(routed: Fixture) -> None:
    with routed.client() as client:
        with pytest.raises(MetaException, match="several metastores: lake, old"):
            client.alter_table("sales", "years", table("ods_shop", "years"))
        with pytest.raises(MetaException, match="several metastores"):
            client.exchange_partition({}, "sales", "years", "ods_shop", "orders")


def test_an_unknown_method_is_told_as_such(routed: Fixture) -> None:
    with routed.client() as client:
        client._oprot.writeMessageBegin("get_weather", 1, 7)
        client._oprot.writeByte(0)
        client._oprot.trans.flush()
        with pytest.raises(TApplicationException, match="Invalid method name: 'get_weather'"):
            client.recv_get_all_databases()


def test_other_catalogs_are_those_of_the_primary(routed: Fixture) -> None:
    routed.old.metastore.tables["@spark#ods_shop"] = {"elsewhere": table("ods_shop", "elsewhere")}
    with routed.client() as client:
        assert client.get_table("@spark#ods_shop", "elsewhere").tableName == "elsewhere"
        assert client.get_databases("@spark#*") == ["@spark#ods_shop"]
        with pytest.raises(NoSuchObjectException):
            client.get_table("@hive#ods_shop", "orders")  # goes to the lake, which knows no catalogs
    assert [backend for _, backend, _ in routed.calls] == ["old", "-", "lake"]


def test_names_that_are_no_text_are_names_of_nothing(
    backends: tuple[ServedMetastore, ServedMetastore],
) -> None:
    name = b"get_table"
    request = b"\x80\x01\x00\x01\x00\x00\x00\x09" + name + b"\x00\x00\x00\x07"
    request += b"\x0b\x00\x01\x00\x00\x00\x02\xff\xfe\x0b\x00\x02\x00\x00\x00\x01t\x00"
    with routing(*backends, rules=RULES[:2]) as routed:
        assert b"no rule matches it" in exchange(routed.server.address, request)


def test_calls_of_hive_4_reach_a_backend_that_has_older_ones_only(routed: Fixture) -> None:
    with routed.client() as client:
        for _ in range(2):
            assert client.get_database_req(GetDatabaseRequest(name="old_raw")).name == "old_raw"
            assert client.get_table_req(GetTableRequest("old_raw", "r1")).table.dbName == "old_raw"
            answer = client.get_partitions_req(PartitionsRequest(dbName="sales", tblName="years", maxParts=-1))
            assert [part.values for part in answer.partitions] == [["d0"], ["d1"], ["d2"]]
        with pytest.raises(NoSuchObjectException, match=r"hive\.sales\.none table not found"):
            client.get_table_req(GetTableRequest("sales", "none"))
        with pytest.raises(TApplicationException, match="get_tables_ext"):
            client.get_tables_ext(GetTablesExtRequest(database="sales"))
    assert {name for _, _, name in routed.calls} == {"ok"}


def exchange(address: tuple[str, int], request: bytes) -> bytes:
    """A request and its reply as bytes; the end of the reply is found by Thrift's own decoder."""
    with socket.create_connection(address, timeout=30) as sock:
        sock.sendall(request)
        reply = MessageReader(lambda _: sock.recv(1 << 20), Limits()).read()
        assert reply is not None
        return reply.raw


@pytest.mark.parametrize("partitions", [1, 5000])
def test_bytes_are_those_of_the_backend(routed: Fixture, partitions: int) -> None:
    routed.lake.metastore.partitions = partitions
    name = b"get_partitions"
    request = b"\x80\x01\x00\x01" + len(name).to_bytes(4, "big") + name + b"\x00\x00\x00\x07"
    for field, text in ((1, b"ods_shop"), (2, b"orders")):
        request += b"\x0b" + field.to_bytes(2, "big") + len(text).to_bytes(4, "big") + text
    request += b"\x06\x00\x03\xff\xff\x00"
    direct = exchange(("127.0.0.1", routed.lake.port), request)
    assert len(direct) > 200 * partitions
    assert exchange(routed.server.address, request) == direct


def test_the_user_is_told_to_each_backend_before_its_first_call(routed: Fixture) -> None:
    with routed.client() as client:
        assert client.set_ugi("anna", []) == ["anna"]
        client.get_all_tables("ods_shop")
        client.get_all_tables("sales")
        routed.lake.drop_connections()
        client.get_all_tables("ods_shop")
    assert routed.old.metastore.users == ["anna"]
    assert routed.lake.metastore.users == ["anna", "anna"]


def test_a_stale_connection_is_made_anew_and_the_client_sees_nothing(routed: Fixture) -> None:
    with routed.client() as client:
        for _ in range(3):
            assert client.get_table("sales", "years")
            client.create_table(table("sales", "t"))
            routed.old.drop_connections()
    assert routed.old.metastore.calls.count("create_table") == 3, "each change was made once"


@pytest.mark.parametrize("on_down", ["hide", "fail"])
def test_a_backend_that_is_down_is_hidden_or_told_and_comes_back(
    backends: tuple[ServedMetastore, ServedMetastore], on_down: str
) -> None:
    with routing(*backends, on_down=on_down) as routed, routed.client() as client:
        routed.old.stop()
        if on_down == "hide":
            assert client.get_all_databases() == ["ods_shop"]
        else:
            with pytest.raises(MetaException, match="The metastore old does not answer"):
                client.get_all_databases()
        with pytest.raises(MetaException, match="The metastore old does not answer"):
            client.get_table("sales", "years")
        assert client.get_table("ods_shop", "orders"), "the other backend is as before"
        routed.old.start()
        assert client.get_all_databases() == ["default", "ods_shop", "old_raw", "sales"]
        assert client.get_table("sales", "years")


def test_the_addresses_of_a_backend_are_tried_one_after_the_other(
    backends: tuple[ServedMetastore, ServedMetastore],
) -> None:
    lake, old = backends
    with (
        served(sales=["years", "months"]) as twin,
        routing(lake, old, uri=f"{old.uri},{twin.uri}") as routed,
        routed.client() as client,
    ):
        assert client.get_all_tables("sales") == ["years"]
        old.stop()
        assert client.get_all_tables("sales") == ["months", "years"]
        old.start()
        assert client.get_all_tables("sales") == ["months", "years"], "a connection that works is kept"
        twin.stop()
        assert client.get_all_tables("sales") == ["years"]


def test_a_backend_that_is_down_is_not_asked_by_every_call(
    backends: tuple[ServedMetastore, ServedMetastore], caplog: pytest.LogCaptureFixture
) -> None:
    lake, old = backends
    old.stop()
    with routing(lake, old, retry_seconds=60.0, on_down="hide") as routed, routed.client() as client:
        for _ in range(5):
            assert client.get_all_databases() == ["ods_shop"]
    assert caplog.text.count("The metastore old is down") == 1


def test_clashes_are_told(backends: tuple[ServedMetastore, ServedMetastore], caplog: pytest.LogCaptureFixture) -> None:
    rules = ({"match": "*", "to": "lake"}, {"match": "*", "to": "old"})
    backends[1].metastore.tables["hidden"] = {}
    with routing(*backends, rules=rules) as routed:
        told = [str(clash) for clash in routed.router.clashes()]
    assert "Database hidden leads to hidden of lake, which hides hidden of old" in told
    assert "which hides hidden of old" in caplog.text


def answering(data: bytes) -> tuple[socket.socket, threading.Thread]:
    """A server that sends some bytes to whoever asks, and is gone then."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        client, _ = listener.accept()
        with client:
            client.recv(1000)
            client.sendall(data)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return listener, thread


def test_a_backend_that_dies_in_the_middle_of_a_long_answer_ends_the_clients_connection(
    backends: tuple[ServedMetastore, ServedMetastore],
) -> None:
    head = b"\x80\x01\x00\x02\x00\x00\x00\x0eget_partitions\x00\x00\x00\x00"
    body = b"\x0f\x00\x00\x0c\x00\x0f\xff\xff" + b"\x0b\x00\x02\x00\x00\x00\x01x\x00" * 200_000
    listener, thread = answering(head + body)
    lake = backends[0]
    lake.stop()
    with listener:
        lake.port = listener.getsockname()[1]
        with routing(*backends) as routed, routed.client() as client:
            with pytest.raises((TTransportException, EOFError)):
                client.get_partitions("ods_shop", "orders", -1)
            thread.join()
        with routing(*backends) as routed, routed.client() as client:
            assert client.get_table("sales", "years"), "other clients go on"


def test_a_change_whose_answer_is_lost_is_not_made_twice(backends: tuple[ServedMetastore, ServedMetastore]) -> None:
    listener, thread = answering(b"")
    lake = backends[0]
    lake.stop()
    with listener:
        lake.port = listener.getsockname()[1]
        with routing(*backends) as routed, routed.client() as client:
            with pytest.raises(MetaException, match="look whether the change was made"):
                client.create_table(table("ods_shop", "new"))
            thread.join()


def test_bytes_that_are_no_answer_are_told(backends: tuple[ServedMetastore, ServedMetastore]) -> None:
    listener, _ = answering(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    lake = backends[0]
    lake.stop()
    with listener:
        lake.port = listener.getsockname()[1]
        with routing(*backends) as routed, routed.client() as client, pytest.raises(MetaException, match="is no reply"):
            client.get_table("ods_shop", "orders")


def test_many_clients_at_once(routed: Fixture) -> None:
    problems: list[str] = []

    def work(number: int) -> None:
        try:
            with routed.client() as client:
                client.set_ugi(f"user{number}", [])
                for _ in range(10):
                    assert client.get_table("ods_shop", "orders").tableName == "orders"
                    assert client.get_table("old_raw", "r2").dbName == "old_raw"
                    assert len(client.get_partitions("sales", "years", -1)) == 3
        except Exception as error:
            problems.append(repr(error))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert sorted(routed.old.metastore.users) == sorted(f"user{i}" for i in range(20))
