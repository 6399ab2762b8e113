"""Partitions over a real socket, with the generated client; their bytes are those of the C encoder."""

from __future__ import annotations

import pytest
from hive_metastore import ttypes
from hypothesis import given
from hypothesis import strategies as st

from lakemetastore.hive import to_thrift
from lakemetastore.hive.generated import Struct
from lakemetastore.hive.message import encode
from lakemetastore.hive.partition_bytes import PartitionEncoder
from lakemetastore.model import Column, Partition, SerDe, SortColumn, Storage, Table
from tests.lakemetastore.hive.clients import client
from tests.lakemetastore.hive.hive_server import HiveServer
from tests.lakemetastore.hive.samples import DATABASE, filled, partition, storage

_TEXT = st.text(max_size=12)
_MAPS = st.dictionaries(_TEXT, _TEXT, max_size=3)
_INT32 = st.integers(-(2**31), 2**31 - 1)
_STORAGES = st.builds(
    Storage,
    columns=st.lists(st.builds(Column, _TEXT, _TEXT, st.none() | _TEXT), max_size=3).map(tuple),
    input_format=st.none() | _TEXT,
    output_format=st.none() | _TEXT,
    compressed=st.booleans(),
    buckets=_INT32,
    serde=st.builds(SerDe, st.none() | _TEXT, st.none() | _TEXT, _MAPS),
    bucket_columns=st.lists(_TEXT, max_size=2).map(tuple),
    sort_columns=st.lists(st.builds(SortColumn, _TEXT, st.integers(0, 1)), max_size=2).map(tuple),
    parameters=_MAPS,
    stored_as_sub_directories=st.booleans(),
)
_PARTITIONS = st.builds(
    Partition,
    values=st.lists(_TEXT, max_size=3).map(tuple),
    storage=_STORAGES,
    location=st.none() | _TEXT,
    parameters=_MAPS,
    created=_INT32,
    last_access=_INT32,
)


@pytest.fixture
def c(server: HiveServer) -> Struct:
    with client(server.address) as connected:
        filled(connected)
        yield connected


@given(_PARTITIONS, st.lists(_PARTITIONS, max_size=3))
def test_bytes_are_those_of_the_c_encoder(one: Partition, others: list[Partition]) -> None:
    table = Table("db", "täble", Storage())
    encoder = PartitionEncoder(table)
    for p in (one, *others, one):
        assert encoder.encode(p) == encode(to_thrift.partition(table, p))


def names(partitions: list[Struct]) -> list[str]:
    return [f"dt={p.values[0]}/hour={p.values[1]}" for p in partitions]


ALL = ["dt=d0/hour=0", "dt=d0/hour=1", "dt=d1/hour=2", "dt=d1/hour=3", "dt=d2/hour=4", "dt=d2/hour=5"]


def test_one_partition(c: Struct) -> None:
    got = c.get_partition(DATABASE, "orders", ["d1", "3"])
    assert (got.values, got.dbName, got.tableName, got.catName) == (["d1", "3"], "sales", "orders", "hive")
    assert got.parameters["n"] == "3"
    assert got.sd.location.endswith("/sales.db/orders/dt=d1/hour=3")
    assert got.sd.cols == storage().cols
    assert c.get_partition_with_auth(DATABASE, "orders", ["d1", "3"], "ann", []) == got
    assert c.get_partition_by_name(DATABASE, "orders", "dt=d1/hour=3") == got
    request = ttypes.GetPartitionRequest("hive", DATABASE, "orders", ["d1", "3"])
    assert c.get_partition_req(request).partition == got
    with pytest.raises(ttypes.NoSuchObjectException):
        c.get_partition(DATABASE, "orders", ["d9", "3"])
    with pytest.raises(ttypes.NoSuchObjectException, match=r"hive.sales.nope table not found"):
        c.get_partitions(DATABASE, "nope", -1)


def test_all_partitions(c: Struct) -> None:
    got = c.get_partitions(DATABASE, "orders", -1)
    assert names(got) == c.get_partition_names(DATABASE, "orders", -1) == ALL
    assert c.get_partitions(DATABASE, "orders", 2) == got[:2]
    assert c.get_partition_names(DATABASE, "orders", 2) == ALL[:2]
    assert c.get_partitions_with_auth(DATABASE, "orders", 100, "ann", []) == got
    assert c.get_partitions_req(ttypes.PartitionsRequest("hive", DATABASE, "orders", 3)).partitions == got[:3]
    (spec,) = c.get_partitions_pspec(DATABASE, "orders", -1)
    assert spec.partitionList.partitions == got


