"""Online schema changes: after the swap the lake has the rows of the shadow, or says that they are not determined."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from binlake.decode.changes import SourceTable
from binlake.schema.rules.entries import entries_from_text
from binlake.schema.rules.undetermined import undetermined_columns
from binlake.tables.names import TableNames
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.binlake.schema.ddl_source import DdlSource, Follower
from tests.binlake.schema.shadow_tools import Captured, Tool
from tests.binlake.schema.test_schema_changes import COLUMNS
from tests.hypothesis_profile import usually


def path_of(follower: Follower, table: str) -> str:
    """Where the lake has the table that the source calls so now."""
    found = TableNames.load(open_storage(str(follower.place), {}), "shop").called(SourceTable("shop", table))
    return table if found is None else found.path.partition("/")[2]


def open_points(follower: Follower, table: str = "t") -> list[str]:
    """What the log does not determine about the table."""
    storage = open_storage(str(follower.place / "shop" / path_of(follower, table)), {})
    told = HudiTable.open(storage).extra_metadata("binlake.ddl")
    return [str(one) for one in undetermined_columns(entries_from_text(told))]


def begun(place: Path, *, together: bool = False, **policies: str) -> tuple[Captured, Follower]:
    """A table ``t`` with eight rows, all in the lake."""
    source = Captured(together=together)
    source.create("t", COLUMNS)
    for key in range(8):
        source.put("t", key, name=f"n{key}", qty=key)
    follower = Follower(source, place, {"schema_changes": policies})
    follower.run()
    return source, follower


def check(follower: Follower, table: str = "t") -> None:
    """The lake has the source's rows, and says nothing else."""
    follower.check(table, path_of(follower, table))
    assert open_points(follower, table) == []
    assert follower.quarantined() == []


@pytest.mark.parametrize("kind", ["pt", "gho"])
def test_rows_that_a_tool_left_out_and_columns_that_it_filled_are_those_of_the_source(
    tmp_path: Path, kind: str
) -> None:
    source, follower = begun(tmp_path)
    tool = Tool(source, kind, "tier", keeps=lambda key: key % 3 > 0)
    tool.start()
    tool.copy(range(4))
    follower.run()
    check(follower)
    tool.write(1, name="meanwhile")
    tool.copy(range(4, 9))
    tool.swap()
    source.put("t", 2, qty=99, tier=5)
    follower.run()
    check(follower)
    tool.clean()
    follower.run()
    follower.restart()
    source.put("t", 3, name="later")
    follower.run()
    check(follower)
    assert set(follower.stored(path_of(follower, "t"))) == {1, 2, 3, 4, 5, 7}
    assert follower.stored("t") == {}, "the rows of the old table went with it"


@pytest.mark.parametrize(
    ("new", "old"), [("_t_new", "_t_old"), ("_t_gho", "_t_20260102030405_del"), ("__t_new", "_t_old")]
)
def test_where_the_shadow_does_not_come_the_definition_changes_and_the_rows_are_not_determined(
    tmp_path: Path, new: str, old: str
) -> None:
    source, follower = begun(tmp_path)
    source.captures = lambda table: table == "t"
    source.like(new, "t")
    source.add(new, "tier", "varchar(8)", "basic", "NOT NULL DEFAULT 'basic'")
    source.modify(new, "qty", "bigint")
    source.copy(new, "t", tier="basic")
    follower.run()
    source.put("t", 1, name="meanwhile")
    source.put(new, 1, name="meanwhile", qty=1, tier="basic")
    source.rename_tables(("t", old), (new, "t"))
    source.put("t", 2, qty=2**40, tier="gold")
    source.drop_table(old)
    follower.run()
    follower.check("t")
    assert follower.verdicts()[0] == f"apply: swapped in from shop.{new}"
    (point,) = open_points(follower)
    assert point.startswith(f"rows: the rows of shop.{new} are not in the lake")
    assert "binlake table resync" in point
    follower.restart()
    source.put("t", 3, tier="gold")
    follower.run()
    follower.check("t")
    assert {p.name for p in (tmp_path / "shop").iterdir()} == {"t"}


