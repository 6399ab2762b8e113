"""The server on which TPC-C runs, the connector that follows it and the broker, each of which can be killed."""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from embedded.connect import EmbeddedConnect, database_connector
from embedded.kafka import EmbeddedKafka
from embedded.mariadb import EmbeddedMariaDB
from hudilake import clock
from hudilake.errors import TransientError
from tests.programs.oracle.services import left_on_sigterm
from tests.programs.tpcc.recording import DATABASE, PREFIX, Records

_PARTITIONS = 2
_USER, _PASSWORD = "tpcc", "tpcc-" + "x7!Kq"
_MARKS = "marks"
_MARKS_TOPIC = f"{PREFIX}.{_MARKS}.marks"
_PATIENCE_S = 240.0


class TpccSource:
    """The three services.

    Args:
        database, broker: that run.
        place: a directory of its own.
        go_tpc: the program.
        warehouses: how many there are.
    """

    def __init__(
        self, database: EmbeddedMariaDB, broker: EmbeddedKafka, place: Path, go_tpc: Path, warehouses: int
    ) -> None:
        self.database, self.broker, self._go_tpc, self._warehouses = database, broker, go_tpc, warehouses
        self._place = place
        self._marks = 0
        database.execute(
            # Events of one transaction have positions of their own then, and texts are compared as bytes.
            "SET GLOBAL binlog_legacy_event_pos = ON; SET sql_log_bin = 0;"
            f" CREATE USER '{_USER}'@'%' IDENTIFIED BY '{_PASSWORD}'; GRANT ALL ON *.* TO '{_USER}'@'%';"
        )
        database.execute(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin")
        database.execute(f"CREATE DATABASE {_MARKS}; CREATE TABLE {_MARKS}.marks (id INT PRIMARY KEY)")
        connector = database_connector(
            database,
            _USER,
            _PASSWORD,
            prefix=PREFIX,
            server_id=9001,
            include=f"{DATABASE},{_MARKS}",
            partitions=_PARTITIONS,
        )
        connector |= {
            "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
            "schema.history.internal.file.filename": str(place / "schemas"),
            "provide.transaction.metadata": "true",
            "poll.interval.ms": "50",
        }
        self.connect = EmbeddedConnect(place / "connect", broker.bootstrap_servers, {"tpcc": connector}, heap_mb=400)

    def load(self, *, further: bool) -> None:
        """Make and fill the tables; ``further``: those of CH-benCHmark too. Raises TransientError."""
        self._run("tpcc", "prepare", "--no-check")
        if further:
            self._run("ch", "prepare")

    def begin(self, transactions: int, threads: int = 3) -> subprocess.Popen[bytes]:
        """Start so many transactions in the mix of the specification; the process ends when they are done."""
        with (self._place / "go-tpc.log").open("ab") as log:
            return subprocess.Popen(
                self._command("tpcc", "run", "--count", str(transactions), "--threads", str(threads)),
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def check(self) -> None:
        """The program's own check of the conditions at the server. Raises TransientError."""
        self._run("tpcc", "check")

    def mark(self) -> None:
        """Write a row that has its place behind all that was done, and wait until it is in its topic.

        A connector that catches up may send it in the millisecond of what was done before it.
        """
        self._marks += 1
        self.database.execute(f"INSERT INTO {_MARKS}.marks VALUES ({self._marks})")
        deadline = clock.monotonic_s() + _PATIENCE_S
        while self._marked() < self._marks:
            self.connect.check()
            if clock.monotonic_s() > deadline:
                raise TransientError("the connector does not follow", do_next="read its log")

    def _marked(self) -> int:
        held = [value for records in self.records([_MARKS_TOPIC]).values() for _, _, value in records]
        return max((json.loads(value)["after"]["id"] for value in held if value is not None), default=0)

    def records(self, topics: list[str] | None = None) -> dict[tuple[str, int], Records]:
        """What the topics have; None for all of the connector's topics but those of marks."""
        consumer = Consumer(
            {"bootstrap.servers": self.broker.bootstrap_servers, "group.id": "tpcc", "enable.auto.commit": False}
        )
        try:
            known = consumer.list_topics(timeout=30).topics
            ours = [name for name in known if name.split(".")[0] == PREFIX and name != _MARKS_TOPIC]
            names = topics if topics is not None else ours
            places = [(name, p) for name in names if name in known for p in known[name].partitions]
            return {place: _read(consumer, *place) for place in places}
        finally:
            consumer.close()

    def _command(self, *words: str) -> list[str]:
        address = ["-H", self.database.host, "-P", str(self.database.port), "-U", _USER, "-p", _PASSWORD]
        return [str(self._go_tpc), *words, *address, "-D", DATABASE, "--warehouses", str(self._warehouses)]

    def _run(self, *words: str) -> None:
        done = subprocess.run(self._command(*words), capture_output=True, text=True, check=False)
        if done.returncode:
            said = (done.stdout + done.stderr).strip()[-1000:]
            raise TransientError(f"go-tpc {' '.join(words)} failed: {said}", do_next="read what it says")


@contextlib.contextmanager
def tpcc_source(go_tpc: Path, warehouses: int = 1) -> Iterator[TpccSource]:
    """The services for the length of the block, in a temporary directory; the connector is not started yet."""
    with tempfile.TemporaryDirectory(prefix="tp") as directory, contextlib.ExitStack() as stack:
        stack.enter_context(left_on_sigterm())
        place = Path(directory)
        database = stack.enter_context(EmbeddedMariaDB(place / "db"))
        broker = stack.enter_context(EmbeddedKafka(place / "kafka"))
        source = TpccSource(database, broker, place, go_tpc, warehouses)
        try:
            yield source
        finally:
            source.connect.kill()


def _read(consumer: Consumer, topic: str, partition: int) -> Records:
    first, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=30)
    consumer.assign([TopicPartition(topic, partition, first)])
    records: Records = []
    while len(records) < end - first:
        for message in consumer.consume(5_000, 1.0):
            if message.error() is None:
                records.append((message.timestamp()[1], message.key(), message.value()))
    return records
