"""A log with its state, in one process."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from hudilake.commit.intent import GroupIntent, Intent
from hudilake.errors import BadInputError, CorruptDataError
from hudilake.storage import StorageError
from lakemetastore.log.errors import ConflictError
from lakemetastore.log.policy import LogPolicy
from lakemetastore.log.stores.base import LogStore, TrimmedError
from lakemetastore.log.stores.opening import open_store
from lakemetastore.log.token import Token
from lakemetastore.log.versioned import VersionedLog
from tests.lakemetastore.log.counters import FOLD, Added, Change, Counters, Forgotten, counting

LOG = "tables/a"
POLICY = LogPolicy(background=False, snapshot_every=10, turn_timeout_s=1)


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    return open_store(str(tmp_path / "store"))


def _log(store: LogStore, policy: LogPolicy = POLICY) -> VersionedLog[Counters, Change]:
    return VersionedLog(store, LOG, FOLD, policy)


def _intent(file_id: str, *columns: str, partition: str = "p") -> Intent:
    group = GroupIntent(partition, file_id, frozenset(columns) or None, inserts=False, deletes=False)
    return Intent.of_groups([group])


def test_a_commit_is_seen_by_others_at_once(store: LogStore) -> None:
    mine, theirs = _log(store), _log(store)
    assert (mine.state().version, mine.state().state) == (0, Counters())
    done = mine.commit(counting("a"))
    assert (done.version, done.state.numbers) == (1, {"a": 1})
    assert theirs.state() == done
    assert theirs.commit(counting("a")).state.numbers == {"a": 2}
    assert mine.commit(counting("b")).state == Counters({"a": 2, "b": 1}, 3)
    assert str(mine.state().token) == "tables/a:3"
    assert [each.change for each in mine.changes(1)] == [Added("a", 2), Added("b", 1)]


def test_nothing_to_change_writes_nothing_and_a_refusal_is_the_proposers(store: LogStore) -> None:
    log = _log(store)
    log.commit(counting("a"))
    assert log.commit(lambda state: None).version == 1

    def refuse(state: Counters) -> Change:
        raise KeyError("no")

    with pytest.raises(KeyError):
        log.commit(refuse)
    assert store.last(LOG) == 1


def test_who_was_overtaken_proposes_again_on_the_newer_state(store: LogStore) -> None:
    log, asked = _log(store), []

    def propose(state: Counters) -> Change:
        asked.append(state.numbers)
        if len(asked) == 1:
            _log(store, replace(POLICY, turn_timeout_s=0)).commit(counting("b"))
        return Added("a", 1)

    assert log.commit(propose).state.numbers == {"a": 1, "b": 1}
    assert asked == [{}, {"b": 1}]


def test_a_state_may_be_as_old_as_the_policy_allows_but_not_older_than_a_token(store: LogStore) -> None:
    patient, other = _log(store, replace(POLICY, check_after_ms=3_600_000)), _log(store)
    assert patient.state().version == 0
    token = other.commit(counting("b")).token
    assert patient.state().version == 0
    assert patient.state(Token.parse(str(token))).version == 1
    other.commit(counting("b"))
    assert patient.state().version == 1
    assert patient.commit(counting("a")).version == 3
    assert patient.state().version == 3


def test_tokens_that_cannot_be_honoured_are_refused(store: LogStore) -> None:
    log = _log(store)
    log.commit(counting("a"))
    with pytest.raises(BadInputError, match="of another log"):
        log.state(Token("tables/b", 1))
    with pytest.raises(StorageError, match="has not the version"):
        log.state(Token(LOG, 2))
    for text in ("", "a", ":1", "a:", "a:-1", "a:x", "a:²"):
        with pytest.raises(BadInputError, match="no token"):
            Token.parse(text)


def test_commits_of_many_threads_share_versions_and_none_is_lost(store: LogStore) -> None:
    log, threads, each = _log(store), 16, 10
    start = threading.Barrier(threads)

    def work(thread: int) -> None:
        start.wait()
        for number in range(1, each + 1):
            assert log.commit(counting(f"{thread}")).state.numbers[f"{thread}"] == number

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))
    assert log.state().state == Counters({f"{thread}": each for thread in range(threads)}, threads * each)
    assert log.state().version < threads * each
    assert _log(store).state().state == log.state().state


def test_a_refusal_in_a_group_does_not_touch_the_others(store: LogStore) -> None:
    log, threads = _log(store), 8
    start = threading.Barrier(threads)

    def work(thread: int) -> str:
        def once(state: Counters) -> Change:
            if "only" in state.numbers:
                raise KeyError("taken")
            return Added("only", 1)

        start.wait()
        try:
            log.commit(once)
        except KeyError:
            return "refused"
        return "done"

    with ThreadPoolExecutor(threads) as pool:
        outcomes = list(pool.map(work, range(threads)))
    assert sorted(outcomes) == ["done"] + ["refused"] * (threads - 1)
    assert log.state().state == Counters({"only": 1}, 1)


def test_changes_beside_each_other_are_rebased_and_others_are_refused(store: LogStore) -> None:
    log, other = _log(store), _log(store)
    base = log.commit(counting("a"), _intent("g0")).version
    other.append(base, Added("b", 1), _intent("g1", "x"))
    log.append(base, Added("c", 1), _intent("g2"))
    log.append(base, Added("d", 1), _intent("g1", "y"))
    with pytest.raises(ConflictError, match=r"version 2 of the log.*file group g1 in p"):
        log.append(base, Added("e", 1), _intent("g1", "x", "z"))
    with pytest.raises(ConflictError, match="file group g1"):
        log.append(base, Added("e", 1), _intent("g1", "z"), "row")
    assert log.append(2, Added("e", 1), _intent("g1", "x", "z")).version == 5
    other.commit(lambda state: Forgotten("a"))
    with pytest.raises(ConflictError, match=r"version 6 of the log.*the whole table"):
        log.append(base, Added("f", 1), _intent("g3"))
    # A process that has not read the entries in between looks them up.
    fresh = _log(store)
    with pytest.raises(ConflictError, match="version 6"):
        fresh.append(base, Added("f", 1), _intent("g3"))
    assert fresh.append(6, Added("f", 1), _intent("g3")).version == 7


def test_a_base_whose_successors_are_forgotten_is_refused(store: LogStore) -> None:
    log = _log(store)
    for _ in range(25):
        log.commit(counting("a"), _intent("g0"))
    with pytest.raises(ConflictError, match="are forgotten"):
        _log(store).append(2, Added("b", 1), _intent("g1"))
    assert log.append(2, Added("b", 1), _intent("g1")).version == 26


def test_snapshots_come_every_so_many_versions_and_old_entries_go(store: LogStore) -> None:
    log, behind = _log(store), _log(store)
    behind.state()
    for _ in range(35):
        log.commit(counting("a"))
    snapshot = store.snapshot(LOG)
    assert snapshot is not None
    assert snapshot.version == 30
    with pytest.raises(TrimmedError):
        log.changes(19)
    assert len(log.changes(20)) == 15
    for reader in (behind, _log(store)):
        assert reader.state() == log.state()
        assert reader.state().state == Counters({"a": 35}, 35)


def test_a_deleted_log_is_empty_for_those_who_knew_it(store: LogStore) -> None:
    log, other = _log(store), _log(store)
    for _ in range(12):
        log.commit(counting("a"))
    assert other.state().version == 12
    log.delete()
    assert (other.state().version, log.state().state) == (0, Counters())


def test_a_damaged_entry_is_named(store: LogStore, tmp_path: Path) -> None:
    log = _log(store)
    for _ in range(3):
        log.commit(counting("a"))
    file = tmp_path / "store" / LOG / f"{2:020d}.entry"
    whole = file.read_bytes()
    for damaged in (whole[:-1] + b"\x00", whole[:7], b"", b"XX" + whole[2:]):
        file.write_bytes(damaged)
        with pytest.raises(CorruptDataError, match=r"the entry of a log cannot be read.*log=tables/a, version=2"):
            _log(store).state()
    file.write_bytes(whole)
    assert _log(store).state() == log.state()


def test_a_damaged_snapshot_is_passed_over_while_another_way_leads_to_the_state(
    store: LogStore, tmp_path: Path
) -> None:
    log = _log(store)
    for _ in range(25):
        log.commit(counting("a"))
    for version in (20, 10):
        (tmp_path / "store" / LOG / f"{version:020d}.snapshot").write_bytes(b"BL\x01 damaged")
        if version == 20:
            assert _log(store).state() == log.state()
    with pytest.raises(CorruptDataError, match="the snapshot of a log cannot be read"):
        _log(store).state()


def test_a_thread_that_ends_within_a_write_leaves_the_others_to_go_on(store: LogStore) -> None:
    log, entered, waiting = _log(store), threading.Event(), threading.Event()

    def die(state: Counters) -> Change:
        entered.set()
        assert waiting.wait(60)
        raise KeyboardInterrupt

    def interrupted() -> str:
        try:
            log.commit(die)
        except KeyboardInterrupt:
            return "interrupted"
        return "done"

    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(interrupted)
        assert entered.wait(60)
        others = [pool.submit(log.commit, counting(name)) for name in ("a", "b", "c")]
        waiting.set()
        assert first.result(60) == "interrupted"
        assert {other.result(60).version for other in others} <= {1, 2, 3}
    assert log.state().state.numbers == {"a": 1, "b": 1, "c": 1}
