"""The demo from the broker's start to the verdicts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
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
from hudilake.clock import now_ms
from hudilake.errors import ConfigError, TransientError
from hudilake.format.definition.column_names import lake_name

CONF = Path(__file__).parents[1] / "conf" / "demo.yaml"
#: Database and variant of its recording.
RECORDED = (("shop", "schema"), ("bank", "plain"))
SNAPSHOT_ROWS = 300
_START_S, _DRAIN_S = 90.0, 90.0


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


@dataclass
class Scenario:
    """One run of the demo.

    Args:
        directory: for all files of the demo: the broker's data, the lake, the stream's log.
        play_s: how long the recordings are played and the live database changes, in seconds.
        per_second: changes per second of the live database.
        seed: of the live database.
        say: prints a line.
        on_progress: called for every batch.
        show: called with the settings file and its environment once the stream is about to start; None for no call.
    """

    directory: Path
    play_s: float
    per_second: float
    seed: int
    say: Callable[[str], None]
    on_progress: Callable[[ProgressEvent], None]
    show: Callable[[Path, Mapping[str, str]], None] | None = None

    def run(self) -> list[TableVerdict]:
        """Play, stream, stop, judge. Raises LakeError when the stream fails."""
        live = LiveSource(self.seed, lambda: now_ms() * 1000)
        with ThreadPoolExecutor(2) as pool:  # Spark's and Kafka's libraries may have to be fetched: in parallel
            prepared = pool.submit(prepare_spark)
            loading = pool.submit(lambda: [load_recorded(*r) for r in RECORDED])
            self.say("starting Kafka")
            with EmbeddedKafka(self.directory / "kafka") as broker:
                prepared.result()
                recorded = loading.result()
                self._stream(broker.bootstrap_servers, recorded, live)
        self.say("reading every table back with hudi-rs")
        return list(self._verdicts(broker.bootstrap_servers, recorded, live))

    def _environment(self, servers: str) -> dict[str, str]:
        return {
            "BINLAKE_DEMO_BROKER": servers,
            "BINLAKE_DEMO_DIR": str(self.directory.absolute()),
        }

    def _stream(self, servers: str, recorded: Sequence[Recorded], live: LiveSource) -> None:
        partitions = {t: max((m.partition for m in ms), default=0) + 1 for r in recorded for t, ms in r.topics.items()}
        partitions |= {t.topic: PARTITIONS for t in live.tables}
        create_topics(servers, partitions)
        self.say(f"Kafka serves at {servers} with {len(partitions)} topics; starting binlake run {CONF.name}")
        if self.show is not None:
            self.show(CONF, self._environment(servers))
        stream = StreamProcess(
            CONF,
            {**java_environment(), **self._environment(servers)},
            self.directory / "stream.log",
            self.on_progress,
            self.say,
        )
        try:
            self._play(servers, recorded, live, stream)
            data = {t: n for t, n in partitions.items() if t.count(".") == 2}
            self.say("all is produced; waiting for the stream to apply it")
            stream.wait_until_reached(end_offsets(servers, data), _DRAIN_S)
        finally:
            code = stream.stop()
        if code or stream.errors:
            raise TransientError(f"the stream ended with exit code {code}", do_next="read its log", **stream.errors)

    def _play(self, servers: str, recorded: Sequence[Recorded], live: LiveSource, stream: StreamProcess) -> None:
        """Play the recordings and the live database at the same time, each evenly over the time."""
        done = threading.Event()
        scores = [list(interleave(m for topic in r.topics.values() for m in topic)) for r in recorded]
        senders = [Sender(servers) for _ in (*scores, live)]
        senders[-1].send(live.snapshot(SNAPSHOT_ROWS))
        senders[-1].flush()
        stream.wait_for_first_batch(_START_S)
        count = sum(map(len, scores))
        self.say(f"playing {count:,} recorded messages and {self.per_second:g} live changes a second")
        with ThreadPoolExecutor(len(scores) + 1) as pool, _set_at_end(done):
            pairs = zip(scores, senders[:-1], strict=True)
            recordings = [pool.submit(play, score, sender.send, self.play_s, done) for score, sender in pairs]
            changes = pool.submit(play_live, live, senders[-1].send, self.per_second, done)
            while not (changes.done() or all(task.done() for task in recordings)):
                stream.check()
                done.wait(0.2)
            done.set()
            for task in (*recordings, changes):
                task.result()
        for sender in senders:
            sender.flush()

    def _verdicts(self, servers: str, recorded: Sequence[Recorded], live: LiveSource) -> Iterator[TableVerdict]:
        settings = Settings.load(CONF, environ=self._environment(servers))
        for r in recorded:
            for table in r.tables:
                yield self._verdict(
                    settings, table, next((m for t, m in r.topics.items() if t.endswith(f".{table}")), [])
                )
        for table in live.truth():
            yield self._verdict(settings, table, [])

    def _verdict(self, settings: Settings, truth: TruthTable, messages: Sequence[Message]) -> TableVerdict:
        rules = settings.table_rules(truth)
        try:
            lake = read_table(self.directory / "lake" / rules.path)
        except FileNotFoundError as error:
            return TableVerdict(str(truth), len(truth.rows), mistakes=[str(error)])
        derived = {rules.partition.field} if rules.partition and rules.partition.transform != "identity" else set()
        gone = gone_columns(truth, messages)
        return judge(truth, lake, gone=gone, derived=derived, lake_name=lake_name)


@contextmanager
def _set_at_end(event: threading.Event) -> Iterator[None]:
    try:
        yield
    finally:
        event.set()