def test_a_run_that_is_given_up_leaves_the_table_alone_and_its_copy_is_emptied(tmp_path: Path) -> None:
    source, follower = begun(tmp_path)
    for kind, drop in (("pt", True), ("gho", False), ("gho", True)):
        tool = Tool(source, kind, "tier")
        tool.start()
        tool.copy(range(5))
        tool.write(1, name=kind)
        follower.run()
        assert len(follower.stored(path_of(follower, tool.shadow))) == 5
        tool.give_up(drop=drop)
        source.put("t", 2, name=kind)
        follower.run()
        check(follower)
    assert {p.name for p in (tmp_path / "shop").iterdir()} == {"t", "t@@2"}
    assert follower.stored("t@@2") == {}


def test_a_lasting_table_with_the_name_of_a_shadow_comes_to_the_lake(tmp_path: Path) -> None:
    source, follower = begun(tmp_path)
    source.create("_t_new", COLUMNS, snapshot=False)
    source.put("_t_new", 1, name="mine")
    source.create("_u_gho", COLUMNS, snapshot=False)
    source.put("_u_gho", 1, name="mine")
    source.create("_t_ghc", COLUMNS, snapshot=False)
    source.put("_t_ghc", 1, name="mine")
    follower.run()
    source.create("u", COLUMNS, snapshot=False)
    source.put("u", 1, name="later")
    follower.run()
    follower.restart()
    source.put("_u_gho", 2, name="mine")
    source.put("_t_new", 2, name="mine")
    follower.run()
    for table in ("t", "_t_new", "_u_gho", "_t_ghc", "u"):
        check(follower, table)
    assert path_of(follower, "_u_gho") == "_u_gho"


def test_a_swap_that_a_former_version_carried_out_on_the_definition_alone_stays_so(tmp_path: Path) -> None:
    source, follower = begun(tmp_path)
    source.captures = lambda table: table == "t"
    tool = Tool(source, "pt", "tier")
    tool.start()
    tool.swap()
    source.put("t", 1, tier=1)
    follower.run()
    source.captures = lambda table: True
    tool.clean()
    later = Tool(source, "pt", "other")
    later.start()
    later.copy(range(9))
    follower.restart()
    follower.run()
    assert path_of(follower, "t") == "t"
    later.swap()
    source.put("t", 2, other=1)
    later.clean()
    follower.run()
    check(follower)
    assert path_of(follower, "t") == "t@@2"


@pytest.mark.parametrize("policy", ["new", "refuse"])
def test_a_swap_is_followed_whatever_the_policy_for_renamed_tables(tmp_path: Path, policy: str) -> None:
    source, follower = begun(tmp_path, rename_table=policy)
    tool = Tool(source, "gho", "tier", keeps=lambda key: key < 3)
    tool.start()
    tool.copy(range(9))
    tool.swap()
    source.put("t", 2, tier=1)
    follower.run()
    check(follower)


class Overruled(Follower):
    """A follower whose settings leave a column of ``t`` out."""

    def document(self) -> str:
        """The settings file."""
        told = json.loads(super().document())
        told["tables"]["overrides"] = [{"match": "shop.t", "columns": {"exclude": ["name"]}}]
        return json.dumps(told)


def test_the_rules_of_a_table_are_those_of_its_shadow(tmp_path: Path) -> None:
    source = Captured()
    source.create("t", COLUMNS)
    source.put("t", 1, name="secret")
    follower = Overruled(source, tmp_path)
    follower.run()
    tool = Tool(source, "pt", "tier")
    tool.start()
    tool.copy(range(9))
    follower.run()
    assert follower.stored(path_of(follower, "_t_new")) == {1: {"id": 1, "qty": None, "tier": 7}}


