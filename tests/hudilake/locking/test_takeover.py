"""Two who find a dead holder's lock at once: every order of their storage calls."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import pytest

from hudilake.locking.file_lock import LOCK_PATH, FileLock
from hudilake.locking.process_identity import this_process
from hudilake.locking.shared_lock import Lease
from hudilake.storage import Storage, StorageError
from hudilake.storage.local import LocalStorage
from tests.hudilake.locking.stepping import every_order

_VALIDITY_S = 300.0
#: Shorter than two looks at the clock are apart: a dead lock is certain at first sight.
_NO_TIME_S = 1e-9
_GONE = replace(this_process(), started=-1)
_numbers = itertools.count()


def _body(owner: str, *, gone: bool, validity_s: float = _VALIDITY_S) -> bytes:
    process = asdict(_GONE if gone else replace(this_process(), place="elsewhere"))
    return json.dumps({"owner": owner, "process": process, "since": 1, "validity_s": validity_s}).encode()


def _gone(root: Path) -> None:
    LocalStorage(root, fsync=False).create(LOCK_PATH, _body("dead", gone=True))


def _silent(root: Path) -> None:
    LocalStorage(root, fsync=False).create(LOCK_PATH, _body("silent", gone=False, validity_s=_NO_TIME_S))
    os.utime(root / LOCK_PATH, (1, 1))


def _foreign(root: Path) -> None:
    LocalStorage(root, fsync=False).create(LOCK_PATH, b"")
    os.utime(root / LOCK_PATH, (1, 1))


def _lock(storage: Storage) -> FileLock:
    return FileLock(storage, validity_s=_VALIDITY_S, foreign_expiry_s=_NO_TIME_S)


class _Naive(FileLock):
    """Looks and then deletes, as Hudi does."""

    def _remove(self, dead: object) -> bool:
        return self._storage.delete(LOCK_PATH)


def _naive(storage: Storage) -> FileLock:
    return _Naive(storage, validity_s=_VALIDITY_S)


def _outcomes(
    base: Path, prepare: Callable[[Path], None], make: Callable[[Storage], FileLock], takers: int = 2
) -> list[tuple[int, Path]]:
    """How many got the lock in every order, and where."""
    leases: list[Lease] = []
    roots: list[Path] = []

    def new_run() -> tuple[Storage, list[Callable[[Storage], None]]]:
        leases.clear()
        roots.append(base / str(next(_numbers)))
        prepare(roots[-1])
        return LocalStorage(roots[-1], fsync=False), [partial(_attempt, make, leases)] * takers

    return [(len(leases), roots[-1]) for _ in every_order(new_run)]


def _claims(root: Path) -> list[Path]:
    return list((root / ".hoodie/.locks").iterdir())


def _attempt(make: Callable[[Storage], FileLock], leases: list[Lease], storage: Storage) -> None:
    got = make(storage)._try()
    if isinstance(got, Lease):
        leases.append(got)


@pytest.mark.first(1)
@pytest.mark.parametrize("prepare", [_gone, _silent, _foreign])
def test_one_gets_it(tmp_path: Path, prepare: Callable[[Path], None]) -> None:
    found = _outcomes(tmp_path, prepare, _lock)
    assert len(found) > 100, "orders that tell apart"
    assert {count for count, _ in found} == {1}
    assert not any(_claims(root) for _, root in found)


def test_looking_and_deleting_is_not_enough(tmp_path: Path) -> None:
    """The control: there is an order in which both hold it."""
    assert {count for count, _ in _outcomes(tmp_path, _gone, _naive)} == {1, 2}


@pytest.mark.full
def test_one_gets_it_though_another_died_over_it(tmp_path: Path) -> None:
    """A third found the lock dead before, claimed it, and was killed."""
    claim = _claim_of(tmp_path / "claim")

    def prepare(root: Path) -> None:
        _silent(root)
        LocalStorage(root, fsync=False).create(claim, _body("claimant", gone=True))

    found = _outcomes(tmp_path, prepare, _lock)
    assert {count for count, _ in found} == {1}
    assert not any(_claims(root) for _, root in found)


def _claim_of(root: Path) -> str:
    """The path of the claim that somebody makes who takes over the silent lock."""
    made: list[str] = []

    class Watching(LocalStorage):
        def create(self, path: str, data: bytes) -> None:
            made.append(path)
            super().create(path, data)

        def unsynced(self) -> LocalStorage:
            return self

    _silent(root)
    assert isinstance(_lock(Watching(root, fsync=False))._try(), Lease)
    return made[1]


def test_a_living_claimant_is_waited_for(tmp_path: Path) -> None:
    claim = _claim_of(tmp_path / "claim")
    _silent(tmp_path / "t")
    storage = LocalStorage(tmp_path / "t", fsync=False)
    storage.create(claim, _body("claimant", gone=False))
    assert not isinstance(_lock(storage)._try(), Lease)
    assert json.loads(storage.read(LOCK_PATH))["owner"] == "silent"
    storage.write(claim, _body("claimant", gone=False, validity_s=_NO_TIME_S))
    os.utime(tmp_path / "t" / claim, (1, 1))
    assert isinstance(_lock(storage)._try(), Lease)


def test_a_store_that_fails_under_the_claim_leaves_no_claim(tmp_path: Path) -> None:
    class Failing(LocalStorage):
        def delete(self, path: str) -> bool:
            if path == LOCK_PATH:
                raise StorageError("no")
            return super().delete(path)

        def unsynced(self) -> LocalStorage:
            return self

    _gone(tmp_path)
    with pytest.raises(StorageError):
        _lock(Failing(tmp_path, fsync=False))._try()
    assert _claims(tmp_path) == []
    assert isinstance(_lock(LocalStorage(tmp_path))._try(), Lease)
