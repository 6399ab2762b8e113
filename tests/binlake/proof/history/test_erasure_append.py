"""Rows of an append table that a stream feeds are erased by their values; the stream goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from binlake.cli.app import app
from hudilake.services.erasure.traces import Quarry, scan
from hudilake.storage import open_storage
from tests.binlake.stream.test_fanout import World

PERSON = "a person of some rows"


@pytest.mark.parametrize("type_", ["merge_on_read", "copy_on_write"])
def test_rows_with_a_value_leave_and_the_stream_goes_on(tmp_path: Path, type_: str) -> None:
    here = World(tmp_path, ["views"], tables={"defaults": {"kind": "append", "type": type_}})
    for batch in range(3):
        for n in range(4):
            here.put("views", "c", 10 * batch + n, owner=PERSON if n == 2 else f"person {n}")
        here.feed()
    here.put("views", "u", 2, before=PERSON, owner=PERSON)  # no insert: quarantined
    here.feed()
    before = here.rows("id", "owner", path="shop/views")
    said = CliRunner().invoke(app, ["erase", str(here.conf), "shop.views", f"owner={PERSON}", "--yes"])
    assert said.exit_code == 0, said.output
    assert said.output.count("nothing is left") == 2
    left = {one for one in before if one[1] != PERSON}
    assert here.rows("id", "owner", path="shop/views") == left
    assert scan(
        open_storage(str(tmp_path / "lake/shop/views")), Quarry(frozenset(), frozenset([PERSON.encode()]))
    ).is_clean
    here.start()
    here.put("views", "c", 100, owner="later")
    here.feed()
    assert here.rows("id", "owner", path="shop/views") == left | {(100, "later")}