def test_partitions_by_values(c: Struct) -> None:
    got = c.get_partitions(DATABASE, "orders", -1)
    assert c.get_partitions_ps(DATABASE, "orders", ["d1"], -1) == got[2:4]
    assert c.get_partitions_ps_with_auth(DATABASE, "orders", ["", "4"], -1, "ann", []) == got[4:5]
    request = ttypes.GetPartitionsPsWithAuthRequest("hive", DATABASE, "orders", ["d1", "2"], -1)
    assert c.get_partitions_ps_with_auth_req(request).partitions == got[2:3]
    assert c.get_partition_names_ps(DATABASE, "orders", ["d2"], 1) == ALL[4:5]
    asked = ttypes.GetPartitionNamesPsRequest("hive", DATABASE, "orders", ["d2"])
    assert c.get_partition_names_ps_req(asked).names == ALL[4:]
    wanted = [ALL[5], "nope", ALL[0], ALL[5]]
    assert c.get_partitions_by_names(DATABASE, "orders", wanted) == [got[0], got[5]]
    named = ttypes.GetPartitionsByNamesRequest(DATABASE, "orders", wanted)
    assert c.get_partitions_by_names_req(named).partitions == [got[0], got[5]]


def test_partitions_by_filter(c: Struct) -> None:
    condition = 'dt = "d1" or (hour > 3 and dt = "d2")'
    assert names(c.get_partitions_by_filter(DATABASE, "orders", condition, -1)) == ALL[2:]
    assert names(c.get_partitions_by_filter(DATABASE, "orders", condition, 1)) == ALL[2:3]
    assert c.get_num_partitions_by_filter(DATABASE, "orders", condition) == 4
    (spec,) = c.get_part_specs_by_filter(DATABASE, "orders", "hour = 0", -1)
    assert names(spec.partitionList.partitions) == ALL[:1]
    with pytest.raises(ttypes.MetaException, match="Error parsing partition filter"):
        c.get_partitions_by_filter(DATABASE, "orders", "dt ===", -1)


def test_values_of_keys(c: Struct) -> None:
    hour = ttypes.FieldSchema("hour", "int", None)
    day = ttypes.FieldSchema("dt", "string", None)

    def rows(**fields: Struct) -> list[list[str]]:
        answered = c.get_partition_values(ttypes.PartitionValuesRequest(DATABASE, "orders", **fields))
        return [row.row for row in answered.partitionValues]

    assert rows(partitionKeys=[day]) == [["d0"], ["d1"], ["d2"]]
    assert rows(partitionKeys=[day], applyDistinct=False, maxParts=3) == [["d0"], ["d0"], ["d1"]]
    assert rows(partitionKeys=[day, hour], partitionOrder=[hour], ascending=False, maxParts=1) == [["d2", "5"]]
    assert rows(partitionKeys=[hour], filter="dt = 'd1'") == [["2"], ["3"]]
    with pytest.raises(ttypes.MetaException, match="nope is no partition key"):
        rows(partitionKeys=[ttypes.FieldSchema("nope", "int", None)])


def test_names_of_partitions(c: Struct) -> None:
    assert c.partition_name_to_vals("dt=a%2Fb/hour=1") == ["a/b", "1"]
    assert c.partition_name_to_spec("dt=a/hour=1") == {"dt": "a", "hour": "1"}
    assert c.partition_name_to_spec("a%20b=x%2Fy/junk/c=2") == {"a b": "x/y", "c": "2"}
    assert c.partition_name_to_vals("") == []


