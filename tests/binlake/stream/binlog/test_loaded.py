"""A first load, then the stream of the binlog: it goes on at the load's position, whatever the settings say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import binlake.stream.binlog.run as stream
from binlake.load.first.run import FirstLoad
from binlake.position.ledger import Ledger
from binlake.source.binlog.reading import BinlogSource
from binlake.source.database.snapshot import SourcePosition
from binlake.stream.binlog.beginning import begin
from embedded.mariadb import EmbeddedMariaDB
from hudilake.errors import BadInputError
from tests.binlake.stream.binlog.followed import FollowedDatabase, random_statements


def loaded(server: EmbeddedMariaDB, place: Path, name: str) -> tuple[FollowedDatabase, list[str]]:
    """A database with rows that are loaded, and statements that are still to come."""
    followed = FollowedDatabase(server, place, name, start="now")
    statements = list(random_statements(11, 24))
    followed.execute(*statements[:12])
    results = list(FirstLoad(followed.settings()).run())
    assert sorted((one.table, one.state) for one in results) == [
        (f"{name}.bare", "loaded"),
        (f"{name}.keyed", "loaded"),
    ]
    return followed, statements[12:]


def test_what_came_between_the_load_and_the_stream_is_there(server: EmbeddedMariaDB, tmp_path: Path) -> None:
    followed, later = loaded(server, tmp_path, "loaded")
    followed.execute(*later[:6])  # nobody reads the binlog now
    events = followed.apply()
    assert sum(event.events_read for event in events) > 0
    followed.check("bare", "keyed")
    followed.execute(*later[6:])
    followed.apply()
    followed.check("bare", "keyed")


def test_without_the_position_of_the_load_changes_are_missing(
    server: EmbeddedMariaDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: a stream that begins now."""
    followed, later = loaded(server, tmp_path, "unled")
    followed.execute(*later[:6])
    monkeypatch.setattr(stream, "loaded_position", lambda *_: None)
    followed.apply()
    with pytest.raises(AssertionError):
        followed.check("bare", "keyed")


def test_another_server_and_a_purged_file_are_refused(server: EmbeddedMariaDB, tmp_path: Path) -> None:
    settings = FollowedDatabase(server, tmp_path, "elsewhere").settings()
    source = BinlogSource.open(settings.source.database)
    here = SourcePosition(next(reversed(source.server.files)), 4, int(source.topic.rpartition("/")[2]))
    assert begin(source, Ledger("s"), "now", lambda: here) > 0
    for position, why in (
        (replace(here, server_id=here.server_id + 1), "loaded from server"),
        (replace(here, file="mariadb-bin.999999"), "mariadb-bin.999999|999999"),
    ):
        with pytest.raises(BadInputError, match=why):
            begin(source, Ledger("s"), "now", lambda position=position: position)  # type: ignore[misc]
