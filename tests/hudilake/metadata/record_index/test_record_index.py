"""The record index says of every key where its row is, after every action, to this process and to a new one."""

from __future__ import annotations

import json
import tarfile
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from hudilake.errors import CorruptDataError, UnsupportedError
from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.file_group_write import FileGroupWrite
from hudilake.format.files.view import file_slices
from hudilake.index.open import open_index
from hudilake.metadata.initialise import drop
from hudilake.metadata.live_keys import live_keys
from hudilake.metadata.records.keys import file_group_indices
from hudilake.metadata.records.layout import METADATA_PATH, file_group_id, parse_file_group_id
from hudilake.metadata.records.places import FileGroupPlace, decode_place, encode_place
from hudilake.metadata.records.reader import MetadataReader
from hudilake.metadata.records.record_index import RecordIndexGroups
from hudilake.metadata.records.records import long_bytes
from hudilake.policies import IndexType
from hudilake.storage.local import LocalStorage
from hudilake.table.table import HudiTable
from hudilake.write.group_writer import LogWriter
from tests.hudilake.metadata.record_index.keyed_table import KeyedTable, file_id, said
from tests.judges import hudi_rs
from tests.paths import GOLDEN

KINDS = GOLDEN / "kinds"
FORMS: list[IndexType] = ["record_index", "partitioned_record_index"]
BOTH = pytest.mark.parametrize("index", FORMS)


def _check(table: KeyedTable) -> None:
    assert said(table.table) == table.truth
    assert said(table.reopen()) == table.truth


@BOTH
def test_truth_after_every_commit(tmp_path: Path, index: IndexType) -> None:
    """Inserts, deletes and inserts again, over several compactions, cleans and archivals of the metadata table."""
    table = KeyedTable(tmp_path / "t", index)
    _check(table)
    for turn in range(14):
        table.insert(["eu", "us", "ap"][turn % 3], turn, range(turn * 10, turn * 10 + 10))
        gone = [turn * 10 + 3, turn * 10 + 4]
        group = (f"region={['eu', 'us', 'ap'][turn % 3]}", file_id(turn))
        table.commit({group: ([], gone)})
        if turn % 5 == 4:
            _check(table)
    table.insert("eu", 100, [3, 4, 13])
    _check(table)
    folder = tmp_path / "t" / METADATA_PATH / "record_index"
    assert list(folder.glob("*.hfile")), "the index was compacted"
    assert not [p for p in folder.glob(".*.log.*") if "00000000000000004" in p.name], "older slices were cleaned"


def test_a_moved_key_is_in_its_new_place_only(tmp_path: Path) -> None:
    table = KeyedTable(tmp_path / "t")
    table.insert("eu", 1, [1, 2])
    table.move(1, ("region=us", file_id(2)))
    assert table.truth["", "1"] == ("region=us", file_id(2))
    _check(table)


@BOTH
def test_a_rolled_back_commit_leaves_nothing(tmp_path: Path, index: IndexType) -> None:
    """A commit that died after the metadata table was told: new keys, deleted keys, a new partition."""
    table = KeyedTable(tmp_path / "t", index)
    table.insert("eu", 1, [1, 2, 3])
    group = ("region=eu", file_id(1))
    table.commit({group: ([], [2]), ("region=ap", file_id(9)): ([7, 8], [])}, completes=False)
    reopened = table.reopen()
    assert len(reopened.rollback_pending()) == 1
    _check(table)
    table.insert("ap", 9, [7])
    _check(table)


@BOTH
def test_it_is_built_from_the_files(tmp_path: Path, index: IndexType) -> None:
    """The metadata table of an existing table, with deletes in log files."""
    table = KeyedTable(tmp_path / "t", index)
    for turn in range(3):
        table.insert(["eu", "us", "ap"][turn], turn, range(turn * 10, turn * 10 + 10))
    table.commit({("region=us", file_id(1)): ([], [11, 15])})
    drop(table.storage, table.table.config)
    assert table.reopen().keep_metadata(table.metadata)
    _check(table)


def test_lookups(tmp_path: Path) -> None:
    """Every key that is there and others, in any order, before and after a compaction."""
    table = KeyedTable(tmp_path / "t")
    for turn in range(6):
        table.insert(["eu", "us", "ap"][turn % 3], turn, range(turn * 100, turn * 100 + 100))
        table.commit({(f"region={['eu', 'us', 'ap'][turn % 3]}", file_id(turn)): ([], [turn * 100 + 7])})
        keys = [str(n) for n in (*range(599, -1, -1), 10_000)]
        found = open_index(table.reopen()).locate(pa.array(keys), pa.array(["region=eu"] * len(keys)))
        assert found.cost.keys == len(keys)
        assert found.cost.files_read == 3
        assert found.cost.bytes_read > 0
        pairs = list(zip(found.partition_paths.to_pylist(), found.file_ids.to_pylist(), strict=True))
        assert pairs == [table.truth.get(("", key), (None, None)) for key in keys]


def test_lookups_by_partition(tmp_path: Path) -> None:
    """The same key in two partitions, and a partition that the index does not have."""
    table = KeyedTable(tmp_path / "t", "partitioned_record_index")
    table.insert("eu", 1, [1, 2])
    table.insert("us", 2, [2, 3])
    asked = [("1", "eu"), ("2", "eu"), ("2", "us"), ("1", "us"), ("1", "ap")]
    paths = pa.array([f"region={region}" for _, region in asked])
    found = open_index(table.reopen()).locate(pa.array([key for key, _ in asked]), paths)
    assert found.file_ids.to_pylist() == [file_id(1), file_id(1), file_id(2), None, None]


