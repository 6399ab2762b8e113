"""Change logs are files of their commit: listed, checked, cleaned, restored and rolled back with its base files."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

import hudilake
from hudilake.errors import ConfigError, UnsupportedError
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.kind import TableKind
from hudilake.format.definition.properties import PROPERTIES_PATH
from hudilake.format.files.file_group_write import FileGroupWrite
from hudilake.format.files.log_file import BlockType, Header, iter_blocks
from hudilake.format.files.names import parse_change_log_name
from hudilake.policies import ChangeLog, RetentionPolicy
from hudilake.services.rebucket.steps import refuse_unmovable
from hudilake.write.group_writer import BaseWriter

_SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string(), "at": pa.timestamp("us", "UTC")})


def table_of(place: Path, mode: ChangeLog | None = "data_before_after", **more: Any) -> hudilake.Table:  # noqa: ANN401
    given = {"key": "id", "order_by": "at", "type": "copy_on_write", "buckets": 1, **more}
    return hudilake.create_table(str(place), _SCHEMA, change_log=mode, **given)


def row(key: int, name: str, at: int) -> dict[str, Any]:
    return {"id": key, "name": name, "at": datetime(2024, 2, 29, 12, 0, at, tzinfo=UTC)}


def written(place: Path, mode: ChangeLog = "data_before_after") -> hudilake.Table:
    """Two rows; then one of them changes and another one comes; then one is deleted."""
    table = table_of(place, mode)
    table.upsert([row(1, "a", 1), row(2, "b", 1)])
    table.upsert([row(1, "late", 0), row(2, "c", 2), row(3, "d", 2)])
    table.delete([{"id": 1}])
    return table


def change_logs(place: Path) -> list[Path]:
    return sorted(path for path in place.iterdir() if parse_change_log_name(path.name))


def changes(path: Path) -> list[dict[str, Any]]:
    (block,) = iter_blocks(path.read_bytes())
    assert block.block_type is BlockType.CDC_DATA
    schema = fastavro.parse_schema(json.loads(block.header[Header.SCHEMA]))
    data, found = io.BytesIO(block.content), list[Any]()
    assert int.from_bytes(data.read(4), "big") == 3
    for _ in range(int.from_bytes(data.read(4), "big")):
        part = io.BytesIO(data.read(int.from_bytes(data.read(4), "big")))
        found.append(fastavro.schemaless_reader(part, schema, None))
        assert not part.read()
    assert not data.read()
    return found


def test_a_change_log_has_what_its_mode_says(tmp_path: Path) -> None:
    for mode, sides in (("op_key_only", ()), ("data_before", ("before",)), ("data_before_after", ("before", "after"))):
        place = tmp_path / mode
        table = written(place, mode)  # type: ignore[arg-type]
        named = [path for one in table.internal.timeline.completed() for path in stats(table, one)]
        logs = change_logs(place)
        assert sorted(path.name for path in logs) == sorted(named)
        updated, inserted = changes(logs[0])
        (deleted,) = changes(logs[1])
        assert [one["op"] for one in (updated, inserted, deleted)] == ["u", "i", "d"]
        if mode != "data_before_after":
            assert [one["record_key"] for one in (updated, inserted, deleted)] == ["2", "3", "1"]
        images = {"before": ("b", None, "a"), "after": ("c", "d", None)}
        for side, names in images.items():
            seen = tuple((one.get(side) or {}).get("name") for one in (updated, inserted, deleted))
            assert seen == (names if side in sides else (None, None, None))


def stats(table: hudilake.Table, write: Any) -> list[str]:  # noqa: ANN401
    return [path for stat in table.internal.timeline.commit_metadata(write).stats for path, _ in stat.change_log]


def test_rows_that_stay_as_they_are_write_no_change_log(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t")
    table.upsert([row(1, "a", 5)])
    table.upsert([row(1, "late", 1)])
    assert not change_logs(tmp_path / "t")


def test_the_metadata_table_lists_change_logs_and_its_rebuild_does(tmp_path: Path) -> None:
    place = tmp_path / "t"
    table = written(place)
    names = {path.name: path.stat().st_size for path in change_logs(place)}
    index = table.internal.metadata_table
    assert index is not None
    assert len(names) == 2
    assert names.items() <= index.reader.files([""])[""].items()
    assert table.fsck().findings == ()
    settings = index.config
    table.internal.keep_metadata(None)
    table.internal.keep_metadata(settings)
    again = table.internal.metadata_table
    assert again is not None
    assert names.items() <= again.reader.files([""])[""].items()
    assert table.fsck().findings == ()


def test_fsck_names_a_change_log_that_is_gone_or_short_or_of_no_commit(tmp_path: Path) -> None:
    place = tmp_path / "t"
    table = written(place)
    first, second = change_logs(place)
    data = first.read_bytes()
    first.write_bytes(data[:-1])
    second.unlink()
    stray = place / first.name.replace(".log.1", ".log.2")
    stray.write_bytes(data)
    found = {(finding.path, finding.what.split(":")[0]) for finding in table.fsck().findings}
    assert (
        first.name,
        f"a completed commit names a change log that has {len(data) - 1} bytes, it wrote {len(data)}",
    ) in found
    assert (second.name, "a completed commit names a change log that does not exist") in found
    assert any(path == stray.name for path, _ in found)


def test_a_clean_takes_change_logs_with_their_base_files(tmp_path: Path) -> None:
    place = tmp_path / "t"
    table = written(place)
    saved = table.internal.timeline.completed()[1].requested_time
    table.savepoint(saved)
    for at in range(3, 7):
        table.upsert([row(2, f"n{at}", at)])
    assert len(change_logs(place)) == 6
    table.clean(RetentionPolicy(commits=1))
    kept = {parse_change_log_name(path.name).instant for path in change_logs(place)}  # type: ignore[union-attr]
    bases = {path.stem.rpartition("_")[2] for path in place.glob("*.parquet")}
    assert kept == bases
    assert saved in kept
    assert len(kept) < 6
    assert table.fsck().findings == ()


def test_restore_and_rollback_delete_change_logs(tmp_path: Path) -> None:
    place = tmp_path / "t"
    table = written(place)
    _, second, _ = [write.requested_time for write in table.internal.timeline.completed()]
    table.restore(second)
    assert [parse_change_log_name(path.name).instant for path in change_logs(place)] == [second]  # type: ignore[union-attr]
    assert table.fsck().findings == ()
    hudi = table.internal
    instant = hudi.begin()
    bases = {piece.file_id: piece.base_file for piece in hudi.file_slices() if piece.base_file is not None}
    (group,) = bases
    gone = pa.table({"_hoodie_record_key": ["1"], "at": pa.nulls(1, pa.int64())})
    BaseWriter(hudi.write_context(instant), bases).write(hudi.storage, FileGroupWrite("", group, None, gone))
    assert len(change_logs(place)) == 2
    hudi.abort(instant)
    assert [parse_change_log_name(path.name).instant for path in change_logs(place)] == [second]  # type: ignore[union-attr]
    assert table.count() == 3


def test_a_file_group_is_not_written_anew_beside_change_logs(tmp_path: Path) -> None:
    hudi = written(tmp_path / "t").internal
    context = hudi.write_context(hudi.begin())
    bases = {piece.file_id: piece.base_file for piece in hudi.file_slices() if piece.base_file is not None}
    (group,) = bases
    rows = pa.schema([pa.field("_hoodie_record_key", pa.string()), *_SCHEMA]).empty_table()
    with pytest.raises(UnsupportedError, match="change logs"):
        BaseWriter(context, bases).write_anew(hudi.storage, FileGroupWrite("", group, rows))
    assert BaseWriter(replace(context, change_log=None), bases).write_anew(
        hudi.storage, FileGroupWrite("", group, rows)
    )


def test_what_moves_rows_is_refused(tmp_path: Path) -> None:
    table = written(tmp_path / "t")
    with pytest.raises(UnsupportedError, match="rebucket is not possible"):
        refuse_unmovable(table.internal, "t")


def test_tables_without_change_logs_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"hoodie\.table\.cdc\.enabled is true"):
        table_of(tmp_path / "t", type="merge_on_read")
    with pytest.raises(UnsupportedError, match=r"hoodie\.table\.cdc\.enabled is true"):
        hudilake.create_table(str(tmp_path / "u"), _SCHEMA, type="copy_on_write", change_log="data_before")
    assert not (tmp_path / "t").exists()
    assert not (tmp_path / "u").exists()
    merged = TableConfig("t", ("id",), "at", 1).with_change_log("data_before")
    with pytest.raises(UnsupportedError, match=r"hoodie\.table\.cdc\.enabled is true"):
        merged.check_changeable()
    rows = TableConfig("t", (), "", 0, kind=TableKind("copy_on_write", "none")).with_change_log("data_before")
    with pytest.raises(UnsupportedError, match=r"hoodie\.table\.cdc\.enabled is true"):
        rows.check_changeable()
    copies = TableConfig("t", ("id",), "at", 1, kind=TableKind("copy_on_write")).with_change_log("data_before")
    copies.check_changeable()
    unknown = replace(copies, extra={**copies.extra, "hoodie.table.cdc.supplemental.logging.mode": "data_after"})
    with pytest.raises(UnsupportedError, match=r"supplemental\.logging\.mode is data_after"):
        unknown.check_changeable()


def test_an_existing_table_does_not_get_change_logs_later(tmp_path: Path) -> None:
    place = tmp_path / "t"
    table_of(place, None)
    mine = TableConfig.from_properties((place / PROPERTIES_PATH).read_bytes())
    with pytest.raises(ConfigError, match="change log is off where data_before was expected"):
        mine.with_change_log("data_before").check_same_identity(mine)
    mine.check_same_identity(mine.with_change_log("data_before"))  # settings that say nothing take what the table says
