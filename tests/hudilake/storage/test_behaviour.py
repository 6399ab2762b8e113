"""What every store must do alike.

On HDFS a file that is not empty costs half a second, so most files here are empty.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from hudilake import clock
from hudilake.errors import UnsupportedError
from hudilake.storage import (
    AlreadyExistsError,
    FileInfo,
    Storage,
    StorageNotFoundError,
    check_exclusive_create,
)
from hudilake.storage.abilities import list_names
from hudilake.storage.hdfs import HdfsStorage
from hudilake.storage.metered import Meter, MeteredStorage

ODD_NAMES = [
    "year=2024",
    "a b",
    "50%",
    "%2F",
    "a%20b",
    "ü-日本-🐬",
    "a+b",
    "a#b",
    "a?b",
    "a&b",
    "'quoted'",
    "~x",
    "(x)",
    "a,b;c",
]


def in_parallel(calls: list[Callable[[], object]]) -> None:
    with ThreadPoolExecutor(len(calls)) as pool:
        for done in [pool.submit(call) for call in calls]:
            done.result()


def create_all(storage: Storage, *paths: str) -> None:
    in_parallel([functools.partial(storage.create, path, b"") for path in paths])


def paths(infos: Iterator[FileInfo] | list[FileInfo]) -> list[str]:
    return sorted(info.path for info in infos)


def test_created_file_is_read_back_and_not_created_again(storage: Storage) -> None:
    storage.create("a/b/c", b"first")
    with pytest.raises(AlreadyExistsError) as refused:
        storage.create("a/b/c", b"second")
    assert storage.read("a/b/c") == b"first"
    assert refused.value.where["path"].endswith("a/b/c")
    assert refused.value.do_next


def race_to_create(storage: Storage, path: str, contents: list[bytes]) -> list[bytes]:
    """All create the path at once; the contents of those who were told that they had."""
    start, winners = threading.Barrier(len(contents)), []

    def run(content: bytes) -> None:
        start.wait()
        with contextlib.suppress(AlreadyExistsError):
            storage.create(path, content)
            winners.append(content)

    in_parallel([functools.partial(run, content) for content in contents])
    return winners


@pytest.mark.first(2)
def test_eight_threads_race_and_one_wins(storage: Storage) -> None:
    for turn in range(1 if isinstance(storage, HdfsStorage) else 20):
        winners = race_to_create(storage, f"race/{turn}", [f"writer {i}".encode() for i in range(8)])
        assert [storage.read(f"race/{turn}")] == winners


@pytest.mark.first(3)
def test_eight_threads_race_with_equal_bytes_and_one_wins(storage: Storage) -> None:
    for turn in range(20):
        assert race_to_create(storage, f"race/{turn}", [b""] * 8) == [b""]


def test_write_replaces(storage: Storage) -> None:
    storage.write("a/x", b"one")
    storage.write("a/x", b"two!")
    assert storage.read("a/x") == b"two!"
    storage.write("a/x", b"")
    assert storage.read("a/x") == b""
    assert paths(storage.list("a")) == ["a/x"]


def test_readers_see_one_version_or_the_other(storage: Storage) -> None:
    versions = [bytes([letter]) * 300_000 for letter in b"ab"]
    storage.write("x", versions[0])
    rounds = 2 if isinstance(storage, HdfsStorage) else 15
    seen: list[bytes] = []

    def write(version: bytes) -> None:
        for _ in range(rounds):
            storage.write("x", version)

    def read() -> None:
        seen.extend(storage.read("x") for _ in range(rounds * 4))

    in_parallel([functools.partial(write, version) for version in versions * 2] + [read])
    assert set(seen) <= set(versions)
    assert storage.read("x") in versions
    assert paths(storage.walk("")) == ["x"]


def test_empty_file(storage: Storage) -> None:
    storage.create("empty", b"")
    assert storage.read("empty") == b""
    info = storage.stat("empty")
    assert info is not None
    assert info.size == 0
    assert paths(storage.list("")) == ["empty"]


def test_big_file(storage: Storage) -> None:
    content = random.Random(1).randbytes(20 * 1024 * 1024)
    in_parallel([lambda: storage.create("created", content), lambda: storage.write("written", content)])
    assert storage.read("created") == content
    assert storage.read("written") == content
    assert storage.read_range("created", 15_000_000, 1_000) == content[15_000_000:15_001_000]


def test_read_range(storage: Storage) -> None:
    storage.create("digits", b"0123456789")
    assert storage.read_range("digits", 0, 10) == b"0123456789"
    assert storage.read_range("digits", 3, 4) == b"3456"
    assert storage.read_range("digits", 8, 5) == b"89"
    assert storage.read_range("digits", 10, 1) == b""
    assert storage.read_range("digits", 99, 1) == b""
    assert storage.read_range("digits", 2, 0) == b""
    for length in (0, 1):
        with pytest.raises(StorageNotFoundError):
            storage.read_range("none", 0, length)


def test_stat(storage: Storage) -> None:
    before = clock.now_ms()
    storage.create("d/f", b"abc")
    info = storage.stat("d/f")
    assert info is not None
    assert (info.path, info.size) == ("d/f", 3)
    # S3 tells whole seconds.
    assert before - 1_000 <= info.modified_ms <= clock.now_ms() + 1_000
    assert storage.stat("d") is None
    assert storage.stat("d/none") is None
    assert storage.stat("d/f/below") is None


def test_missing_and_directories_are_not_found(storage: Storage) -> None:
    storage.create("d/f", b"")
    for path in ("none", "d", "d/f/below", "none/none"):
        with pytest.raises(StorageNotFoundError):
            storage.read(path)


def test_list_shows_the_files_directly_in_a_directory_by_name(storage: Storage) -> None:
    create_all(storage, "d/b", "d/a", "d/B", "d/sub/x", "d/sub/y/z", "e", "d2/c")
    assert [info.path for info in storage.list("d")] == ["d/B", "d/a", "d/b"]
    assert [info.path for info in storage.list("d/")] == ["d/B", "d/a", "d/b"]
    assert [info.path for info in storage.list("")] == ["e"]
    assert storage.list("none") == []
    assert storage.list("e") == []
    assert storage.list_dirs("") == ["d", "d2"]
    assert storage.list_dirs("d") == ["sub"]
    assert storage.list_dirs("none") == []
    assert storage.list_dirs("e") == []
    assert paths(storage.walk("d")) == ["d/B", "d/a", "d/b", "d/sub/x", "d/sub/y/z"]
    assert paths(storage.walk("")) == ["d/B", "d/a", "d/b", "d/sub/x", "d/sub/y/z", "d2/c", "e"]
    assert list(storage.walk("none")) == []
    for directory, after in itertools.product(("d", "d/", "", "none", "e"), (None, "B", "z")):
        assert list_names(storage, directory, after) == [
            info.path.rpartition("/")[2] for info in storage.list(directory, after)
        ]
    assert list_names(MeteredStorage(storage, Meter()), "d", "B") == ["a", "b"]
    assert storage.list("d")[0] == storage.stat("d/B")


def test_start_after_is_exclusive_and_need_not_exist(storage: Storage) -> None:
    create_all(storage, "t/001", "t/002", "t/004", "t/é", "t/0015/deep", "t/003/deep", "u/009")
    assert [i.path for i in storage.list("t", "001")] == ["t/002", "t/004", "t/é"]
    assert [i.path for i in storage.list("t", "003")] == ["t/004", "t/é"]
    assert [i.path for i in storage.list("t", "004")] == ["t/é"]
    assert storage.list("t", "é") == []
    assert [i.path for i in storage.list("t", "")] == ["t/001", "t/002", "t/004", "t/é"]
    assert storage.list("none", "001") == []
    assert [i.path for i in storage.sub("t").list("", "002")] == ["004", "é"]


def test_odd_names_round_trip(storage: Storage) -> None:
    names = [name for name in ODD_NAMES if not (isinstance(storage, HdfsStorage) and ":" in name)]
    create_all(storage, *(f"{name}/{name}" for name in names))
    assert storage.list_dirs("") == sorted(names)
    assert paths(storage.walk("")) == sorted(f"{name}/{name}" for name in names)
    for name in names:
        assert storage.read(f"{name}/{name}") == b""
        assert paths(storage.sub(name).list("")) == [name]
        assert storage.sub(name).uri == f"{storage.uri}/{name}"
        assert storage.delete(f"{name}/{name}")
    assert list(storage.walk("")) == []


@pytest.mark.parametrize("path", ["", ".", "..", "a/../../b", "/a", "a//b", "a/", "./a", "a/\x00", "a\n", "\ud800"])
def test_paths_out_of_the_root_are_refused(storage: Storage, path: str) -> None:
    inner = storage.sub("inner")
    with pytest.raises(UnsupportedError):
        inner.create(path, b"")
    with pytest.raises(UnsupportedError):
        inner.read(path)
    assert list(storage.walk("")) == []


def test_delete(storage: Storage) -> None:
    create_all(storage, "d/a", "d/b")
    assert storage.delete("d/a") is True
    assert storage.delete("d/a") is False
    assert storage.delete("d") is False
    assert storage.delete("none/none") is False
    assert paths(storage.walk("")) == ["d/b"]
    storage.create("d/a", b"")


def test_delete_tree(storage: Storage) -> None:
    create_all(storage, "d/a", "d/sub/b", "d/sub/deeper/c", "dd/e", "d.f")
    storage.delete_tree("d")
    storage.delete_tree("d")
    storage.delete_tree("none/none")
    assert paths(storage.walk("")) == ["d.f", "dd/e"]
    assert storage.list_dirs("") == ["dd"]
    storage.create("d/a", b"")
    assert paths(storage.walk("d")) == ["d/a"]
    storage.delete_tree("")
    assert list(storage.walk("")) == []


@pytest.mark.parametrize("storage", ["local", "memory"], indirect=True)
def test_delete_tree_of_more_than_a_page(storage: Storage) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: storage.write(f"d/{i:04}", b""), range(1_100)))
    assert len(storage.list("d")) == len(list(storage.walk("d"))) == 1_100
    storage.delete_tree("d")
    assert storage.list("d") == []


def test_sub_moves_the_root(storage: Storage) -> None:
    create_all(storage, "a/b/c", "x")
    sub = storage.sub("a")
    assert sub.read("b/c") == b""
    assert paths(sub.walk("")) == ["b/c"]
    assert sub.stat("x") is None
    sub.sub("b").create("d", b"")
    assert paths(storage.list("a/b")) == ["a/b/c", "a/b/d"]
    assert sub.sub("b").uri == storage.sub("a/b").uri == f"{storage.uri}/a/b"
    assert storage.sub("").uri == storage.uri


def test_many_threads_make_one_new_directory(storage: Storage) -> None:
    names = [f"new/directory/{i}/x" for i in range(16)] + [f"new/directory/{i}" for i in range(100, 116)]
    create_all(storage, *names)
    assert paths(storage.walk("new")) == sorted(names)


def test_tasks_write_the_same_bytes_at_once(storage: Storage) -> None:
    in_parallel([lambda: storage.write("d/same", b"same bytes")] * 6)
    assert storage.read("d/same") == b"same bytes"
    assert paths(storage.walk("")) == ["d/same"]


def test_check_exclusive_create_passes_and_leaves_nothing(storage: Storage) -> None:
    check_exclusive_create(storage, "not/there/yet")
    assert list(storage.walk("")) == []
    assert storage.list_dirs("") == []
    storage.create("there/x", b"")
    check_exclusive_create(storage, "there")
    assert paths(storage.walk("")) == ["there/x"]


_WRITE_ONE = """
import pickle, sys
storage = pickle.load(sys.stdin.buffer)
storage.create("from the child", b"written elsewhere")
"""

_WRITE_UNTIL_KILLED = """
import itertools, pickle, sys
storage = pickle.load(sys.stdin.buffer)
for i in itertools.count():
    storage.create(f"created/{i}", bytes([i % 256]) * 3_000_000)
    storage.write(f"written/{i % 2}", bytes([i % 256]) * 3_000_000)
