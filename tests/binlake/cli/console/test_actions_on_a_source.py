"""The actions of the console that read the source: a real server, and a lake that differs from it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded.mariadb import EmbeddedMariaDB
from tests.binlake.cli.console.signed_in import Operator
from tests.binlake.cli.console.watched_lake import words_of
from tests.binlake.stream.binlog.followed import FollowedDatabase, binlog_server

pytestmark = [pytest.mark.database, pytest.mark.full]


@pytest.fixture
def server() -> Iterator[EmbeddedMariaDB]:
    with binlog_server() as started:
        yield started


def test_verify_finds_what_differs_and_resync_mends_it(server: EmbeddedMariaDB, tmp_path: Path) -> None:
    followed = FollowedDatabase(server, tmp_path, "acted")
    followed.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t SELECT seq, seq FROM seq_1_to_50")
    followed.apply()
    operator = Operator.of(followed.conf)
    assert "equal" in operator.act("verify", "acted.t").output
    followed.execute("SET sql_log_bin = 0", "DELETE FROM t WHERE id < 4", "UPDATE t SET v = -1 WHERE id = 7")
    told = operator.act("verify", "acted.t", code=66)
    assert all(word in told.output for word in ("extra", "different"))
    assert "differ" in words_of(operator.client.get("/actions").text)
    assert "--from-source" in operator.act("resync", "acted.t").command
    assert "equal" in operator.act("verify", "acted.t").output
    followed.check("t")
