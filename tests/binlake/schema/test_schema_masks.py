"""Columns that the settings keep out of the lake, or mask, and what DDL makes of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.binlake.schema.ddl_source import DdlSource, Follower

COLUMNS = {"id": "int", "name": "varchar(40)", "email": "varchar(40)"}
MASK = {"how": "hash", "salt": "pepper"}
SEAL = {"quarantine": {"max_records_per_batch": 1000, "max_fraction": 1.0, "seal": "elsewhere"}}


def started(path: Path, columns: dict[str, Any]) -> tuple[DdlSource, Follower]:
    source = DdlSource()
    source.create("t", COLUMNS)
    source.put("t", 1, name="a", email="hidden-one")
    follower = Follower(source, path, {"columns": columns, "compression": "none"}, more=SEAL)
    follower.run()
    return source, follower


def lies_in(path: Path, text: str) -> bool:
    return any(text.encode() in file.read_bytes() for file in path.rglob("*") if file.is_file())


@pytest.mark.parametrize("columns", [{"mask": {"email": MASK}}, {"exclude": ["email"]}], ids=["masked", "left out"])
def test_a_new_name_does_not_uncover_a_column(tmp_path: Path, columns: dict[str, Any]) -> None:
    source, follower = started(tmp_path, columns)
    source.rename("t", "email", "mail")
    source.put("t", 1, name="b", mail="hidden-two")
    source.put("t", 2, name="c", mail="hidden-three")
    follower.run()
    assert follower.stored("t").keys() == {1}
    assert any(verdict.startswith("refuse: column email becomes mail") for verdict in follower.verdicts())
    assert not lies_in(tmp_path, "hidden")
    wider = json.loads(json.dumps(columns).replace('"email": {', '"mail": {').replace('["email"]', '["email", "mail"]'))
    wider["mask"] = {**columns.get("mask", {}), **wider.get("mask", {})}
    follower.sections["columns"] = wider
    follower.restart()
    source.put("t", 3, name="d", mail="hidden-four")
    follower.run()
    assert follower.stored("t").keys() == {1, 3}
    assert not lies_in(tmp_path, "hidden")


def test_the_search_finds_what_is_written(tmp_path: Path) -> None:
    """The control."""
    started(tmp_path, {})
    assert lies_in(tmp_path, "hidden-one")


def test_the_default_of_a_masked_column_is_not_filled_in(tmp_path: Path) -> None:
    source, follower = started(tmp_path, {"mask": {"phone": MASK}})
    source.add("t", "phone", "varchar(20)", "hidden-default", "DEFAULT 'hidden-default'")
    source.put("t", 2, name="b", email="e", phone="hidden-phone")
    follower.run()
    stored = follower.stored("t")
    assert (stored[1].get("phone"), len(stored[2]["phone"])) == (None, 64)
    assert not lies_in(tmp_path, "hidden-phone")
