"""A compaction that hangs is named: by which process, since when, and what helps."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hudilake.clock import now_ms, parse_instant
from tests.binlake.cli.console.watched_lake import Watched, words_of
from tests.binlake.cli.fed_lake import FedLake

pytestmark = pytest.mark.full
#: ``binlake compact``, which is suspended before it writes its first base file.
COMPACTION = """
import os, signal, sys
from hudilake.services.compaction import job
compact_file_group = job.compact_file_group

def suspended(*given):
    os.kill(os.getpid(), signal.SIGSTOP)
    return compact_file_group(*given)

job.compact_file_group = suspended
sys.argv[0] = "binlake"
from binlake.cli.app import app
app()
"""


def test_a_compaction_whose_process_is_suspended_is_named_and_can_be_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("binlake.cli.console.lake_page.HANGS_MS", 0)
    monkeypatch.setattr("binlake.cli.console.watch._BUSY_MS", 0)
    lake = FedLake(tmp_path)
    lake.feed(4)
    seen = Watched.of(lake.conf)
    assert "has been pending" not in words_of(seen.page("/"))
    words = [sys.executable, "-c", COMPACTION, "compact", str(lake.conf), "shop.a", "--threads", "1"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as process:
        try:
            _, status = os.waitpid(process.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status)
            seen.look()
            [named] = re.findall(r"shop\.a: compaction .*?binlake compact \S+ \S+", words_of(seen.page("/")))
            assert f"process {process.pid} on " in named
            assert " is suspended, last sign " in named
            assert f"Next: kill -CONT {process.pid} lets it go on" in named
            [instant] = re.findall(r"compaction (\d+) has been pending for (?:\d)", named)
            assert 0 <= now_ms() - parse_instant(instant) < 24 * 3600 * 1000
            assert named.partition(" has been pending")[0] in words_of(seen.page("/stream"))
            process.send_signal(signal.SIGCONT)
            os.waitpid(process.pid, os.WUNTRACED)  # it is suspended before the next file group
            seen.look()
            assert " is suspended, last sign " in words_of(seen.page("/"))
        finally:
            process.kill()
    seen.look()
    assert "which worked on it, is dead. Next: binlake compact" in words_of(seen.page("/"))
    done = lake.run("compact", "shop.a")
    assert done.exit_code == 0, done.output
    seen.look()
    assert "has been pending" not in words_of(seen.page("/"))
    lake.check()
