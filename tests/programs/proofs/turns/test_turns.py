"""The part ``turns``: what its histories say of a table, without hudi-rs' writer, which takes minutes to build."""

from __future__ import annotations

from pathlib import Path

import hudilake
from embedded.hudi_rs import VERSION
from tests.programs.proofs.turns.histories import RaceHistory, TurnsHistory, new_table, rows_of
from tests.programs.proofs.turns.recording import add_theirs, before
from tests.programs.proofs.turns.writer import SOURCE


def test_the_crate_is_the_version_that_is_named() -> None:
    assert f'version = "={VERSION}"' in (SOURCE / "Cargo.toml").read_text()


def test_a_row_that_is_not_there_or_is_there_twice_is_said(tmp_path: Path) -> None:
    table = new_table(tmp_path, "copy_on_write")
    table.upsert(rows_of({"a": ("one", 1), "b": ("one", 1)}))
    history = TurnsHistory(tmp_path, "copy_on_write", 0, new_keys=False, truth={"a": ("one", 1), "b": ("one", 1)})
    assert history.differs(table, 1) == ""
    history.truth["c"] = "one", 1
    assert "2 rows of 3" in history.differs(table, 1)
    history.truth = {"a": ("one", 1)}
    assert "2 rows of 1" in history.differs(table, 1)


def test_an_acknowledged_row_that_is_gone_is_said_unless_the_writer_stops(tmp_path: Path) -> None:
    root = before("copied_known", tmp_path / "known")
    table = hudilake.open_table(str(root))
    race = RaceHistory(root, "copy_on_write", 0)
    assert race.judged(table, {"ours": {"a": "ours"}, "theirs": {}}) == ""
    assert "1 acknowledged rows of ours are gone" in race.judged(table, {"ours": {"a": "another"}, "theirs": {}})
    root = before("copied_overtaken", tmp_path / "overtaken")
    table = hudilake.open_table(str(root))
    add_theirs("copied_overtaken", root)
    table.refresh()
    assert RaceHistory(root, "copy_on_write", 0).judged(table, {"ours": {"b": "ours"}, "theirs": {}}) == ""