def test_partitions_are_added(c: Struct) -> None:
    assert c.add_partition(partition("d7", "1")).values == ["d7", "1"]
    with pytest.raises(ttypes.AlreadyExistsException):
        c.add_partition_with_environment_context(partition("d7", "1"), None)
    with pytest.raises(ttypes.AlreadyExistsException):
        c.add_partitions([partition("d8", "1"), partition("d7", "1")])
    assert c.get_partition_names_ps(DATABASE, "orders", ["d8"], -1) == []
    both = [partition("d8", "1"), partition("d7", "1")]
    added = c.add_partitions_req(ttypes.AddPartitionsRequest(DATABASE, "orders", both, True))
    assert names(added.partitions) == ["dt=d8/hour=1"]
    quiet = ttypes.AddPartitionsRequest(DATABASE, "orders", [partition("d8", "2")], False, False)
    assert c.add_partitions_req(quiet).partitions is None
    assert c.append_partition(DATABASE, "orders", ["d9", "1"]).sd.location.endswith("/dt=d9/hour=1")
    assert c.append_partition_by_name(DATABASE, "orders", "dt=d9/hour=2").values == ["d9", "2"]
    assert c.add_partitions([]) == 0
    assert c.get_num_partitions_by_filter(DATABASE, "orders", "") == 11


def test_partitions_are_added_as_specs(c: Struct) -> None:
    shared = ttypes.PartitionSpecWithSharedSD(
        [
            ttypes.PartitionWithoutSD(["e1", "1"], 0, 0, "/x", {"p": "1"}),
            ttypes.PartitionWithoutSD(["e1", "2"], relativePath="/y"),
        ],
        storage("file:/root"),
    )
    listed = ttypes.PartitionListComposingSpec([partition("e2", "1")])
    specs = [
        ttypes.PartitionSpec(DATABASE, "orders", "file:/root", sharedSDPartitionSpec=shared),
        ttypes.PartitionSpec(DATABASE, "orders", partitionList=listed),
    ]
    assert c.add_partitions_pspec(specs) == 3
    got = c.get_partition(DATABASE, "orders", ["e1", "1"])
    assert (got.sd.location, got.parameters["p"], got.sd.cols) == ("file:/root/x", "1", storage().cols)


def test_partitions_are_altered_and_renamed(c: Struct) -> None:
    new = c.get_partition(DATABASE, "orders", ["d0", "0"])
    new.parameters["n"] = "new"
    c.alter_partition(DATABASE, "orders", new)
    assert c.get_partition(DATABASE, "orders", ["d0", "0"]).parameters["n"] == "new"
    new.parameters["n"] = "newer"
    c.alter_partitions_with_environment_context(DATABASE, "orders", [new], None)
    assert c.get_partitions(DATABASE, "orders", 1)[0].parameters["n"] == "newer"
    c.alter_partitions_req(ttypes.AlterPartitionsRequest("hive", DATABASE, "orders", [new]))
    new.values = ["d0", "9"]
    c.rename_partition(DATABASE, "orders", ["d0", "0"], new)
    assert c.get_partition_names_ps(DATABASE, "orders", ["d0"], -1) == ["dt=d0/hour=1", "dt=d0/hour=9"]
    new.values = ["d0", "8"]
    c.rename_partition_req(ttypes.RenamePartitionRequest("hive", DATABASE, "orders", ["d0", "9"], new))
    assert c.get_partition(DATABASE, "orders", ["d0", "8"]).parameters["n"] == "newer"
    with pytest.raises(ttypes.InvalidOperationException):
        c.alter_partition(DATABASE, "orders", partition("zz", "1"))


def test_partitions_are_dropped(c: Struct) -> None:
    assert c.drop_partition(DATABASE, "orders", ["d0", "0"], False)
    assert c.drop_partition_by_name(DATABASE, "orders", "dt=d0/hour=1", False)
    with pytest.raises(ttypes.NoSuchObjectException):
        c.drop_partition_with_environment_context(DATABASE, "orders", ["d0", "0"], False, None)

    def drop(*wanted: str, **fields: Struct) -> Struct:
        parts = ttypes.RequestPartsSpec(names=list(wanted))
        return c.drop_partitions_req(ttypes.DropPartitionsRequest(DATABASE, "orders", parts, False, **fields))

    assert names(drop(ALL[2], ALL[3]).partitions) == ALL[2:4]
    assert drop(ALL[2]).partitions == []
    with pytest.raises(ttypes.NoSuchObjectException):
        drop(ALL[2], ALL[4], ifExists=False)
    assert drop(ALL[4], needResult=False).partitions is None
    assert c.get_partition_names(DATABASE, "orders", -1) == ALL[5:]
    expression = ttypes.RequestPartsSpec(exprs=[ttypes.DropPartitionsExpr(b"kryo")])
    with pytest.raises(ttypes.MetaException, match="dropped by their names"):
        c.drop_partitions_req(ttypes.DropPartitionsRequest(DATABASE, "orders", expression))
