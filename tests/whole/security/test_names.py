"""Names from topics and tables cannot leave the lake's root, nor reach what belongs to binlake and Hudi."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlake.decode.changes import SourceTable
from binlake.load.replay.dump import DumpService
from binlake.settings import DumpSettings, Settings, SettingsError, path_name
from binlake.settings.templates import may_meet, placeholders
from binlake.source.dump_layout import DumpLayout, Window
from binlake.source.dump_write import DumpFormat
from binlake.source.offsets import OffsetRange
from hudilake.errors import LakeError, UnsupportedError
from hudilake.storage import Storage, open_storage
from hudilake.storage.paths import file_path
from tests.binlake.load.replay.dumped import Record
from tests.binlake.load.replay.test_dump import Records
from tests.judges import hudi_rs
from tests.whole.security.hostile import IMPOSSIBLE, POSSIBLE, HostileTopic

IDENTIFIERS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=64)
PIECES = st.sampled_from(["..", ".", "", "/", "\\", "\0", "\n", "%2e", "a", ".hoodie", "~", "//", "é", "．", "C:"])


@given(IDENTIFIERS, IDENTIFIERS)
def test_no_two_identifiers_share_a_path_and_none_leaves_its_directory(one: str, other: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_@-]+", path_name(one))
    assert path_name(one) not in ("_quarantine", ".hoodie", ".binlake")
    assert (path_name(one) == path_name(other)) == (one == other)


def test_hostile_names_do_not_meet() -> None:
    assert len({path_name(name) for name in POSSIBLE}) == len(set(POSSIBLE))


@given(st.lists(PIECES, min_size=1, max_size=6))
def test_every_door_of_the_storage_keeps_inside(tmp_path_factory: pytest.TempPathFactory, pieces: list[str]) -> None:
    """A path is refused, or its file lies below the root; in a directory of the disk, and in an object store."""
    path = "".join(pieces)
    top = tmp_path_factory.getbasetemp() / "doors"
    memory = open_storage("memory://bucket")
    calls: list[Callable[[Storage], object]] = [
        lambda root: root.write(path, b"x"),
        lambda root: root.create(path, b"x"),
        lambda root: root.sub(path).write("f", b""),
        lambda root: root.delete(path),
        lambda root: root.delete_tree(path),
    ]
    memory.write("beside", b"kept")
    roots = [memory.sub("in/root")]
    if leads_out_of(top, top / "in" / "root", path):
        with pytest.raises(UnsupportedError):  # and no call: without the guard it would reach the machine's own files
            file_path(path)
    else:
        roots.append(open_storage(str(top / "in" / "root"), {"fsync": "false"}))
    for root in roots:
        for call in calls:
            with contextlib.suppress(LakeError):
                call(root)
    assert [p for p in top.rglob("*") if p.is_file() and not p.is_relative_to(top / "in" / "root")] == []
    assert [i.path for i in memory.walk("") if not i.path.startswith("in/root/")] == ["beside"]


def leads_out_of(top: Path, root: Path, path: str) -> bool:
    """Whether the operating system would look for the path, taken from ``root``, outside of the test's directory."""
    if "\0" in path:
        return False  # it cannot even be asked for
    found = Path(os.path.normpath(root / path))
    return found == top or not found.is_relative_to(top)


@pytest.mark.parametrize("path", ["..", "../a", "a/../b", "/a", "a//b", "a/.", "a\0", "a\nb", "a/", ""])
def test_control_such_paths_are_refused(path: str) -> None:
    with pytest.raises(UnsupportedError):
        file_path(path)


