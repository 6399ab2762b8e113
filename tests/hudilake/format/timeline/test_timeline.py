"""The timeline: loading, refreshing by the end of the listing, commit bodies, and the history."""

from __future__ import annotations

import io
import json
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudilake.clock import format_instant, parse_instant
from hudilake.errors import CorruptDataError
from hudilake.format.timeline.avro_container import decode_container, encode_container
from hudilake.format.timeline.commit_metadata import CommitMetadata, WriteStat, keys_within
from hudilake.format.timeline.instant import Instant, State
from hudilake.format.timeline.timeline import LOOKBACK_MS, Timeline
from hudilake.storage import open_storage
from hudilake.storage.base import Storage
from tests.hudilake.failing_storage import CountingStorage
from tests.hudilake.lake import commit, new_table, upserts
from tests.paths import GOLDEN

T0 = parse_instant("20240101000000000")


def time(seconds: float) -> str:
    """An instant some seconds after T0."""
    return format_instant(T0 + int(seconds * 1000))


def put(
    storage: Storage, requested: float, state: State, completed: float | None = None, action: str = "deltacommit"
) -> Instant:
    """An instant file with a body."""
    instant = Instant(time(requested), action, state)
    if completed is not None:
        instant = instant.in_state(State.COMPLETED, time(completed))
    storage.create(instant.path, CommitMetadata().to_bytes())
    return instant


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(tmp_path.as_uri())


def test_an_empty_timeline(storage: Storage) -> None:
    timeline = Timeline.load(storage)
    assert (timeline.completed(), timeline.pending(), timeline.latest_time()) == ([], [], None)
    assert timeline.last_completed() is None
    assert not timeline.is_completed(time(0))
    assert timeline.refresh() == []


def test_loading_keeps_the_furthest_state(storage: Storage) -> None:
    for state in (State.REQUESTED, State.INFLIGHT):
        put(storage, 1, state)
        put(storage, 5, state)
    done = put(storage, 1, State.COMPLETED, 3)
    put(storage, 4, State.REQUESTED, action="compaction")
    timeline = Timeline.load(storage)
    assert timeline.completed() == [done]
    assert [(i.requested_time, i.state.value) for i in timeline.pending()] == [
        (time(4), "requested"),
        (time(5), "inflight"),
    ]
    assert timeline.latest_time() == time(5)
    assert timeline.find(time(1)) == done
    assert timeline.find(time(2)) is None
    found = timeline.find(time(4))
    assert found is not None
    assert found.action == "compaction"


def test_a_refresh_sees_new_instants_and_old_ones_that_completed(storage: Storage) -> None:
    put(storage, 0, State.COMPLETED, 1)
    put(storage, 1, State.INFLIGHT)
    for second in range(1000, 1010):
        put(storage, second, State.COMPLETED, second)
    timeline = Timeline.load(storage)
    assert timeline.refresh() == []
    old, new = put(storage, 1, State.COMPLETED, 2000), put(storage, 2001, State.COMPLETED, 2002)
    assert timeline.refresh() == [old, new]
    assert timeline.refresh() == []
    assert timeline.pending() == []
    assert [i.requested_time for i in timeline.completed()] == sorted(i.requested_time for i in timeline.completed())
    assert timeline.last_completed() == new


def test_a_refresh_sees_a_writer_whose_clock_is_behind(storage: Storage) -> None:
    put(storage, 1000, State.COMPLETED, 1001)
    timeline = Timeline.load(storage)
    behind = put(storage, 1000 - LOOKBACK_MS / 1000 + 1, State.COMPLETED, 1002)
    assert timeline.refresh() == [behind]


def test_a_refresh_forgets_what_was_rolled_back(storage: Storage) -> None:
    gone = put(storage, 1, State.INFLIGHT)
    put(storage, 500, State.COMPLETED, 501)
    timeline = Timeline.load(storage)
    storage.delete(gone.path)
    rollback = put(storage, 600, State.COMPLETED, 601, "rollback")
    assert timeline.refresh() == [rollback]
    assert timeline.pending() == []
    assert timeline.completed_actions({"rollback"}) == [rollback]
    assert timeline.last_completed() != rollback


