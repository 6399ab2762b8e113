"""Tables that others wrote, read as hudi-rs reads them and never changed. All that are known: ``make proofs``."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudilake
from hudilake.errors import CorruptDataError, LakeError, UnsupportedError
from hudilake.extras import MissingExtraError
from hudilake.services.fsck import fsck
from hudilake.storage import open_storage
from tests.paths import ROOT
from tests.programs.proofs.part import Outcome
from tests.programs.proofs.tables import FOREIGN, RULES, judge, unpacked

TABLES = sorted(path.stem for path in FOREIGN.glob("*.zip"))
OLD, WITHOUT_META = "v6_trips_8i3d", "v8_simplekeygen_hivestyle_no_metafields"
LANCE = "v9_lance_nonhivestyle"


def root_of(name: str, tmp_path: Path) -> Path:
    return unpacked(FOREIGN / f"{name}.zip", tmp_path)


@pytest.mark.parametrize("name", TABLES)
def test_it_equals_hudi_rs_and_stays_as_it_is(name: str, tmp_path: Path) -> None:
    root = root_of(name, tmp_path)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    verdict = judge(name, root)
    assert verdict.outcome is Outcome.EQUAL, verdict
    table = hudilake.open_table(str(root))
    rows = table.scan().to_arrow()
    assert rows.num_rows > 0
    with pytest.raises(UnsupportedError) as refused:
        table.upsert(rows.slice(0, 1))
    assert "\n" not in str(refused.value)
    for service in (table.compact, table.clean, table.archive):
        with pytest.raises(UnsupportedError):
            service()
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


def test_a_wrong_cell_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = root_of(OLD, tmp_path)
    theirs = hudilake.open_table(str(root)).scan().to_arrow()
    monkeypatch.setattr("tests.judges.hudi_rs.snapshot", lambda _: theirs.slice(1))
    assert judge(OLD, root).outcome is Outcome.WRONG


def test_a_refusal_without_a_rule_is_wrong(tmp_path: Path) -> None:
    root = root_of(OLD, tmp_path)
    properties = root / ".hoodie" / "hoodie.properties"
    text = properties.read_text()
    properties.write_text(text + "hoodie.bootstrap.base.path=file:///x\n")
    assert judge(OLD, root).outcome is Outcome.REFUSED
    properties.write_text(text + "hoodie.table.format=other\n")
    assert judge(OLD, root).outcome is Outcome.WRONG


def test_the_rules_stand_in_the_limits() -> None:
    limits = " ".join((ROOT / "docs" / "limits.md").read_text().split())
    assert [rule for rule in RULES.values() if rule not in limits] == []


def test_blocks_of_a_log_file_of_version_6_count_by_their_own_commit(tmp_path: Path) -> None:
    """The log file has the name of its base file, so only its blocks say that the second commit deleted rows."""
    table = hudilake.open_table(str(root_of(OLD, tmp_path)))
    newest, first = table.history()
    assert [table.scan(as_of=one).to_arrow().num_rows for one in (first, newest)] == [8, 5]


def test_a_commit_that_is_gone_takes_its_blocks_along(tmp_path: Path) -> None:
    root = root_of(OLD, tmp_path)
    newest = hudilake.open_table(str(root)).history()[0].requested
    for file in (root / ".hoodie").glob(f"{newest}.*"):
        file.unlink()
    assert hudilake.open_table(str(root)).scan().to_arrow().num_rows == 8


def test_what_needs_the_names_of_commits_is_refused(tmp_path: Path) -> None:
    root = root_of(OLD, tmp_path)
    table = hudilake.open_table(str(root))
    with pytest.raises(UnsupportedError, match="an incremental read needs a table where it is 2"):
        table.scan(since="")
    with pytest.raises(UnsupportedError, match="fsck needs a table where it is 2"):
        fsck(open_storage(str(root)))


def test_a_table_with_lance_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = root_of(LANCE, tmp_path)
    table = hudilake.open_table(str(root))
    rows = table.scan().to_arrow()
    for name, kind in zip(rows.schema.names, rows.schema.types, strict=True):
        if not name.startswith("_hoodie_") and pa.types.is_primitive(kind):
            value = rows.column(name)[0]
            assert table.count(hudilake.Eq(name, value.as_py())) == pc.sum(pc.equal(rows.column(name), value)).as_py()
    assert table.scan(since="").to_arrow().num_rows > 0
    with pytest.raises(UnsupportedError, match=r"base\.file\.format is LANCE: fsck needs a table where it is PARQUET"):
        fsck(open_storage(str(root)))
    for base in root.rglob("*.lance"):
        base.write_bytes(base.read_bytes()[:-100])
    with pytest.raises(CorruptDataError, match="a Lance file cannot be read"):
        table.scan().to_arrow()
    monkeypatch.setattr("hudilake.extras.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"lance is not installed.*pip install 'hudilake\[lance\]'"):
        table.scan().to_arrow()


def test_a_table_without_meta_fields(tmp_path: Path) -> None:
    root = root_of(WITHOUT_META, tmp_path)
    table = hudilake.open_table(str(root))
    assert table.count("intField > 0") == table.scan(["id"], "intField > 0").to_arrow().num_rows
    with pytest.raises(UnsupportedError, match=r"no columns \['_hoodie_record_key'\]"):
        table.scan(["_hoodie_record_key"])
    with pytest.raises(UnsupportedError, match=r"hoodie\.populate\.meta\.fields is false: an incremental read"):
        table.scan(since="")
    counted = hudilake.sql("select count(*) as n from t", {"t": table}).to_pylist()
    assert counted == [{"n": table.scan().to_arrow().num_rows}]
    base = next(root.rglob("*.parquet"))
    file_id, _, instant = base.stem.split("_")
    (base.parent / f".{file_id}_{instant}.log.1_0-0-0").write_bytes(b"#HUDI#")
    with pytest.raises(UnsupportedError, match="a log file has rows without meta fields"):
        table.scan().to_arrow()


def test_an_instant_of_another_layout_is_an_error(tmp_path: Path) -> None:
    root = root_of(OLD, tmp_path)
    (root / ".hoodie" / "20260101000000000_20260101000000001.commit").write_bytes(b"")
    with pytest.raises(LakeError, match="it is of timeline layout 2"):
        hudilake.open_table(str(root))
