"""Real processes and a lock between them: no increment lost, the dead replaced, the paused told."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from hudilake.locking.base import LockHeldError
from tests.conftest import BUCKET
from tests.hudilake.locking.workers import Lake, await_file, hold, increment, start, tell
from tests.selection import first
from tests.services.s3 import S3Server

_PROCESSES, _TIMES = 4, 15


@pytest.fixture(params=["local", "s3"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    if request.param == "local":
        return Lake(str(tmp_path / "table"))
    server: S3Server = request.getfixturevalue("s3_server")
    return Lake(f"s3://{BUCKET}/locks/{tmp_path.name}", tuple(server.options().items()))


def _count(lake: Lake | None, tmp_path: Path) -> int:
    counter = tmp_path / "counter"
    counter.write_text("0")
    workers = [start(increment, lake, counter, _TIMES) for _ in range(_PROCESSES)]
    for worker in workers:
        worker.join(120)
        assert worker.exitcode == 0
    return int(counter.read_text())


@pytest.mark.first(1)
def test_no_increment_is_lost(lake: Lake, tmp_path: Path) -> None:
    assert _count(lake, tmp_path) == _PROCESSES * _TIMES


def test_without_the_lock_increments_are_lost(tmp_path: Path) -> None:
    """The control of the test above."""
    assert _count(None, tmp_path) < _PROCESSES * _TIMES


def test_a_living_holder_is_named(lake: Lake, tmp_path: Path) -> None:
    holder = start(hold, lake, tmp_path, 120.0)
    pid = await_file(tmp_path / "held")
    with pytest.raises(LockHeldError) as caught, lake.lock(wait_s=0.1):
        pass
    assert f"process {pid} on {os.uname().nodename}" in str(caught.value)
    assert caught.value.do_next
    tell(tmp_path / "go", "")
    with lake.lock(wait_s=60.0) as lock:
        lock.check()
    holder.join(60)
    assert (tmp_path / "said").read_text() == "held"


def test_a_killed_holder_is_replaced_at_once(lake: Lake, tmp_path: Path) -> None:
    holder = start(hold, lake, tmp_path, 120.0)
    await_file(tmp_path / "held")
    with pytest.raises(LockHeldError), lake.lock(wait_s=0.1):
        pass
    holder.kill()
    with lake.lock(wait_s=60.0) as lock:  # its validity is five minutes
        lock.check()


@pytest.mark.parametrize("lake", first(1, ["local", "s3"]), indirect=True)
def test_a_paused_holder_loses_it(lake: Lake, tmp_path: Path) -> None:
    holder = start(hold, lake, tmp_path, 120.0, 1.0)
    pid = int(await_file(tmp_path / "held"))
    os.kill(pid, signal.SIGSTOP)
    try:
        # Who waits takes over what it has seen unchanged for its own validity: five minutes, if it names none.
        with lake.lock(wait_s=60.0, validity_s=10.0, renew_s=0.5) as lock:
            tell(tmp_path / "go", "")
            os.kill(pid, signal.SIGCONT)
            assert "lost" in await_file(tmp_path / "said")
            await_file(tmp_path / "done")
            lock.check()
    finally:
        os.kill(pid, signal.SIGCONT)
    holder.join(60)


@pytest.mark.first(1)
def test_a_long_section_stays_ours(lake: Lake, tmp_path: Path) -> None:
    """For more than twice the validity; the others wait all the while."""
    holder = start(hold, lake, tmp_path, 120.0, 1.5)
    await_file(tmp_path / "held")
    with pytest.raises(LockHeldError), lake.lock(wait_s=3.5):
        pass
    tell(tmp_path / "go", "")
    assert await_file(tmp_path / "said") == "held"
    holder.join(60)
