"""A replica is read in place of its primary, at the position of the primary's binlog."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.planted import PASSWORD, USER
from binlake.settings import ReplicaSettings
from embedded.mariadb import EmbeddedMariaDB
from hudilake.errors import TransientError
from tests.binlake.proof.verify.source import SentTable

pytestmark = pytest.mark.database


@pytest.fixture
def replica(server: EmbeddedMariaDB) -> Iterator[EmbeddedMariaDB]:
    """A second server that follows the first one."""
    server.execute(f"GRANT REPLICATION SLAVE ON *.* TO '{USER}'@'%'")
    with tempfile.TemporaryDirectory(prefix="rp") as place, EmbeddedMariaDB(Path(place)) as second:
        second.execute(
            f"SET GLOBAL server_id = 4712; CHANGE MASTER TO MASTER_HOST = '{server.host}', MASTER_PORT = {server.port},"
            f" MASTER_USER = '{USER}', MASTER_PASSWORD = '{PASSWORD}', MASTER_LOG_FILE = 'mariadb-bin.000001',"
            " MASTER_LOG_POS = 4, MASTER_USE_GTID = no, MASTER_SSL = 0, MASTER_SSL_VERIFY_SERVER_CERT = 0; START SLAVE"
        )
        yield second
        second.execute("STOP SLAVE")


@pytest.mark.full
def test_a_replica_stands_at_its_primarys_position(
    server: EmbeddedMariaDB, replica: EmbeddedMariaDB, tmp_path: Path
) -> None:
    sent = SentTable(server, tmp_path, "followed", {"t": {"id": "int", "v": "int"}}, {"t": ["id"]})
    server.execute("CREATE DATABASE followed; CREATE TABLE followed.t (id INT PRIMARY KEY, v INT)")
    server.execute("USE followed; INSERT INTO t SELECT seq, 1 FROM seq_0_to_9")
    for number in range(10):
        sent.send("t", "c", {"id": number, "v": 1})
    sent.apply()
    caught_up(server, replica)
    place = ReplicaSettings(host=replica.host, port=replica.port)
    result = sent.verify(replica=place)["followed.t"]
    assert (result.different, result.source_rows) == (False, 10)
    file, position = sent.place_now()
    assert result.positions[0].startswith(f"{file}:{position}")
    replica.execute("SET sql_log_bin = 0; UPDATE followed.t SET v = 2 WHERE id = 3")  # the control: it is this one
    assert sent.verify(replica=place)["followed.t"].differing == {"differs": 1}
    replica.execute("STOP SLAVE SQL_THREAD")
    server.execute("UPDATE followed.t SET v = 5 WHERE id = 4")
    sent.send("t", "u", {"id": 4, "v": 5})
    sent.apply()
    with pytest.raises(TransientError, match="the lake is ahead of it"):
        sent.verify(replica=place)
    server.execute("DROP DATABASE followed")


def caught_up(server: EmbeddedMariaDB, replica: EmbeddedMariaDB) -> None:
    """Wait until the replica has applied what the server has written."""
    file, position = server.execute("SHOW MASTER STATUS")[0].split("\t")[:2]
    [waited] = replica.execute(f"SELECT MASTER_POS_WAIT('{file}', {position}, 60)")
    assert waited not in ("-1", "NULL"), replica.execute("SHOW SLAVE STATUS")
    time.sleep(0.1)
