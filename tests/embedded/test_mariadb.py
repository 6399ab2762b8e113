"""MariaDB from Maven: unpacked whole or not at all, started, kept over restarts; a start that fails says why."""

from __future__ import annotations

import os
import platform
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded import mariadb_programs
from embedded.jars import MARIADB
from embedded.mariadb import SETTINGS, EmbeddedMariaDB
from embedded.mariadb_programs import INSIDE, mariadb_home
from hudilake.errors import CorruptDataError, TransientError, UnsupportedError
from tests.embedded.maven_repository import publish, repository_environment

_FILES = {
    f"{INSIDE}/bin/mariadbd": "#!/bin/sh\n",
    f"{INSIDE}/scripts/mariadb-install-db": "#!/bin/sh\n",
    f"{INSIDE}/share/english/errmsg.sys": "words",
    "META-INF/MANIFEST.MF": "",
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine for which there is a build, a repository with a small jar, and an empty cache."""
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    for name, value in repository_environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    publish(tmp_path, MARIADB[0], files=_FILES)
    return tmp_path


def _entries(place: Path) -> set[str]:
    """Names of what the cache holds whole."""
    return {path.name for path in (place / "cache" / "jars").iterdir() if path.is_dir()}


def test_the_jar_is_unpacked_once_with_programs_that_can_be_run(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = mariadb_home()
    assert home.is_relative_to(place / "cache")
    assert {str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()} == {
        "bin/mariadbd",
        "scripts/mariadb-install-db",
        "share/english/errmsg.sys",
    }
    assert os.access(home / "bin/mariadbd", os.X_OK)
    assert os.access(home / "scripts/mariadb-install-db", os.X_OK)
    monkeypatch.setattr(mariadb_programs, "_unpack", None)
    assert mariadb_home() == home


def test_unpacking_that_is_cut_short_leaves_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    extract_all = zipfile.ZipFile.extractall

    def cut_short(archive: zipfile.ZipFile, work: Path, members: list[str]) -> None:
        extract_all(archive, work, members[:1])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "extractall", cut_short)
    with pytest.raises(OSError, match="No space left"):
        mariadb_home()
    assert not [name for name in _entries(place) if "unpacked" in name]
    monkeypatch.undo()
    for name, value in repository_environment(place).items():
        monkeypatch.setenv(name, value)
    assert (mariadb_home() / "share/english/errmsg.sys").read_text() == "words"


def test_a_jar_damaged_in_the_cache_is_named_and_not_unpacked(place: Path) -> None:
    home = mariadb_home()
    home.rename(home.with_name("gone"))
    [jar] = (place / "cache" / "jars").glob("mariadb-*/*.jar")
    jar.write_bytes(jar.read_bytes().replace(b"words", b"w0rds"))
    with pytest.raises(CorruptDataError, match="errmsg") as caught:
        mariadb_home()
    assert caught.value.where["path"] == str(jar)
    assert not home.exists()


def test_a_machine_without_a_build_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "sparc")
    with pytest.raises(UnsupportedError, match=r"Linux x86_64 only.*sparc"):
        mariadb_home()


@pytest.fixture
def data_dir() -> Iterator[Path]:
    # a short path: sockets do not take a long one
    with tempfile.TemporaryDirectory(prefix="db") as path:
        yield Path(path)


@pytest.mark.full
@pytest.mark.database
def test_rows_outlive_an_orderly_and_a_hard_end(data_dir: Path) -> None:
    with EmbeddedMariaDB(data_dir) as server:
        assert server.execute("SHOW VARIABLES LIKE 'binlog_format'") == ["binlog_format\tROW"]
        server.execute("CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY, name VARCHAR(9));")
        server.execute("INSERT INTO shop.t VALUES (1, 'n°')")
        server.stop()
        assert server.pid is None
        server.start()
        server.kill()
        server.start()
        assert server.execute("SELECT * FROM shop.t") == ["1\tn°"]
        with pytest.raises(TransientError, match=r"shop\.absent"):
            server.execute("SELECT * FROM shop.absent")


@pytest.mark.full
@pytest.mark.database
def test_a_server_that_does_not_start_says_why(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SETTINGS, "binlog_format", "BRAILLE")
    server = EmbeddedMariaDB(data_dir)
    with pytest.raises(TransientError, match="BRAILLE"):
        server.start()
    assert server.pid is None
