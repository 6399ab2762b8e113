"""Directories that are made, moved and removed, on stores that have directories and on those that have none."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudilake.errors import LakeError
from hudilake.storage import Storage, open_storage
from hudilake.storage.directories import followed, is_there, make, move, remove_empty


def test_a_directory_moves_with_all_that_is_in_it(storage: Storage) -> None:
    for path in ("a/t/f", "a/t/p=1/g", "a/tt/h"):
        storage.write(path, path.encode())
    move(storage.sub("a/t"), storage.sub("b/new/t"))
    assert sorted(file.path for file in storage.walk("")) == ["a/tt/h", "b/new/t/f", "b/new/t/p=1/g"]
    assert storage.read("b/new/t/p=1/g") == b"a/t/p=1/g"
    assert (is_there(storage.sub("a/t")), is_there(storage.sub("b/new/t"))) == (False, True)
    if make(storage.sub("c/empty")):
        assert is_there(storage.sub("c/empty"))
        assert remove_empty(storage.sub("c/empty"))
    assert not is_there(storage.sub("c/empty"))


def test_only_empty_directories_are_removed(storage: Storage) -> None:
    storage.write("a/f", b"1")
    assert not remove_empty(storage.sub("a"))
    assert not remove_empty(storage.sub("nothing"))
    assert storage.read("a/f") == b"1"


def test_a_directory_is_made_again_after_somebody_has_deleted_it(tmp_path: Path) -> None:
    place = open_storage(str(tmp_path / "a" / "b"))
    for _ in range(2):
        assert (make(place), make(place), is_there(place)) == (True, False, True)
        open_storage(str(tmp_path / "a")).delete_tree("")
        assert not is_there(place)
    place.write("f", b"1")
    with pytest.raises(LakeError):
        make(open_storage(str(tmp_path / "a" / "b" / "f" / "below")))


def test_links_are_followed_on_the_way_to_a_place(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    real = open_storage(str(tmp_path.resolve() / "real" / "t"))
    assert followed(open_storage(str(tmp_path / "link" / "t"))).uri == real.uri
    memory = open_storage("memory://links/t")
    assert followed(memory) is memory


def test_files_do_not_move_between_stores(tmp_path: Path) -> None:
    here, there = open_storage(str(tmp_path / "a")), open_storage("memory://between/a")
    here.write("f", b"1")
    with pytest.raises(LakeError, match="different stores"):
        move(here, there)
    assert here.read("f") == b"1"
