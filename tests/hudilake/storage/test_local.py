"""Local disk: death at every system call, the order of the syncs, a disk that takes no more."""

from __future__ import annotations

import contextlib
import functools
import os
import pickle
import resource
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudilake.errors import ConfigError, UnsupportedError
from hudilake.storage import AlreadyExistsError, StorageError, StorageNotFoundError, open_storage
from hudilake.storage.local import LocalStorage

OLD, NEW = b"old" * 1_000, b"new!" * 1_000
CALLS = ("mkdir", "open", "write", "fsync", "close", "link", "replace", "unlink")


def wrap_calls(before: Callable[[str, tuple[Any, ...]], None], patch: Callable[[str, Any], None]) -> None:
    """Have ``before`` see every system call that a put makes, by name and arguments, ahead of its execution."""
    for name in CALLS:
        real = getattr(os, name)

        def call(*args: Any, _real: Any = real, _name: str = name, **more: Any) -> Any:  # noqa: ANN401
            before(_name, args)
            return _real(*args, **more)

        patch(name, call)


def die_at(point: int, put: Callable[[], None]) -> bool:
    """Do the put in a forked child that is killed before its n-th system call, in the middle of it if it is a write.

    Returns:
        True if the child came to that call, False if it finished before.
    """
    child = os.fork()
    if child == 0:
        left = [point]
        real_write = os.write

        def count(name: str, args: tuple[Any, ...]) -> None:
            left[0] -= 1
            if left[0] < 0:
                if name == "write":
                    real_write(args[0], bytes(args[1])[: len(args[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)

        wrap_calls(count, lambda name, call: setattr(os, name, call))
        put()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0
    return os.WIFSIGNALED(status)


def visible(root: Path) -> dict[str, bytes]:
    storage = LocalStorage(root)
    return {info.path: storage.read(info.path) for info in storage.walk("")}


@pytest.mark.full
def test_create_that_dies_at_any_call_leaves_the_file_whole_or_absent(tmp_path: Path) -> None:
    seen = []
    for point in range(100):
        root = tmp_path / str(point)
        died = die_at(point, functools.partial(LocalStorage(root).create, "a/b/f", NEW))
        left = visible(root)
        assert left in ({}, {"a/b/f": NEW})
        seen.append(bool(left))
        if left:
            with pytest.raises(AlreadyExistsError):
                LocalStorage(root).create("a/b/f", OLD)
        else:
            LocalStorage(root).create("a/b/f", NEW)
        assert visible(root) == {"a/b/f": NEW}
        if not died:
            break
    # Absent at first, there from one call on, and that call is not the last: the points lie on both sides.
    assert seen == sorted(seen)
    assert seen.count(False) >= 8
    assert seen.count(True) >= 3


def test_write_that_dies_at_any_call_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    seen = []
    for point in range(100):
        root = tmp_path / str(point)
        LocalStorage(root).write("a/f", OLD)
        died = die_at(point, functools.partial(LocalStorage(root).write, "a/f", NEW))
        left = visible(root)
        assert left in ({"a/f": OLD}, {"a/f": NEW})
        seen.append(left["a/f"] == NEW)
        if not died:
            break
    assert seen == sorted(seen)
    assert seen.count(False) >= 5
    assert seen.count(True) >= 3


class SyncLog:
    """What a put synced, made and named, in order: a system call and a path in each line."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.events: list[str] = []
        self._root = root
        wrap_calls(self._note, lambda name, call: monkeypatch.setattr(os, name, call))

    def _note(self, name: str, args: tuple[Any, ...]) -> None:
        if name == "fsync":
            self._add(name, Path(f"/proc/self/fd/{args[0]}").readlink())
        elif name in ("link", "replace"):
            self._add(name, Path(args[1]))
        elif name == "mkdir":
            self._add(name, Path(args[0]))

    def _add(self, name: str, path: Path) -> None:
        where = "temporary" if path.name.startswith(".binlake-") else str(path.relative_to(self._root.parent))
        self.events.append(f"{name} {where}")


@pytest.mark.parametrize(("operation", "step"), [("create", "link"), ("write", "replace")])
def test_data_is_synced_before_the_name_and_the_name_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str, step: str
) -> None:
    root = tmp_path / "root"
    storage = LocalStorage(root)
    log = SyncLog(root, monkeypatch)
    getattr(storage, operation)("d/f", NEW)
    assert [e for e in log.events if not e.startswith("mkdir")] == [
        f"fsync {tmp_path.name}" if e == "root's parent" else e
        for e in ["fsync .", "fsync root", "fsync temporary", f"{step} root/d/f", "fsync root/d"]
    ]
    log.events.clear()
    getattr(storage, operation)("d/g", NEW)
    assert log.events == ["fsync temporary", f"{step} root/d/g", "fsync root/d"]


def test_directories_that_others_made_are_synced_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "root"
    (root / "a/b").mkdir(parents=True)
    log = SyncLog(root, monkeypatch)
    LocalStorage(root).create("a/b/f", b"")
    assert [e for e in log.events if e.startswith("fsync")] == ["fsync root", "fsync root/a", "fsync root/a/b"]


def test_without_fsync_nothing_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = open_storage(str(tmp_path / "root"), {"fsync": "false"})
    log = SyncLog(tmp_path / "root", monkeypatch)
    storage.create("d/f", NEW)
    storage.write("d/f", OLD)
    storage.delete("d/f")
    storage.delete_tree("d")
    assert [e for e in log.events if e.startswith("fsync")] == []
    assert pickle.loads(pickle.dumps(storage)) == storage.sub("") == storage
    storage.create("same", NEW)
    with pytest.raises(AlreadyExistsError):
        storage.create("same", NEW)


def test_directory_deleted_behind_our_back_is_made_again(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path / "root")
    storage.create("a/b/one", b"1")
    LocalStorage(tmp_path).delete_tree("root")
    storage.create("a/b/two", b"2")
    assert visible(tmp_path / "root") == {"a/b/two": b"2"}


@pytest.mark.full
def test_writes_go_through_while_others_delete_the_directory(tmp_path: Path) -> None:
    storage, stop = LocalStorage(tmp_path), threading.Event()

    def delete() -> None:
        while not stop.is_set():
            with contextlib.suppress(StorageError):
                storage.delete_tree("a")

    deleter = threading.Thread(target=delete)
    deleter.start()
    try:
        for i in range(200):
            try:
                storage.create(f"a/b/{i}", b"x")
            except StorageError as error:
                assert "directory" in str(error)  # noqa: PT017 - either outcome is right, but no other error
    finally:
        stop.set()
        deleter.join()
    storage.create("a/b/last", b"x")
    assert storage.read("a/b/last") == b"x"


def test_disk_that_takes_no_more_leaves_nothing(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    storage.create("fits", b"x" * 1_000)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, limits[1]))
    try:
        for put in (storage.create, storage.write):
            with pytest.raises(StorageError) as refused:
                put("too big", b"x" * 5_000)
            assert "too big" in refused.value.where["path"]
            with pytest.raises(StorageError):
                put("fits", b"x" * 5_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [path.name for path in tmp_path.iterdir()] == ["fits"]
    assert storage.read("fits") == b"x" * 1_000


def test_leftovers_of_a_killed_writer_are_not_listed(tmp_path: Path) -> None:
    assert die_at(5, lambda: LocalStorage(tmp_path / "root").create("f", NEW))
    assert [path.name[:9] for path in (tmp_path / "root").iterdir()] == [".binlake-"]
    storage = LocalStorage(tmp_path / "root")
    assert storage.list("") == list(storage.walk("")) == []
    assert storage.list_dirs("") == []


def test_file_in_the_place_of_a_directory(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    storage.create("a", b"")
    for put in (storage.create, storage.write):
        with pytest.raises(StorageError) as refused:
            put("a/b", b"")
        assert not isinstance(refused.value, (AlreadyExistsError, StorageNotFoundError))
    assert visible(tmp_path) == {"a": b""}


def test_name_too_long_is_refused_for_good(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError):
        LocalStorage(tmp_path).create("x" * 300, b"")


def test_read_only_directory_is_a_mistake_in_the_settings(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        place = LocalStorage(Path("/proc/self"))
    else:
        tmp_path.chmod(0o500)
        place = LocalStorage(tmp_path)
    with pytest.raises((ConfigError, StorageError)) as refused:
        place.create("f", b"")
    assert refused.value.do_next


@pytest.mark.parametrize("options", [{"fsync": "maybe"}, {"region": "here"}])
def test_unknown_options_are_refused(tmp_path: Path, options: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        open_storage(str(tmp_path), options)
