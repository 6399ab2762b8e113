"""A stream that reads a server's binlog itself: the lake is the server, whatever happens on the way."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from binlake.position.record_reader import RecordReader
from binlake.schema.rules.undetermined import WHOLE_ROWS, undetermined_columns
from embedded.mariadb import EmbeddedMariaDB
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.binlake.stream.binlog.followed import FollowedDatabase, random_statements
from tests.binlake.stream.soundness import check_table
from tests.hypothesis_profile import scaled


@pytest.mark.full
def test_rows_statements_and_files(server: EmbeddedMariaDB, tmp_path: Path) -> None:
    followed = FollowedDatabase(server, tmp_path, "plain")
    statements = list(random_statements(7, 30))
    followed.execute(*statements[:18])
    first = followed.apply()
    followed.execute(*statements[18:])
    second = followed.apply()
    assert sum(event.events_read for event in first) > 0 < sum(event.events_read for event in second)
    assert sum(table.quarantined for event in (*first, *second) for table in event.tables) == 0
    followed.check("bare", "keyed")
    assert followed.apply() == []


UNDONE = (
    "BEGIN; INSERT INTO t VALUES (2); CREATE TEMPORARY TABLE d1 (id INT); INSERT INTO t VALUES (3); ROLLBACK",
    "BEGIN; INSERT INTO t VALUES (4); CREATE TEMPORARY TABLE d2 (id INT); SAVEPOINT `a``b`; INSERT INTO t VALUES (5); "
    "ROLLBACK TO `a``b`; INSERT INTO t VALUES (6); COMMIT",
)


def test_what_is_rolled_back_is_left_out(server: EmbeddedMariaDB, tmp_path: Path) -> None:
    followed = FollowedDatabase(server, tmp_path, "undone")
    followed.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)", *UNDONE)
    file, position = followed.start.split(":")
    logged = server.execute(f"SHOW BINLOG EVENTS IN '{file}' FROM {position}")
    assert [sum(word in line for line in logged) for word in ("ROLLBACK", "Write_rows_v1")] == [2, 6]  # they are there
    events = followed.apply()
    assert sum(event.events_read for event in events) == 3
    followed.check("t")


def test_more_rows_than_are_held_back_are_named(server: EmbeddedMariaDB, tmp_path: Path) -> None:
    followed = FollowedDatabase(server, tmp_path, "undone_late")
    rolled_back = "INSERT INTO t SELECT seq FROM seq_10_to_9000; CREATE TEMPORARY TABLE d (id INT); ROLLBACK"
    followed.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)", f"BEGIN; {rolled_back}")
    followed.apply()
    table = HudiTable.open(open_storage(str(tmp_path / "lake/undone_late/t")))
    named = undetermined_columns(RecordReader.newest_of(table).ddl or ())
    assert [one.column for one in named] == [WHOLE_ROWS]


def run_until_killed(followed: FollowedDatabase, chance: random.Random) -> None:
    """Let a process run for a few batches, then kill it somewhere inside a later one."""
    command = [sys.executable, "-m", "binlake.cli", "run", str(followed.conf), "--json"]
    with followed.conf.with_suffix(".log").open("a") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=followed.place)
    assert process.stdout is not None
    wanted = chance.randrange(1, 4)
    while wanted and process.poll() is None:
        wanted -= process.stdout.readline().startswith("{")
    time.sleep(chance.uniform(0, 0.3))
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=30)
    assert not wanted, followed.conf.with_suffix(".log").read_text()[-3000:]


@pytest.mark.full
def test_killed_again_and_again(server: EmbeddedMariaDB, tmp_path: Path) -> None:
    followed = FollowedDatabase(server, tmp_path, "killed", {"batch": {"max_events": 400}}, compacts=True)
    followed.settings()
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    chance, statements = random.Random(seed), list(random_statements(seed, 160))
    kills = scaled(8, least=4)
    for number in range(kills):
        followed.execute(*statements[number * len(statements) // kills : (number + 1) * len(statements) // kills])
        run_until_killed(followed, chance)
    followed.apply()
    followed.check("bare", "keyed")
    for table in ("bare", "keyed"):
        check_table(tmp_path / "lake" / "killed" / table)
