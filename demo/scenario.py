"""The demo from the broker's start to the verdicts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from binlake.settings import Settings
from binlake.stream.monitoring.progress import ProgressEvent
from binlake.stream.spark.java import java_environment
from binlake.stream.spark.session import prepare_spark
from demo.gone_columns import gone_columns
from demo.live import PARTITIONS, LiveSource
from demo.messages import Message
from demo.produce import Sender, create_topics, end_offsets, interleave, play, play_live
from demo.readback import read_table
from demo.recordings import RECORDINGS, read_recording
from demo.stream_process import StreamProcess
from demo.truth import TruthTable, load_truth
from demo.verdict import TableVerdict, judge
from embedded.kafka import EmbeddedKafka
from embedded.process import free_ports
from hudilake.clock import now_ms
from hudilake.errors import ConfigError, TransientError
from hudilake.format.definition.column_names import lake_name

CONF = Path(__file__).parents[1] / "conf" / "demo.yaml"
#: Database and variant of its recording.
RECORDED = (("shop", "schema"), ("bank", "plain"))
SNAPSHOT_ROWS = 300
_START_S, _DRAIN_S = 90.0, 90.0
#: How often the stream is looked at, in seconds; changes a second of the live database while the demo stays.
_WATCH_S, _CALM_PER_S = 0.2, 5.0


@dataclass(frozen=True)
class Recorded:
    """A recorded database: its messages by topic, and its final tables."""

    topics: dict[str, list[Message]]
    tables: list[TruthTable]


def load_recorded(database: str, variant: str, root: Path = RECORDINGS) -> Recorded:
    """Read a recording: the data topics and the schema change topic.

    Raises ConfigError where the recordings are missing (they are part of the repository, not of the package).
    """
    directory, prefix = root / database / variant, f"{database}_{variant}"
    if not directory.is_dir():
        raise ConfigError("the recorded topics are missing", do_next="run the demo in a checkout", path=str(directory))
    files = [directory / f"{prefix}.jsonl.gz", *sorted(directory.glob(f"{prefix}.{database}.*.jsonl.gz"))]
    topics = {f.name.removesuffix(".jsonl.gz"): list(read_recording(f)) for f in files}
    return Recorded(topics, list(load_truth(root / database / "truth", database)))


@dataclass(frozen=True)
class Scenario:
    """One run of the demo.

    Args:
        directory: for all files of the demo: the broker's data, the lake, the stream's log.
        play_s: how long the recordings are played and the live database changes, in seconds.
        per_second: changes per second of the live database.
        seed: of the live database.
        say: prints a line.
        show: called with the settings file and its environment once the stream is about to start.
    """

    directory: Path
    play_s: float
    per_second: float
    seed: int
    say: Callable[[str], None]
    show: Callable[[Path, Mapping[str, str]], None]

    @contextmanager
    def up(self) -> Iterator[Running]:
        """Kafka and the stream, until the block ends. Raises LakeError if the stream or a last commit failed."""
        live = LiveSource(self.seed, lambda: now_ms() * 1000)
        with ThreadPoolExecutor(2) as pool, ExitStack() as stack:
            # Spark's and Kafka's libraries may have to be fetched: in parallel.
            prepared = pool.submit(prepare_spark)
            loading = pool.submit(lambda: [load_recorded(*r) for r in RECORDED])
            self.say("starting Kafka")
            broker = stack.enter_context(EmbeddedKafka(self.directory / "kafka"))
            prepared.result()
            recorded = loading.result()
            servers = broker.bootstrap_servers
            partitions = _partitions(recorded, live)
            create_topics(servers, partitions)
            self.say(f"Kafka serves at {servers} with {len(partitions)} topics; starting binlake run {CONF.name}")
            (port,) = free_ports(1)
            environment = {
                "BINLAKE_DEMO_BROKER": servers,
                "BINLAKE_DEMO_DIR": str(self.directory.absolute()),
                "BINLAKE_DEMO_PORT": str(port),
            }
            self.show(CONF, environment)
            listeners: list[Callable[[ProgressEvent], None]] = []

            def tell(event: ProgressEvent) -> None:
                for listener in tuple(listeners):
                    listener(event)

            log = self.directory / "stream.log"
            stream = StreamProcess(CONF, {**java_environment(), **environment}, log, self.say, tell)
            settings = Settings.load(CONF, environ=environment)
            try:
                yield Running(self, servers, settings, recorded, live, stream, listeners)
            finally:
                code = stream.stop()
            if code or stream.errors:
                raise TransientError(f"the stream ended with exit code {code}", do_next="read its log", **stream.errors)


@dataclass(frozen=True)
class Running:
    """The demo while Kafka and the stream are up. ``listeners``: they are told of every batch."""

    scenario: Scenario
    servers: str
    settings: Settings
    recorded: Sequence[Recorded]
    live: LiveSource
    stream: StreamProcess
    listeners: list[Callable[[ProgressEvent], None]]

    def play(self, on_progress: Callable[[ProgressEvent], None]) -> None:
        """Play everything, and return when the stream has applied it. ``on_progress`` is called for every batch."""
        self.listeners.append(on_progress)
        try:
            self._play()
            self.scenario.say("all is produced; waiting for the stream to apply it")
            data = {t: n for t, n in _partitions(self.recorded, self.live).items() if t.count(".") == 2}
            self.stream.wait_until_reached(end_offsets(self.servers, data), _DRAIN_S)
        finally:
            self.listeners.remove(on_progress)

    def verdicts(self) -> list[TableVerdict]:
        """Every table of the lake, read by hudi-rs, against its source."""
        self.scenario.say("reading every table back with hudi-rs")
        return list(self._verdicts())

    def go_on(self, stop: threading.Event) -> None:
        """Change the live database now and then, until ``stop`` is set. Raises TransientError when the stream ends."""
        sender = Sender(self.servers)
        with ThreadPoolExecutor(1) as pool, _set_at_end(stop):
            changes = pool.submit(play_live, self.live, sender.send, _CALM_PER_S, stop)
            while not stop.wait(_WATCH_S):
                self.stream.check()
            changes.result()
        sender.flush()

    def _play(self) -> None:
        """Play the recordings and the live database at the same time, each evenly over the time."""
        done = threading.Event()
        play_s, per_second = self.scenario.play_s, self.scenario.per_second
        scores = [list(interleave(m for topic in r.topics.values() for m in topic)) for r in self.recorded]
        senders = [Sender(self.servers) for _ in (*scores, self.live)]
        senders[-1].send(self.live.snapshot(SNAPSHOT_ROWS))
        senders[-1].flush()
        self.stream.wait_for_first_batch(_START_S)
        count = sum(map(len, scores))
        self.scenario.say(f"playing {count:,} recorded messages and {per_second:g} live changes a second")
        with ThreadPoolExecutor(len(scores) + 1) as pool, _set_at_end(done):
            pairs = zip(scores, senders[:-1], strict=True)
            recordings = [pool.submit(play, score, sender.send, play_s, done) for score, sender in pairs]
            changes = pool.submit(play_live, self.live, senders[-1].send, per_second, done)
            while not (changes.done() or all(task.done() for task in recordings)):
                self.stream.check()
                done.wait(_WATCH_S)
            done.set()
            for task in (*recordings, changes):
                task.result()
        for sender in senders:
            sender.flush()

    def _verdicts(self) -> Iterator[TableVerdict]:
        for r in self.recorded:
            for table in r.tables:
                messages = next((m for t, m in r.topics.items() if t.endswith(f".{table}")), [])
                yield self._verdict(table, messages)
        for table in self.live.truth():
            yield self._verdict(table, [])

    def _verdict(self, truth: TruthTable, messages: Sequence[Message]) -> TableVerdict:
        rules = self.settings.table_rules(truth)
        try:
            lake = read_table(self.scenario.directory / "lake" / rules.path)
        except FileNotFoundError as error:
            return TableVerdict(str(truth), len(truth.rows), mistakes=[str(error)])
        derived = {rules.partition.field} if rules.partition and rules.partition.transform != "identity" else set()
        gone = gone_columns(truth, messages)
        return judge(truth, lake, gone=gone, derived=derived, lake_name=lake_name)


def _partitions(recorded: Sequence[Recorded], live: LiveSource) -> dict[str, int]:
    """How many partitions each topic has."""
    partitions = {t: max((m.partition for m in ms), default=0) + 1 for r in recorded for t, ms in r.topics.items()}
    return partitions | {t.topic: PARTITIONS for t in live.tables}


@contextmanager
def _set_at_end(event: threading.Event) -> Iterator[None]:
    try:
        yield
    finally:
        event.set()
