from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from hudilake.errors import ConfigError
from lakemetastore.service.ports import reserve
from lakemetastore.service.supervisor import Supervisor
from lakemetastore.settings.service import HttpSettings
from tests.lakemetastore.service.tcp_part import HOST, Refusing, TcpPart, ask, no_log
from tests.paths import ROOT


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with reserve(HttpSettings(port=0)) as held:
        yield held.getsockname()[1]


@pytest.fixture(scope="module")
def running(port: int) -> Iterator[Supervisor]:
    with Supervisor({name: partial(TcpPart, port) for name in ("0", "1")}, no_log, drain_seconds=1) as supervisor:
        yield supervisor


def until(holds: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.02)


def test_processes_share_a_port(running: Supervisor, port: int) -> None:
    pids = set(running.pids.values())
    assert len(pids) == 2
    assert os.getpid() not in pids
    until(lambda: {ask(port) for _ in range(20)} == pids)
    assert running.reasons() == ()


def test_metrics_of_all_processes_are_one_text(running: Supervisor) -> None:
    text = running.render()
    for name in ("0", "1"):
        assert f'binlake_metastore_process_up{{process="{name}"}} 1.0' in text
        assert f'answered_total{{process="{name}"}}' in text
    assert text.count("# TYPE answered_total counter") == 1


def test_a_process_that_is_killed_is_started_again_while_the_other_answers(running: Supervisor, port: int) -> None:
    before = dict(running.pids)
    assert before["0"] is not None
    os.kill(before["0"], signal.SIGKILL)
    until(lambda: running.pids["0"] != before["0"])
    until(lambda: answers(port) == before["1"])  # a client whose connection is reset tries again
    until(lambda: running.reasons() == ())
    assert running.pids["0"] not in (None, before["0"])
    assert 'binlake_metastore_process_restarts{process="0"} 1.0' in running.render()
    assert running.pids["1"] == before["1"]


def answers(port: int) -> int | None:
    try:
        return ask(port)
    except (OSError, ValueError):
        return None


def test_a_process_that_is_not_well_says_so(port: int) -> None:
    with Supervisor({"0": partial(TcpPart, port, "the store is away")}, no_log, drain_seconds=1) as supervisor:
        assert supervisor.reasons() == ("the store is away",)
        pid = supervisor.pids["0"]
    assert pid is not None
    assert not alive(pid)


def test_what_a_process_cannot_begin_with_is_raised_and_no_process_is_left(port: int) -> None:
    supervisor = Supervisor({"0": partial(TcpPart, port), "1": Refusing}, no_log, drain_seconds=1)
    with pytest.raises(ConfigError, match="the certificate is missing") as caught:
        supervisor.__enter__()
    assert caught.value.do_next == "give one"
    assert supervisor.pids == {"0": None, "1": None}


def test_processes_end_when_their_parent_is_killed(port: int) -> None:
    program = (
        "import sys, time\nfrom functools import partial\n"
        "from lakemetastore.service.supervisor import Supervisor\n"
        "from tests.lakemetastore.service.tcp_part import TcpPart, no_log\n"
        "if __name__ == '__main__':\n"
        f"    with Supervisor({{'0': partial(TcpPart, {port})}}, no_log, drain_seconds=1) as s:\n"
        "        print(s.pids['0'], flush=True)\n        time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    until(lambda: not alive(child))


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_port_that_another_service_has_is_refused(port: int) -> None:
    with pytest.raises(ConfigError, match="cannot listen"), reserve(HttpSettings(host=HOST, port=port)):
        pass