def test_a_refresh_lists_only_the_end(storage: Storage) -> None:
    """Names given by the store, not calls: this is what grows with the age of a table."""
    for second in range(0, 500, 3):
        put(storage, second, State.COMPLETED, second)
    counting = CountingStorage(storage)
    timeline = Timeline.load(counting)
    assert timeline.refresh() == []
    assert counting.listed == [167, 2]
    assert [method for method, _ in counting.calls] == ["list", "list"]


def test_our_own_instants_are_no_news(storage: Storage) -> None:
    timeline = Timeline.load(storage)
    timeline.record(put(storage, 1, State.INFLIGHT))
    timeline.record(put(storage, 1, State.COMPLETED, 2))
    timeline.record(put(storage, 3, State.INFLIGHT))
    assert timeline.refresh() == []
    assert timeline.is_completed(time(1))
    assert not timeline.is_completed(time(3))
    assert timeline.is_completed(time(0)), "before the first instant of the active timeline: archived"


def test_the_metadata_tables_first_instants(storage: Storage) -> None:
    """They are no dates: the whole timeline is listed then, and no time is computed from them."""
    timeline = Timeline.load(storage)
    for number in ("00000000000000000", "00000000000000001"):
        timeline.record(Instant(number, "deltacommit", State.COMPLETED, time(1)))
        storage.create(f".hoodie/timeline/{number}_{time(1)}.deltacommit", b"")
    assert timeline.refresh() == []
    golden = Timeline.load(open_storage((GOLDEN / "tbl_hudi120/.hoodie/metadata").as_uri()))
    assert len(golden.completed()) == 12
    assert golden.refresh() == []