def test_the_shadow_of_a_table_with_rules_is_left_out_where_nothing_tells_that_a_tool_made_it(tmp_path: Path) -> None:
    """The connector took its snapshot in the middle of a run: the copy is a table like any other to it."""
    source = Captured()
    source.create("t", COLUMNS)
    source.put("t", 1, name="secret")
    source.create("_t_new", COLUMNS)
    source.copy("_t_new", "t")
    source.snapshot("_t_new", "true")
    for place, kind in ((tmp_path / "ruled", Overruled), (tmp_path / "plain", Follower)):
        kind(source, place).run()
    assert {p.name for p in (tmp_path / "ruled" / "shop").iterdir()} == {"t"}
    assert {p.name for p in (tmp_path / "plain" / "shop").iterdir()} == {"t", "_t_new"}
    source.put("_t_new", 1, name="other")
    source.rename_tables(("t", "_t_old"), ("_t_new", "t"))
    source.put("t", 2, name="secret")
    ruled, plain = Overruled(source, tmp_path / "ruled"), Follower(source, tmp_path / "plain")
    ruled.run()
    plain.run()
    check(plain)
    assert path_of(ruled, "t") == "t"
    assert [point[:43] for point in open_points(ruled)] == ["rows: the rows of shop._t_new are not in th"]


@pytest.mark.parametrize("kind", ["append", "merged"])
def test_a_table_that_no_other_can_go_on_for_keeps_its_rows(tmp_path: Path, kind: str) -> None:
    source = Captured()
    source.create("t", COLUMNS)
    source.put("t", 1, name="a")
    follower = Follower(source, tmp_path)
    if kind == "append":
        follower.sections = {"kind": "append"}
    else:
        shard = {"column": "shard", "value": "{1}"}
        follower.routes = [{"match": r"shop\.(t)", "to": "shop.all_t", "shard": shard}]
    follower.run()
    tool = Tool(source, "pt", "tier", keeps=lambda key: key > 1)
    tool.start()
    tool.copy(range(9))
    tool.swap()
    source.put("t", 2, tier=1)
    follower.run()
    path = "t" if kind == "append" else "all_t"
    assert {p.name for p in (tmp_path / "shop").iterdir()} == {path}
    assert {row["id"] for row in follower.all_rows(path)} == {1, 2}
    told = HudiTable.open(open_storage(str(tmp_path / "shop" / path), {})).extra_metadata("binlake.ddl")
    open_rows = [str(one) for one in undetermined_columns(entries_from_text(told))]
    assert bool(open_rows) is (kind == "merged"), "an append table has what was inserted"


@pytest.mark.parametrize("known", ["live", "late"])
def test_a_new_key_that_numbers_the_rows_is_the_one_of_the_shadow(tmp_path: Path, known: str) -> None:
    source, follower = begun(tmp_path)
    source.create("_t_new", COLUMNS, snapshot=False)
    columns = {"nid": "int", **COLUMNS}
    clause = "DROP PRIMARY KEY, ADD COLUMN nid int NOT NULL AUTO_INCREMENT FIRST, ADD PRIMARY KEY (nid)"
    source.rekey("_t_new", f"ALTER TABLE `_t_new` {clause}", ("nid",), columns)
    if known == "live":
        follower.run()
    for key, row in source.tables["t"].rows.items():
        source.put("_t_new", key, name=row["name"], nid=key + 100)
    if known == "live":
        follower.run()
    source.rename_tables(("t", "_t_old"), ("_t_new", "t"))
    source.put("t", 3, name="numbered")
    source.delete("t", 4)
    source.drop_table("_t_old")
    follower.run()
    check(follower)
    follower.restart()
    source.put("t", 5, name="numbered")
    follower.run()
    check(follower)


