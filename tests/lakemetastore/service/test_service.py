from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from thrift.transport.TTransport import TTransportException

from hudilake.errors import ConfigError
from lakemetastore.service.ports import server_context
from lakemetastore.service.service import Service
from lakemetastore.settings.service import TlsSettings
from tests.lakemetastore.service.served import client, database, served, settings_in, table
from tests.lakemetastore.service.tcp_part import no_log
from tests.lakemetastore.service.test_supervisor import until
from tests.paths import ROOT
from tests.services.certificates import Authority


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("service")


@pytest.fixture(scope="module")
def service(place: Path) -> Iterator[Service]:
    with served(place, processes=2, monitoring={"port": 0}) as service:
        yield service


def get(address: str) -> str:
    with urllib.request.urlopen(address, timeout=10) as answer:
        text: str = answer.read().decode()
        return text


def test_a_commit_through_one_process_is_seen_through_all(service: Service, place: Path) -> None:
    with client(service.ports.thrift) as one:
        one.create_database(database("shop", place))
        one.create_table(table("shop", "orders"))
    for _ in range(12):  # each connection goes to one of the processes
        with client(service.ports.thrift) as other:
            assert other.get_table("shop", "orders").sd.location == f"file:{place}/shop.db/orders"
    calls = service.processes.render()
    for process in ("0", "1"):
        assert f'method="get_table",outcome="ok",process="{process}"' in calls


def test_both_sides_answer_of_one_catalog(service: Service, place: Path) -> None:
    with client(service.ports.thrift) as one:
        one.create_database(database("both", place))
    assert json.loads(get(f"{service.http}/health"))["status"] == "ok"
    assert "both" in get(f"{service.http}/v1/databases")
    assert "binlake_metastore_calls_total" in get(f"{service.http}/metrics")


def test_clients_go_on_while_processes_are_killed(service: Service, place: Path) -> None:
    with client(service.ports.thrift) as one:
        one.create_database(database("deaths", place))
    stop, seen, wrong = threading.Event(), [0], list[BaseException]()

    def ask() -> None:
        while not stop.is_set():
            try:
                with client(service.ports.thrift) as other:
                    assert other.get_database("deaths").name == "deaths"
                seen[0] += 1
            except (OSError, EOFError):  # the process died with the connection: an engine connects again
                continue
            except Exception as error:
                if "TTransport" not in type(error).__name__:
                    wrong.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        for name in ("0", "1"):
            pid = service.processes.pids[name]
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            goes_on(seen)
            until(partial(is_new, service, name, pid))
    finally:
        stop.set()
        thread.join()
    assert wrong == []
    until(lambda: service.processes.reasons() == ())


def goes_on(seen: list[int]) -> None:
    before = seen[0]
    until(lambda: seen[0] > before + 3)


def is_new(service: Service, name: str, pid: int) -> bool:
    return service.processes.pids[name] not in (None, pid)


@pytest.mark.full
def test_the_command_drains_and_ends_on_sigterm(tmp_path: Path) -> None:
    conf = tmp_path / "metastore.yaml"
    conf.write_text(json.dumps(settings_in(tmp_path).model_dump(mode="json")))
    command = [sys.executable, "-m", "binlake.cli", "metastore", "serve", str(conf)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    port = int(line.split("thrift://127.0.0.1:")[1].split(",")[0])
    with client(port) as one:
        assert one.get_all_databases() == ["default"]
        process.send_signal(signal.SIGTERM)
        said, log = process.communicate(timeout=120)
    assert (process.returncode, "Traceback" in log) == (0, False), log
    assert "the metastore stops" in said


@pytest.mark.full
def test_tls_on_both_ports(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    identity = authority.identity("metastore")
    tls = {"certificate_file": str(identity.certificate), "key_file": str(identity.key)}
    with served(tmp_path, thrift={"port": 0, "tls": tls}, http={"port": 0, "tls": tls}) as service:
        with client(service.ports.thrift, authority.file) as one:
            assert one.get_all_databases() == ["default"]
        with pytest.raises(TTransportException), client(service.ports.thrift) as plain:
            plain.get_all_databases()
        context = ssl.create_default_context(cafile=str(authority.file))
        with urllib.request.urlopen(f"{service.http}/health", context=context, timeout=10) as answer:
            assert answer.status == 200


@pytest.mark.full
def test_what_a_process_cannot_begin_with_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read the settings file"):
        Service(settings_in(tmp_path, lakes=[{"settings": "/none.yaml"}]), no_log).__enter__()


def test_a_certificate_that_cannot_be_read_is_told() -> None:
    with pytest.raises(ConfigError, match="the certificate cannot be used"):
        server_context(TlsSettings(certificate_file="/none", key_file="/none"))


@pytest.mark.full
def test_a_port_in_use_is_told(service: Service, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot listen"):
        Service(settings_in(tmp_path, thrift={"port": service.ports.thrift}), no_log).__enter__()
