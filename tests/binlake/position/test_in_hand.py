"""What is in hand is noted beside the ledger, for those who look from outside, and goes when it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from binlake.position import in_hand
from binlake.position.in_hand import JobProgress, WorkInHand, WorkNotes, in_hand_words, works_in_hand
from hudilake.clock import now_ms
from hudilake.errors import CorruptDataError
from hudilake.storage import open_storage
from tests.hudilake.metadata.below import Counting

#: A load that notes what it does, says so, and waits to be killed.
LOAD = """
import sys, time
from binlake.position.in_hand import WorkInHand, WorkNotes
from hudilake.clock import now_ms
from hudilake.storage import open_storage
work = WorkInHand("load", "shop.a", "reads", now_ms() - 9000, done=1, of=4, unit="rows")
with WorkNotes(open_storage(sys.argv[1]), "load", lambda: work) as notes:
    notes.look()
    print("noted", flush=True)
    time.sleep(600)
"""


def batch(seconds: float) -> WorkInHand:
    return WorkInHand("batch", "7", "fetches", now_ms() - round(seconds * 1000), tables={"shop.a": "waits"})


def test_long_work_is_noted_until_it_ends_and_quick_work_never(tmp_path: Path) -> None:
    storage = Counting(open_storage(str(tmp_path)))
    held: list[WorkInHand | None] = [batch(0.1)]
    notes = WorkNotes(storage, "batch", lambda: held[0])
    notes.look()
    held[0] = None
    notes.look()
    assert storage.calls == []  # a quick batch costs nothing
    held[0] = batch(5)
    notes.look()
    written = len(storage.calls)
    notes.look()
    assert len(storage.calls) == written == 1  # not again at once
    [seen] = works_in_hand(open_storage(str(tmp_path)))
    assert replace(seen, noted_ms=0) == held[0]
    assert seen.lives
    assert in_hand_words([seen])[0].startswith("in hand: batch 7 for ")
    assert in_hand_words([seen])[1] == "  shop.a waits"
    held[0] = None
    notes.look()
    assert works_in_hand(open_storage(str(tmp_path))) == []


def test_what_a_killed_load_left_is_seen_as_gone_and_deleted_by_the_next(tmp_path: Path) -> None:
    state = open_storage(str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", LOAD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as load:
        assert load.stdout is not None
        assert load.stdout.readline() == "noted\n"
        assert [one.lives for one in works_in_hand(state)] == [True]
        with WorkNotes(state, "load", lambda: None):
            pass
        assert len(works_in_hand(state)) == 1  # the control: that of a living process stays
        load.send_signal(signal.SIGKILL)
        load.wait()
    [left] = works_in_hand(state)
    assert not left.lives
    assert str(left).endswith("; its process is gone")
    with WorkNotes(state, "replay", lambda: None):
        pass
    assert len(works_in_hand(state)) == 1  # not one of another kind
    with WorkNotes(state, "load", lambda: None):
        pass
    assert works_in_hand(state) == []


def test_the_rest_of_a_job_is_reckoned_by_its_own_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(in_hand, "monotonic_s", lambda: clock[0])
    progress = JobProgress("load", "rows")
    assert progress.work() is None
    progress.begin("shop.a", 1000, done=400)
    work = progress.work()
    assert work is not None
    assert work.seconds_left is None
    clock[0] += 10
    progress.reach(500, "reads")
    work = progress.work()
    assert work is not None
    assert (work.done, work.of, work.unit, work.what) == (500, 1000, "rows", "reads")
    assert work.seconds_left == pytest.approx(50)  # not 8: the first 400 rows are of an earlier run
    assert "500 of 1,000 rows, about 50 s left" in str(work)
    progress.end()
    assert progress.work() is None


def test_a_damaged_note_is_said(tmp_path: Path) -> None:
    state = open_storage(str(tmp_path))
    state.write("in_hand/batch-x-1.json", b"{")
    with pytest.raises(CorruptDataError, match="what is in hand cannot be read"):
        works_in_hand(state)
