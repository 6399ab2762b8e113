"""DDL at the source and what becomes of the lake table: every policy, whenever the statement is known."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from binlake.tables.audit import audit
from hudilake.services.fsck import Severity, fsck
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.binlake.schema.ddl_source import DdlSource, Follower

COLUMNS = {"id": "int", "name": "varchar(20)", "qty": "int"}


def started(tmp_path: Path, **policies: str) -> tuple[DdlSource, Follower]:
    """A table ``t`` with eight rows, all in the lake."""
    return begun(tmp_path, 8, policies)


def begun(tmp_path: Path, rows: int, policies: dict[str, str]) -> tuple[DdlSource, Follower]:
    """The same with as many rows as are wanted."""
    source = DdlSource()
    source.create("t", COLUMNS)
    for key in range(rows):
        source.put("t", key, name=f"n{key}", qty=key)
    follower = Follower(source, tmp_path, {"schema_changes": policies})
    follower.run()
    follower.check("t")
    return source, follower


def recorded(place: Path, table: str = "t") -> list[dict[str, object]]:
    """What the table's commits say of DDL."""
    found: list[dict[str, object]] = json.loads(
        HudiTable.open(open_storage(str(place / "shop" / table), {})).extra_metadata("binlake.ddl") or "[]"
    )
    return found


@pytest.mark.parametrize("known", ["before", "with", "after", "stopped"])
def test_an_added_column_is_filled_whenever_its_statement_is_known(tmp_path: Path, known: str) -> None:
    source, follower = started(tmp_path)
    source.put("t", 1, name="late")
    source.add("t", "tier", "varchar(8)", "basic", "NOT NULL DEFAULT 'basic' AFTER name")
    if known == "before":
        follower.run()
    elif known == "stopped":
        follower.restart()
    source.put("t", 2, tier="gold")
    source.put("t", 100, name="new", tier="gold")
    if known == "after":
        source.put("t", 3, tier=None)
        follower.sections["schema_changes"] = {}
    follower.run()
    follower.check("t")
    assert "fill: tier is 'basic' in rows before" in follower.verdicts()
    (entry,) = recorded(tmp_path)
    assert entry["statement"] == "ALTER TABLE `t` ADD COLUMN tier varchar(8) NOT NULL DEFAULT 'basic' AFTER name"
    follower.restart()
    source.put("t", 5, tier="silver")
    assert follower.run().ddl == ()
    follower.check("t")


@pytest.mark.first(1)
@pytest.mark.parametrize("framed", [False, True], ids=["plain", "framed"])
@pytest.mark.parametrize("seed", range(6))
def test_any_history_of_changes_and_statements_ends_with_the_rows_of_the_source(
    tmp_path: Path, seed: int, framed: bool
) -> None:
    """Statements are known before the data that follows them, in one batch with it, after a restart, or, where events
    carry their schema, after the data; that of a partition may come late, from before statements long carried out."""
    chance = random.Random(seed)
    source, follower = started(tmp_path)
    source.framed = framed
    kinds = {name: kind for name, kind in COLUMNS.items() if name != "id"}
    for _ in range(60):
        _step(chance, source, kinds)
        if chance.random() < 0.2:
            known = chance.randint(follower.delivered, len(source.ddl)) if framed else None
            follower.run(ddl=known, share=chance.choice([0.3, 0.7, 1.0]))
        if chance.random() < 0.1:
            follower.restart()
    follower.run()
    follower.check("t")
    assert follower.quarantined() == []
    storage = open_storage(str(tmp_path / "shop" / "t"), {})
    assert audit(storage).findings == []
    assert [f for f in fsck(storage).findings if f.severity is Severity.ERROR] == []


def test_a_statement_without_data_is_carried_out_too(tmp_path: Path) -> None:
    source, follower = started(tmp_path)
    source.add("t", "tier", "int", 3, "DEFAULT 3")
    follower.idle()
    follower.check("t")
    assert follower.verdicts() == ["fill: tier is 3 in rows before"]


def _step(chance: random.Random, source: DdlSource, kinds: dict[str, str]) -> None:
    """``kinds``: the kind of type of every column there ever was; a name that comes again keeps its own."""
    table = source.tables["t"]
    own = [n for n in table.columns if n != "id"]
    gone = [n for n in kinds if n not in table.columns]
    what = chance.choices(["put", "delete", "add", "drop", "rename", "modify", "swap"], [20, 3, 2, 1, 2, 1, 1])[0]
    pairs = [(a, b) for a in own for b in own if a < b and table.columns[a] == table.columns[b]]
    if what == "delete" and table.rows:
        source.delete("t", chance.choice(sorted(table.rows)))
    elif what == "add":
        name = chance.choice(gone) if gone and chance.random() < 0.5 else f"c{len(kinds)}"
        _add(chance, source, name, kinds.setdefault(name, chance.choice(["int", "varchar(20)"])))
    elif what == "drop" and len(own) > 1:
        source.drop("t", chance.choice(own))
    elif what == "rename" and own:
        old = chance.choice(own)
        alike = [n for n in gone if kinds[n] == kinds[old]]
        new = chance.choice(alike) if alike and chance.random() < 0.5 else f"c{len(kinds)}"
        kinds[new] = kinds[old]
        source.rename("t", old, new)
    elif what == "swap" and pairs:
        source.swap("t", *chance.choice(pairs))
    elif what == "modify" and (narrow := [n for n in own if table.columns[n] == "int"]):
        source.modify("t", chance.choice(narrow), "bigint")
    else:
        values = {n: _value(chance, table.columns[n]) for n in own if chance.random() < 0.5}
        source.put("t", chance.randrange(14), **values)


def _add(chance: random.Random, source: DdlSource, name: str, kind: str) -> None:
    if chance.random() < 0.5:
        source.add("t", name, kind, None, "NULL")
    elif kind == "int":
        source.add("t", name, kind, 7, "NOT NULL DEFAULT 7")
    else:
        source.add("t", name, kind, "it's", "DEFAULT 'it''s'")


def _value(chance: random.Random, kind: str) -> int | str:
    return f"v{chance.randrange(99)}" if kind.startswith("varchar") else chance.randrange(99)