class Script:
    """Random runs of the tools, application writes, and batches in between."""

    def __init__(self, seed: int, place: Path) -> None:
        self.chance = random.Random(seed)
        self.unseen = self.chance.random() < 0.3
        policies = {"recreate_table": "keep"} if self.chance.random() < 0.3 else {}
        together = not self.unseen and self.chance.random() < 0.2
        self.source, self.live = begun(place / "live", together=together, **policies)
        self.late = Follower(self.source, place / "late", dict(self.live.sections))
        if self.unseen:
            self.source.captures = lambda table: not table.startswith("_")
        self.columns = 0
        self.told: list[str] = []

    def run(self) -> None:
        """Three runs of tools, with everything in between; the lake must follow at the end, live and from the start."""
        for _ in range(self.chance.randint(1, 3)):
            self._one_run()
        for follower in (self.live, self.late):
            follower.run()
            follower.restart()
            follower.run()
            self._judge(follower)

    def _one_run(self) -> None:
        chance, source = self.chance, self.source
        self.columns += 1
        modulus = chance.choice([1, 2, 3, 100])
        tool = Tool(
            source,
            chance.choice(["pt", "gho"]),
            f"c{self.columns}",
            keeps=lambda key: modulus == 1 or key % modulus > 0,
            two_step=chance.random() < 0.2,
            drop_swap=chance.random() < 0.2,
        )
        self._writes(tool)
        tool.start()
        self._say(f"start {tool.kind} keeps {modulus}")
        for start in (0, 4, 8):
            self._writes(tool)
            tool.copy(range(start, start + 4))
            self._batch()
        end = chance.choice(["swap", "swap", "swap", "swap", "drop", "leave"])
        self._say(end)
        if end != "swap":
            tool.give_up(drop=end == "drop")
            return
        tool.swap()
        self._say(f"two_step {tool.two_step} drop_swap {tool.drop_swap} old {tool.old}")
        self._batch()
        self._writes(tool)
        if tool.old and chance.random() < 0.25:
            tool.roll_back()
            self._say("roll back")
            self._writes(tool)
            self._batch()
        if chance.random() < 0.8:
            tool.clean()
            self._say("clean")
        self._batch()

    def _writes(self, tool: Tool) -> None:
        for _ in range(self.chance.randint(0, 4)):
            key = self.chance.randrange(12)
            if self.chance.random() < 0.25 and key in self.source.tables["t"].rows:
                tool.delete(key)
            else:
                tool.write(key, name=f"w{self.source.pos}", qty=self.chance.randrange(50))
            if self.chance.random() < 0.3:
                tool.beat()

    def _batch(self) -> None:
        if self.chance.random() < 0.5:
            share = self.chance.choice([0.5, 1.0, 1.0])
            self.live.run(share=share)
            if self.chance.random() < 0.2:
                self.live.restart()

    def _say(self, what: str) -> None:
        self.told.append(what)

    def _judge(self, follower: Follower) -> None:
        held, path = self.source.tables["t"], path_of(follower, "t")
        stored = follower.stored(path)
        shown = {key: {n: row.get(n) for n in held.columns} for key, row in stored.items()}
        where = f"{follower.place} {self.told}"
        if not self.unseen:
            assert shown == held.rows, where
            assert open_points(follower) == [], where
        assert shown == held.rows or open_points(follower), where
        assert follower.quarantined() == [], where


@pytest.mark.first(5)
@pytest.mark.parametrize("seed", usually(range(6), range(200)))
def test_any_runs_of_tools_end_with_the_rows_of_the_source_or_say_that_they_are_not_determined(
    tmp_path: Path, seed: int
) -> None:
    Script(seed, tmp_path).run()


@pytest.mark.first(11)
@pytest.mark.parametrize("changes_before", [False, True], ids=["", "with a statement before its rows"])
@pytest.mark.parametrize("tool", [True, False], ids=["shadow", "copy"])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_copy_whose_definition_only_its_rows_tell_is_changed(
    tmp_path: Path, share: float, tool: bool, changes_before: bool
) -> None:
    """As a binlog tells it: with the first rows under the name that the copy has by then, if it is new. The last
    statement converts what rows before it hold, also where all comes at once and the lake has no such table yet."""
    source = DdlSource(unspoken=True)
    source.create("t", {"id": "bigint", "name": "varchar(20)", "qty": "int"}, snapshot=False)
    for key in range(5):
        source.put("t", key, name=f"t{key}", qty=key)
    follower = Follower(source, tmp_path)
    if share:
        follower.run(share=share)
    copy, old = ("_t_gho", "_t_del") if tool else ("n", "old")
    source.like(copy, "t")
    if changes_before:
        source.add(copy, "tier", "int", 3, "DEFAULT 3")
    if tool:
        source.copy(copy, "t")
    source.rename_tables(("t", old), (copy, "t"))
    if tool:
        source.drop_table(old)
    source.put("t", 7, name="seven", qty=7)
    for row in source.tables["t"].rows.values():
        row["qty"] = str(row["qty"])
    source.modify("t", "qty", "varchar(9)")
    follower.run()
    follower.idle()
    path = "t@@2" if tool else "n"
    assert set(follower.stored(path)) == ({*range(5), 7} if tool else {7})
    follower.check("t", path)
    assert follower.quarantined() == []
