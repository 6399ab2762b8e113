"""What hudi-rs' writer (0.6.0-rc.1) has put into tables of ours: recorded commits, and what our writer makes of them.

``tests/programs/proofs/turns`` made the recordings, and lets the two write for real.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pytest

import hudilake
from hudilake.errors import ConfigError
from hudilake.format.definition.bucket import bucket_ids
from hudilake.policies import TableType
from hudilake.services.fsck import fsck
from hudilake.storage import open_storage
from hudilake.storage.passing import PassingStorage
from hudilake.table.others_writes import OthersWrites
from tests.judges import hudi_rs
from tests.programs.proofs.turns.histories import BUCKETS, new_table, rows_of, shown
from tests.programs.proofs.turns.recording import FIRST, KNOWN, NEW, add_theirs, before

OURS = {"a": ("again", 9), "n1": ("again", 9)}
KINDS = ("copied", "merged")


def files(root: Path) -> Mapping[str, bytes]:
    return {
        str(path): path.read_bytes() for path in root.rglob("*") if path.is_file() and ".hoodie/.locks" not in str(path)
    }


def is_refused(table: hudilake.Table, words: str) -> None:
    """Twice, and by a writer that opens the table anew; nothing is written."""
    root = Path(table.uri.removeprefix("file://"))
    was = files(root)
    for writer in (table, table, hudilake.open_table(str(root))):
        writer.refresh()
        with pytest.raises(ConfigError, match=words) as refused:
            writer.upsert(rows_of(OURS))
        assert "\n" not in str(refused.value)
    assert {path: data for path, data in files(root).items() if path in was} == was
    assert not [path for path in files(root).keys() - was.keys() if path.endswith((".parquet", ".log", "commit"))]


@pytest.mark.parametrize("kind", KINDS)
def test_known_keys_that_hudi_rs_wrote_are_built_upon(kind: str, tmp_path: Path) -> None:
    root = before(f"{kind}_known", tmp_path)
    table = hudilake.open_table(str(root))
    add_theirs(f"{kind}_known", root)
    assert table.refresh()
    table.upsert(rows_of(OURS))
    expected = sorted((key, text) for key, (text, _) in {**FIRST, **KNOWN, **OURS}.items() if key != "d")
    assert shown(table.scan().to_arrow()) == shown(hudi_rs.snapshot(root)) == expected
    assert fsck(open_storage(str(root))).errors == 0


def test_a_new_key_in_a_file_group_of_another_bucket_stops_the_writer(tmp_path: Path) -> None:
    root = before("copied_new", tmp_path)
    table = hudilake.open_table(str(root))
    add_theirs("copied_new", root)
    is_refused(table, r"another writer put \d of \d rows into a file group that is not their bucket's")
    assert {key for key, _ in shown(table.scan().to_arrow())} == {*FIRST, *NEW}  # it is read as hudi-rs reads it
    table.restore(table.history()[-1].requested)
    table.upsert(rows_of(OURS))
    assert shown(table.scan().to_arrow()) == sorted((key, text) for key, (text, _) in {**FIRST, **OURS}.items())


def test_a_file_group_of_no_bucket_stops_the_writer(tmp_path: Path) -> None:
    root = before("merged_new", tmp_path)
    table = hudilake.open_table(str(root))
    add_theirs("merged_new", root)
    is_refused(table, "another writer wrote rows to a file group that is no bucket")


def test_a_base_file_made_of_a_replaced_one_stops_the_writer(tmp_path: Path) -> None:
    root = before("copied_overtaken", tmp_path)
    table = hudilake.open_table(str(root))
    ours = table.history()[0].requested
    assert ("b", "ours") in shown(table.scan().to_arrow())
    add_theirs("copied_overtaken", root)
    is_refused(table, f"the rows of commit {ours} in its file group are lost")


def test_a_commit_of_hudi_rs_that_ours_did_not_see_stops_the_writer(tmp_path: Path) -> None:
    root = before("copied_overtaking", tmp_path)
    table = hudilake.open_table(str(root))
    add_theirs("copied_overtaking", root)
    is_refused(table, r"the rows of commit \d+ in its file group are lost")


@dataclass(frozen=True, slots=True)
class CountingStorage(PassingStorage):
    """Counts the data files that are read."""

    read_paths: list[str] = field(default_factory=list)

    def sub(self, path: str) -> CountingStorage:
        return CountingStorage(self.inner.sub(path), self.read_paths)

    def read(self, path: str) -> bytes:
        if not path.startswith(".hoodie/"):
            self.read_paths.append(path)
        return super(CountingStorage, self).read(path)


@pytest.mark.parametrize("kind", KINDS)
def test_files_of_others_are_read_once_and_those_of_binlake_never(kind: str, tmp_path: Path) -> None:
    root = before(f"{kind}_known", tmp_path)
    table = hudilake.open_table(str(root)).internal
    counting, others = CountingStorage(table.storage), OthersWrites()
    others.check(counting, table.config, table.timeline)
    hudilake.open_table(str(root)).upsert(rows_of({"b": ("another process", 2)}))
    assert table.refresh()
    others.check(counting, table.config, table.timeline)
    assert counting.read_paths == []
    add_theirs(f"{kind}_known", before(f"{kind}_known", tmp_path / "other"))
    table = hudilake.open_table(str(tmp_path / "other")).internal
    others = OthersWrites()
    for _ in range(2):
        others.check(counting, table.config, table.timeline)
        assert len(counting.read_paths) == len(set(counting.read_paths)) == 3


@pytest.mark.parametrize("kind", ["copy_on_write", "merge_on_read"])
@pytest.mark.parametrize("buckets", [2, 4])
def test_a_writer_that_counts_other_buckets_is_noticed(kind: TableType, buckets: int, tmp_path: Path) -> None:
    """A writer with two buckets on a table of four. With four, the same commit is built upon."""
    table = new_table(tmp_path, kind)
    keys = pa.array([f"k{number}" for number in range(16)])
    low = keys.filter(pa.array(bucket_ids(keys, ["id"], BUCKETS) < 2))  # a file group of a bucket above is seen as such
    table.upsert(rows_of(dict.fromkeys(low.to_pylist(), ("ours", 1))))
    properties = tmp_path / ".hoodie" / "hoodie.properties"
    right = properties.read_text()
    properties.write_text(right.replace("num.buckets=4", f"num.buckets={buckets}"))
    assert (properties.read_text() == right) == (buckets == 4)
    other = hudilake.open_table(str(tmp_path))
    other.upsert(rows_of(dict.fromkeys(keys.to_pylist(), ("other", 1))))
    properties.write_text(right)
    timeline = other.internal.timeline
    commit = timeline.newest_first()[0]
    body = timeline.commit_metadata(commit)
    others = replace(body, stats=tuple(replace(stat, contents=None) for stat in body.stats))
    (tmp_path / commit.path).write_bytes(others.to_bytes())  # as a writer that is not binlake says it
    table = hudilake.open_table(str(tmp_path))
    if buckets == 2:
        with pytest.raises(ConfigError, match="another writer put"):
            table.upsert(rows_of({"k1": ("ours", 2)}))
        return
    table.upsert(rows_of({"k1": ("ours", 2)}))
    assert ("k1", "ours") in shown(table.scan().to_arrow())