def test_loading_reads_no_bodies(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for order in range(5):
        commit(table, upserts([1], order), {"k": str(order)})
    counting = CountingStorage(table.storage)
    timeline = Timeline.load(counting)
    newest = timeline.last_completed()
    assert newest is not None
    for _ in range(3):
        assert timeline.commit_metadata(newest).extra["k"] == "4"
    assert [method for method, _ in counting.calls] == ["list", "read"]


KEYS = ("k", "rare", "never")


def test_what_commits_lack_is_known_without_taking_them_apart(tmp_path: Path) -> None:
    """Each body is read once, and those that have a key again, whose bytes alone do not say so."""
    table = new_table(tmp_path)
    for order in range(5):
        commit(table, upserts([1], order), {"k": "never", **({"rare": "1"} if order == 1 else {})})
    counting = CountingStorage(table.storage)
    timeline = Timeline.load(counting)
    counting.calls.clear()
    timeline.look_for(KEYS)
    timeline.look_for(KEYS[:1])  # nothing is read again for that
    assert len(counting.calls) == 2 * 5
    counting.calls.clear()
    having = {key: [bool(timeline.extra_of(write, key)) for write in timeline.completed()] for key in KEYS}
    assert having == {"k": [True] * 5, "rare": [False, True, False, False, False], "never": [False] * 5}
    assert len(counting.calls) == 5


def test_only_a_whole_body_of_ours_says_what_it_lacks(storage: Storage) -> None:
    """Of Hudi's, of a torn one and of a longer one nothing is concluded: they are read as ever."""
    whole = CommitMetadata(extra={"k": "1"}).to_bytes()
    assert keys_within(whole, [b"k1", b"never"]) == []
    replaced = CommitMetadata(extra={"k": "1"}, replaced={"": ("a",)}).to_bytes()
    assert keys_within(replaced, [b"k", b"never"]) == [b"k"]
    others = [whole[:cut] for cut in range(len(whole))] + [whole + b"\0", whole + whole[-16:], b"{}"]
    golden = Timeline.load(open_storage((GOLDEN / "tbl_hudi120").as_uri())).completed()[0]
    others.append((GOLDEN / "tbl_hudi120" / golden.path).read_bytes())
    assert {keys_within(other, [b"never"]) is None for other in others} == {True}
    torn = put(storage, 1, State.INFLIGHT).in_state(State.COMPLETED, time(2))
    storage.create(torn.path, whole[:-20])
    timeline = Timeline.load(storage)
    timeline.look_for(KEYS)
    with pytest.raises(CorruptDataError):
        timeline.extra_of(torn, "never")


# -- bodies


GOLDEN_COMMITS = sorted((GOLDEN / "tbl_hudi120/.hoodie/timeline").glob("*_*commit"))


@pytest.mark.parametrize("path", GOLDEN_COMMITS, ids=lambda p: p.name)
def test_hudis_commits(path: Path) -> None:
    data = path.read_bytes()
    record = decode_container(data, str(path))
    body = io.BytesIO()
    fastavro.schemaless_writer(body, next(fastavro.block_reader(io.BytesIO(data))).writer_schema, record)
    assert body.getvalue() in data, "the record is read without loss"
    ours = encode_container("HoodieCommitMetadata", record)
    assert body.getvalue() in ours, "and written as Hudi writes it"
    metadata = CommitMetadata.from_bytes(data, str(path))
    assert metadata.compacted == path.name.endswith(".commit")
    assert json.loads(metadata.extra["schema"])["name"] == "golden_record"
    for stat in metadata.stats:
        theirs = next(s for s in record["partitionToWriteStats"][stat.partition_path] if s["path"] == stat.path)
        differing = {k for k, v in stat.to_avro().items() if theirs[k] != v}
        assert differing <= {"totalLogReadTimeMs", "totalUpdatedRecordsCompacted"}


def test_our_commits_read_back_and_are_the_same_bytes_twice() -> None:
    stat = WriteStat("p=1", "f-0", "p=1/.f-0_1.log.1_0-0-0", "1", 3, 1, 3, 0, 99, 1, None, (".f-0_1.log.1_0-0-0",))
    metadata = CommitMetadata((stat,), {"schema": "{}", "ключ": "значение"}, "UPSERT", False)
    data = metadata.to_bytes()
    assert data == metadata.to_bytes()
    back = CommitMetadata.from_bytes(data, "x")
    assert back.stats[0].to_avro() == stat.to_avro()
    assert (back.extra, back.partitions(), stat.file_name) == (metadata.extra, {"p=1"}, ".f-0_1.log.1_0-0-0")
    (record,) = fastavro.reader(io.BytesIO(data))
    assert record["operationType"] == "UPSERT"  # type: ignore[index, call-overload]


@pytest.mark.parametrize("data", [b"", b"{}", b"Obj\x01", CommitMetadata().to_bytes()[:-20]])
def test_a_damaged_body_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptDataError, match="instant"):
        CommitMetadata.from_bytes(data, "some/path")


def test_the_history(tmp_path: Path, storage: Storage) -> None:
    history = tmp_path / ".hoodie/timeline/history"
    history.mkdir(parents=True)
    rows = {
        "instantTime": [time(1), time(2), time(3)],
        "completionTime": [time(9), time(3), time(4)],
        "action": ["deltacommit", "commit", "clean"],
        "metadata": [CommitMetadata(extra={"k": "1"}).to_bytes(), CommitMetadata(extra={"k": "2"}).to_bytes(), b""],
    }
    pq.write_table(pa.table(rows), history / "a.parquet")
    (history / "manifest_3").write_text(json.dumps({"files": [{"fileName": "a.parquet", "fileLen": 1}]}))
    (history / "_version_").write_text("3")
    put(storage, 100, State.COMPLETED, 101)
    timeline = Timeline.load(storage)
    assert timeline.completion_time(time(1)) == time(9)
    assert timeline.completion_time(time(50)) == time(50), "unknown to the history: as Hudi, completed"
    assert timeline.completion_time(time(100)) == time(101)
    assert timeline.completion_time(time(200)) is None
    assert [(c.requested_time, c.action) for c in timeline.history().commits()] == [
        (time(2), "commit"),
        (time(1), "deltacommit"),
    ]
    (history / "_version_").write_text("x")
    with pytest.raises(CorruptDataError, match="history"):
        Timeline.load(storage).history()