def test_a_topic_that_names_any_table_it_likes(tmp_path: Path) -> None:
    """All hostile names in one batch: each is a table of its own below the root, or in the quarantine."""
    here = HostileTopic(tmp_path / "top")
    names = [("shop", name) for name in POSSIBLE] + [(name, "shop") for name in POSSIBLE]
    for at, (database, table) in enumerate(names):
        here.put(database, table, {"id": at, "v": f"{database}/{table}"})
    for name in IMPOSSIBLE:
        here.put(name, "t", {"id": 1})
        here.put("shop", name, {"id": 1})
    done = here.batch()
    assert [t.error for t in done.tables if t.error] == []
    assert done.quarantined == 2 * len(IMPOSSIBLE)
    wanted = {SourceTable(*name) for name in names}
    assert {t.table for t in done.tables} == set(map(str, wanted))
    expected = {here.settings.table_rules(source).path: source for source in wanted}
    assert here.tables() == {*expected, "_quarantine/shop"}
    for path, source in expected.items():
        (row,) = hudi_rs.snapshot(str(here.lake / path)).to_pylist()
        assert row["v"] == f"{source.database}/{source.table}"
    assert sorted(p.name for p in (tmp_path / "top").iterdir()) == ["conf.yaml", "lake"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["top"]


def test_a_name_that_gives_too_long_a_directory_is_refused_alone(tmp_path: Path) -> None:
    here = HostileTopic(tmp_path)
    here.put("shop", "名" * 64, {"id": 1})
    here.put("shop", "a", {"id": 1})
    told = {t.table: (t.applied, t.error or "") for t in here.batch().tables}
    assert told.pop("shop.a") == (1, "")
    ((table, (applied, why)),) = told.items()
    assert (table, applied) == (f"shop.{'名' * 64}", 0)
    assert "would have a name of more than 255 bytes" in why


def test_two_tables_of_one_path_do_not_mix(tmp_path: Path) -> None:
    """Where the template gives several tables one path, the first has it, and the others are told."""
    here = HostileTopic(tmp_path, tables={"path": "of-{database}{table}", "defaults": {"buckets": 1}})
    here.put("a", "bc", {"id": 1, "v": "first"})
    here.batch()
    here.put("ab", "c", {"id": 1, "v": "second"})
    (table,) = here.batch().tables
    assert table.error is not None
    assert "the table at this path holds a.bc" in table.error
    assert [row["v"] for row in hudi_rs.snapshot(str(here.lake / "of-abc")).to_pylist()] == ["first"]


# -- partition values -------------------------------------------------------------------------------------------------

VALUES = ["..", ".", ".hoodie", "x" * 300, "名" * 100]
ESCAPED = ["a/b", "../x", "/etc", "a\\b", "%2e%2e", "a\0b", "a\nb", "~", "C:", "_hidden", "__HIVE_DEFAULT_PARTITION__"]


@pytest.mark.parametrize("hive_style", [True, False])
@pytest.mark.parametrize("keyed", [True, False])
def test_partition_values_stay_in_their_table(tmp_path: Path, hive_style: bool, keyed: bool) -> None:
    rules = {"buckets": 1, "partition": {"column": "v"}, "hive_style": hive_style, "compaction": {"mode": "off"}}
    here = HostileTopic(tmp_path, tables={"defaults": rules})
    fits = [v for v in (*VALUES, *ESCAPED) if len(v.encode()) < 250 and (hive_style or not v.startswith("."))]
    for at, value in enumerate(["eu", *VALUES, *ESCAPED]):
        here.put("d", "t", {"id": at, "v": value})
        if not keyed:
            here.log.records["t", 0][-1] = (None, here.log.records["t", 0][-1][1])
    (table,) = here.batch().tables
    assert (table.applied, table.quarantined, table.error) == (
        1 + len(fits),
        len(VALUES) + len(ESCAPED) - len(fits),
        None,
    )
    rows = hudi_rs.snapshot(str(here.lake / "d/t")).to_pylist()
    assert sorted(row["v"] for row in rows) == sorted(["eu", *fits])
    assert [*(here.lake / "d/t/.hoodie").glob("*.parquet"), *(here.lake / "d").glob("*.log*")] == []


def test_a_row_moves_out_of_a_partition_that_it_could_not_enter(tmp_path: Path) -> None:
    rules = {"buckets": 1, "partition": {"column": "v"}, "hive_style": False}
    here = HostileTopic(tmp_path, tables={"defaults": rules})
    here.put("d", "t", {"id": 1, "v": ".hoodie"})
    here.put("d", "t", {"id": 1, "v": "eu"}, {"id": 1, "v": ".hoodie"})
    (table,) = here.batch().tables
    assert (table.applied, table.quarantined, table.error) == (1, 1, None)
    assert [row["v"] for row in hudi_rs.snapshot(str(here.lake / "d/t")).to_pylist()] == ["eu"]


# -- settings ---------------------------------------------------------------------------------------------------------

LEAVING = ["..", "../x", "/x", "a//b", ".hoodie", ".binlake/shop"]
FORMS = ["{%s.__class__}", "{%s:>999999999}", "{%s!r}", "{%s[0]}", "{other}", "{%s"]
REFUSED = {
    "tables.path": [*(f"{path}/{{table}}" for path in LEAVING), *(form.replace("%s", "table") for form in FORMS), "a"],
    "quarantine.path": [*LEAVING, *(form.replace("%s", "name") for form in FORMS), "bad/{name}"],
    "dump.path": ["../{date}/*", "/{date}/*", "{date.__class__}/*", "{date:>99999999}/*"],
    "dump.ddl_path": ["..", "/x", "a/../b"],
}


@pytest.mark.parametrize(("setting", "value"), [(s, v) for s, values in REFUSED.items() for v in values])
def test_paths_of_the_settings_stay_below_their_roots(setting: str, value: str) -> None:
    section, name = setting.split(".")
    with pytest.raises(SettingsError, match=setting if value != "bad/{name}" else "quarantine.path"):
        settings_with({section: {name: value}})


@pytest.mark.parametrize("to", ["{table.__class__}.x", "a.{table:>999999999}", "a.{0.string}"])
def test_routes_give_names_only(to: str) -> None:
    with pytest.raises(SettingsError, match="placeholders"):
        settings_with({"tables": {"routes": [{"match": "(.*)", "to": to}]}})


def settings_with(sections: dict[str, object]) -> Settings:
    base = {"name": "s", "lake": {"uri": "/x"}, "kafka": {"bootstrap_servers": "h:1", "topics": ["t"]}}
    return Settings.parse(json.dumps({**base, **sections}))


def test_control_the_usual_paths_are_taken() -> None:
    made = settings_with({"tables": {"path": "a/{database}-{table}"}, "quarantine": {"path": "_quarantine/x/{name}"}})
    assert made.table_rules(SourceTable("d", "t")).path == "a/d-t"


def test_a_database_named_like_the_quarantine_is_not_the_quarantine() -> None:
    made = settings_with({})
    assert made.quarantine_path == "_quarantine/s"
    assert made.table_rules(SourceTable("_quarantine", "s")).path == "@005fquarantine/s"


@given(
    st.sampled_from(["{database}/{table}", "{table}", "a_{table}/x", "{database}{table}", "x/{table}"]),
    IDENTIFIERS,
    IDENTIFIERS,
)
def test_templates_are_told_from_paths_that_they_give(template: str, database: str, table: str) -> None:
    assert placeholders(template) <= {"database", "table"}
    given_path = template.format(database=path_name(database), table=path_name(table))
    assert may_meet(template, given_path, ())
    assert may_meet(template, f"{given_path}/below", ())
    assert not may_meet("q/{table}", f"_quarantine/{table}", ())


# -- dumps ------------------------------------------------------------------------------------------------------------

TOPICS = [
    "..",
    ".",
    "_a.b.c",
    "__x",
    ".hidden",
    "a.tmp",
    "s.d.x.tmp",
    "s._d.t",
    "s.d._t",
    "s..t",
    "..t",
    "-",
    "s.d.t.crc",
]
TEMPLATES = [
    "{topic}/{date}/{hour}/*.jsonl",
    "{database}/{table}/{date}/*.jsonl",
    "{database}.{table}/dt={date}/*.jsonl",
]


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_topic_that_is_dumped_is_found_again(tmp_path: Path, template: str) -> None:
    """Kafka allows letters, digits, ``.``, ``_`` and ``-``; a dump hides no topic and writes below its root."""
    held: list[Record] = [(topic, 0, 0, 3_600_000 * 50, None, topic.encode()) for topic in TOPICS]
    config = Settings.parse(
        json.dumps(
            {
                "name": "s",
                "lake": {"uri": str(tmp_path / "lake")},
                "kafka": {"bootstrap_servers": "h:1", "topics": TOPICS},
                "dump": {"uri": str(tmp_path / "dump"), "path": template},
            }
        )
    )
    storage = open_storage(str(tmp_path / "dump"), {"fsync": "false"})
    DumpService(config, Records(held), storage).run(once=True)
    found = {
        line["value"]
        for f in DumpLayout(template).find(storage, Window())
        for line in map(json.loads, storage.read(f.path).splitlines())
    }
    assert found == set(TOPICS)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["dump"]


@given(st.lists(PIECES, min_size=1, max_size=6))
def test_no_topic_leaves_the_dump(tmp_path_factory: pytest.TempPathFactory, pieces: list[str]) -> None:
    """Kafka allows no such names; a test of the second guard, the storage's own."""
    topic, top = "".join(pieces), tmp_path_factory.getbasetemp() / "dumps"
    root = open_storage(str(top / "in"), {"fsync": "false"})
    for ddl in ([], [topic]):
        made = DumpFormat(DumpSettings(path="{topic}/{database}/{table}/{date}/*.jsonl"), ddl)
        chunk = next(Records([(topic, 0, 0, 0, None, b"{}")]).read([OffsetRange(topic, 0, 0, 1)]))
        for file in made.files(OffsetRange(topic, 0, 0, 1), [chunk]):
            with contextlib.suppress(UnsupportedError):
                root.write(file.path, b"x")
    assert [p for p in top.rglob("*") if p.is_file() and not p.is_relative_to(top / "in")] == []