def test_a_commit_that_does_not_say_its_keys_is_refused(tmp_path: Path) -> None:
    table = KeyedTable(tmp_path / "t")
    instant = table.table.begin()
    context = table.table.write_context(instant)
    (result,) = table._write(context, "region=eu", file_id(1), [1], [])
    object.__setattr__(result, "keys", None)
    with pytest.raises(UnsupportedError, match="does not say which record keys"):
        table.table.commit(instant, [result])


def test_a_key_in_two_places_is_refused(tmp_path: Path) -> None:
    table = KeyedTable(tmp_path / "t")
    with pytest.raises(CorruptDataError, match="in two places"):
        table.commit({("region=eu", file_id(1)): ([1], []), ("region=us", file_id(2)): ([1], [])})


def _golden(kind: str, to: Path) -> HudiTable:
    with tarfile.open(KINDS / f"{kind}.tar.gz") as packed:
        packed.extractall(to, filter="data")
    return HudiTable.open(LocalStorage(to / kind, fsync=False))


@pytest.mark.parametrize(("kind", "index"), [("mor_record_index", FORMS[0]), ("cow_record_level", FORMS[1])])
def test_hudis_own_index_is_read(tmp_path: Path, kind: str, index: IndexType) -> None:
    """The record indexes that Hudi Spark 1.2.0 wrote name the file of every row, and nothing else."""
    table = _golden(kind, tmp_path)
    table.state.config = replace(table.config, kind=replace(table.config.kind, index=index))
    partitions = [MetadataPartition.RECORD_INDEX]
    groups = MetadataReader.open(table.storage, partitions, table.timeline).groups[partitions[0]]
    records = RecordIndexGroups(table.storage, groups, table.config.kind.scope.by_partition, 2)
    places = {
        row["key"]: (row["partition_path"], row["file_id"]) for part in records.scan() for row in part.to_pylist()
    }
    expected = {}
    for piece in file_slices(table.storage, table.timeline):
        for key in live_keys(table.storage, piece, table.config.ordering_field, table.timeline).to_pylist():
            expected[key] = (piece.partition_path, piece.file_id)
    assert places == expected
    assert len(expected) == len(json.loads((KINDS / f"{kind}_expected.json").read_text())["rows"])
    for owner in {group.owner for group in groups}:
        own = [group for group in groups if group.owner == owner]
        for group in own:
            numbers = file_group_indices([key.decode() for key, _ in group.entries()], len(own))
            assert set(numbers.tolist()) <= {group.index}


def test_records_have_hudis_bytes(tmp_path: Path) -> None:
    """A record of Hudi's, from its parts and its instant."""
    table = _golden("mor_record_index", tmp_path)
    partitions = [MetadataPartition.RECORD_INDEX]
    groups = MetadataReader.open(table.storage, partitions, table.timeline).groups[partitions[0]]
    seen = {key.decode(): value for group in groups for key, value in group.entries()}
    assert seen["11"] == encode_place(decode_place(seen["11"]), "20261122085156902")
    assert seen["13"] == encode_place(decode_place(seen["13"]), "20261122085214737")


@pytest.mark.parametrize(
    "name", ["0b3a7f0e-5d0c-4f3c-9f7c-6a1e2d3c4b5a-0", "ffffffff-ffff-4fff-bfff-ffffffffffff", "odd-1"]
)
def test_every_file_id_comes_back(name: str) -> None:
    place = FileGroupPlace("region=日/d=1", name)
    assert decode_place(encode_place(place, "20240101000000000")) == place


def test_records_that_hudi_spark_compacted_are_read() -> None:
    """Its compaction puts the name of the base file into a meta field (measured)."""
    place = FileGroupPlace("region=eu", "ffffffff-ffff-4fff-bfff-ffffffffffff-0")
    value, name = encode_place(place, "20240101000000000"), b"record-index-0000-0_6-390-685_20261122215745217.hfile"
    assert decode_place(bytes(4) + b"\x02" + long_bytes(len(name)) + name + value[5:]) == place


@pytest.mark.parametrize("owner", ["region=ap", "a-b_c/d e=日", ""])
def test_names_of_file_groups(owner: str) -> None:
    """``region=ap`` as Hudi Spark names it; others there and back."""
    name = file_group_id(MetadataPartition.RECORD_INDEX, 3, owner)
    assert parse_file_group_id(MetadataPartition.RECORD_INDEX, name) == (owner, 3)
    assert owner != "region=ap" or name == "record-index-region%3Dap-0003-0"


def test_a_partition_with_a_dot_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="no file id may have a dot"):
        file_group_id(MetadataPartition.RECORD_INDEX, 0, "v=1.5")


def test_hudi_rs_reads_the_table(tmp_path: Path) -> None:
    table = KeyedTable(tmp_path / "t")
    for turn in range(6):
        table.insert(["eu", "us", "ap"][turn % 3], turn, range(turn * 10, turn * 10 + 10))
        table.commit({(f"region={['eu', 'us', 'ap'][turn % 3]}", file_id(turn)): ([], [turn * 10])})
    ids = sorted(hudi_rs.snapshot(table.path).column("id").to_pylist())
    assert ids == sorted(int(key) for _, key in table.truth)


def test_updates_in_a_log_file_change_no_key(tmp_path: Path) -> None:
    """A writer that does not look rows up (a schema change) may write rows anew."""
    table = KeyedTable(tmp_path / "t")
    table.insert("eu", 1, [1, 2])
    instant = table.table.begin()
    context = replace(table.table.write_context(instant), states_keys=True)
    rows = {"id": [2], "name": ["new"], "region": ["eu"], "ts": [9]}
    upserts = pa.table({RECORD_KEY_FIELD: ["2"], **rows})
    group = FileGroupWrite("region=eu", file_id(1), upserts=upserts)
    table.table.commit(instant, LogWriter(context).write(table.storage, group))
    _check(table)