"""

_WRITE_IN_PIECES_UNTIL_KILLED = """
import itertools, pathlib, pickle, sys, time
storage = pickle.load(sys.stdin.buffer)
for i in itertools.count():
    file = pathlib.Path(storage.root) / f"created/{i}"
    file.parent.mkdir(exist_ok=True, parents=True)
    with file.open("wb", buffering=0) as out:
        for _ in range(30):
            out.write(bytes([i % 256]) * 100_000)
            time.sleep(0.001)
"""


def start_child(program: str, storage: Storage, stderr: int | None = None) -> subprocess.Popen[bytes]:
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stderr=stderr)
    assert child.stdin is not None
    child.stdin.write(pickle.dumps(storage))
    child.stdin.close()
    return child


def test_pickled_storage_is_the_same_storage(storage: Storage) -> None:
    storage.create("x", b"")
    copy: Storage = pickle.loads(pickle.dumps(storage))
    assert copy == storage
    assert copy.uri == storage.uri
    assert paths(copy.list("")) == ["x"]


@pytest.mark.parametrize("storage", ["local", "s3", pytest.param("hdfs", marks=pytest.mark.hdfs)], indirect=True)
def test_pickled_storage_works_in_another_process(storage: Storage) -> None:
    assert start_child(_WRITE_ONE, storage).wait(60) == 0
    assert storage.read("from the child") == b"written elsewhere"


@pytest.mark.parametrize("storage", ["memory"], indirect=True)
def test_memory_is_refused_in_another_process(storage: Storage) -> None:
    assert start_child(_WRITE_ONE, storage, stderr=subprocess.DEVNULL).wait(60) == 1
    assert list(storage.walk("")) == []


def whole_and_torn_after_kill(storage: Storage, program: str, seed: int) -> tuple[int, int]:
    """Kill a writing child at some moment; how many of the files that can be seen are whole, and how many are not."""
    with start_child(program, storage) as child:
        deadline = clock.monotonic_s() + 60
        while len(list(storage.walk("created"))) < 2 and clock.monotonic_s() < deadline:
            time.sleep(0.01)
        time.sleep(random.Random(seed).uniform(0, 0.08))
        child.send_signal(signal.SIGKILL)
    contents = [storage.read(info.path) for info in storage.walk("")]
    whole = [content for content in contents if len(content) == 3_000_000 and len(set(content)) == 1]
    return len(whole), len(contents) - len(whole)


@pytest.mark.first(1)
@pytest.mark.parametrize("storage", ["local", "s3", pytest.param("hdfs", marks=pytest.mark.hdfs)], indirect=True)
def test_killed_writer_leaves_only_whole_files(storage: Storage) -> None:
    for seed in range(2 if isinstance(storage, HdfsStorage) else 5):
        whole, torn = whole_and_torn_after_kill(storage.sub(str(seed)), _WRITE_UNTIL_KILLED, seed)
        assert whole >= 2
        assert torn == 0


@pytest.mark.parametrize("storage", ["local"], indirect=True)
def test_killed_writer_that_writes_in_place_is_found_out(storage: Storage) -> None:
    torn = [whole_and_torn_after_kill(storage.sub(str(i)), _WRITE_IN_PIECES_UNTIL_KILLED, i)[1] for i in range(3)]
    assert sum(torn) > 0
