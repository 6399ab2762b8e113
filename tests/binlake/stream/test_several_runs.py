"""Streams beside others: one run at a time, and tables that others write to between two of our steps."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from binlake.decode.changes import SourceTable
from binlake.position.lease import StreamLease
from binlake.position.record_reader import RecordKey
from binlake.rows.upsert.target import ORDER_FIELD
from binlake.tables.kinds.buckets import BucketRows
from hudilake.clock import now_ms
from hudilake.errors import LostOwnershipError
from hudilake.format.definition.bucket import file_id
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.file_group_write import FileGroupWrite, write_file_group
from hudilake.storage import open_storage
from tests.binlake.tables.test_table_services import Gate, World
from tests.logged import events

OTHER_RUN = """
import sys, time
from hudilake.storage import open_storage
from binlake.position.lease import StreamLease
lease = StreamLease(open_storage(sys.argv[1]), "shop")
lease.take()
print("taken", flush=True)
time.sleep(600)
"""


def lease(path: Path, silence_s: float = 60.0) -> StreamLease:
    return StreamLease(open_storage(str(path)), "shop", silence_s)


def other_run(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", OTHER_RUN, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "taken\n"
    return process


def test_a_second_run_is_refused_until_the_first_is_over(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first = other_run(tmp_path)
    try:
        with pytest.raises(LostOwnershipError, match="another run") as caught:
            lease(tmp_path).take()
        assert caught.value.where["pid"] == first.pid
    finally:
        first.kill()
        first.wait()
    caplog.set_level("INFO", "binlake")
    mine = lease(tmp_path, silence_s=3600)
    mine.take()  # killed, it need not be waited for
    assert events(caplog)["dead_run_replaced"]["pid"] == first.pid
    mine.check()
    mine.give_back()
    assert list(tmp_path.iterdir()) == []


def test_a_silent_run_of_another_machine_is_waited_out(tmp_path: Path) -> None:
    first = lease(tmp_path, 2.0)
    first.take()
    first._beats.close()
    file = tmp_path / "run"
    file.write_text(file.read_text().replace('"place": "', '"place": "elsewhere '))
    os.utime(file, ((now_ms() - 1000) / 1000,) * 2)
    second = lease(tmp_path, 2.0)
    second.take()
    second.check()
    with pytest.raises(LostOwnershipError, match="sent no heartbeat"):
        first.check()
    second.give_back()


def test_a_beating_run_of_another_machine_is_not(tmp_path: Path) -> None:
    file = tmp_path / "run"
    first = lease(tmp_path, 10.0)
    first.take()
    text = file.read_text().replace('"place": "', '"place": "elsewhere ')
    second = lease(tmp_path, 10.0)
    stop = threading.Event()

    def beat() -> None:
        while not stop.wait(0.05):
            file.write_text(text)

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        with pytest.raises(LostOwnershipError, match="another run"):
            second.take()
    finally:
        stop.set()
        thread.join()
        first.give_back()


def fed(tmp_path: Path, batches: int = 1) -> World:
    here = World(tmp_path, "off", Gate())
    for _ in range(batches):
        here.batch()
    return here


def the_table(here: World) -> Any:  # noqa: ANN401
    table = here.runner._lake.get(here.config.table_rules(SourceTable("shop", "a")))
    assert table is not None
    return table


def interfering(monkeypatch: pytest.MonkeyPatch, here: World, times: int, extra: dict[str, str]) -> list[str]:
    """Another writer commits between the files of our commits and their end, so often."""
    done: list[str] = []
    written = BucketRows.write

    def write(*arguments: Any) -> Any:  # noqa: ANN401
        results = written(*arguments)
        if len(done) < times:
            other = here.table()
            done.append(other.commit(other.begin(), [], extra))
        return results

    monkeypatch.setattr(BucketRows, "write", write)
    return done


def test_an_overtaken_batch_is_written_again_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    here = fed(tmp_path)
    counts = here.batch()
    done = interfering(monkeypatch, here, 1, {})
    caplog.set_level("INFO", "binlake")
    told = here.batch()  # looks at the rows, through hudi-rs
    assert done
    assert "overtaken" in events(caplog)
    assert told.error is None
    assert told.events_read == counts.events_read + 1
    assert here.runner.ledger.behind == {}
    assert len(the_table(here).hudi.timeline.completed_actions({"rollback"})) == 1


def test_another_run_of_the_same_stream_is_not_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = fed(tmp_path, 2)
    moved = '{"shop": {"s.shop.a": {"0": 999}}}'
    interfering(monkeypatch, here, 1, {RecordKey.POSITIONS: moved})
    told = here.update()
    assert told.error is not None
    assert "another run of this stream" in told.error
    assert SourceTable("shop", "a") in here.runner.ledger.behind


def test_rows_in_a_bucket_that_the_table_does_not_have_stop_the_writer(tmp_path: Path) -> None:
    here = fed(tmp_path, 2)
    other = here.table()
    instant = other.begin()
    gone = pa.table({RECORD_KEY_FIELD: ["7"], ORDER_FIELD: pa.array([1], pa.int64())})
    wrong = FileGroupWrite("", file_id(other.config.name, "", 7), deletes=gone)
    other.commit(instant, [write_file_group(other.storage, other.write_context(instant), wrong)])
    files = sum(p.is_file() for p in (tmp_path / "shop/a").rglob("*"))
    told = here.update()
    assert told.error is not None
    assert "bucket 7 of a table of 2 buckets" in told.error
    assert sum(p.is_file() for p in (tmp_path / "shop/a").rglob("*")) == files
    assert SourceTable("shop", "a") in here.runner.ledger.behind
