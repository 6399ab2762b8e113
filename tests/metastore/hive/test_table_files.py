"""Which files go when a client drops a table or a partition and wants its data deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hive_metastore import ttypes

from pipeline.metastore.catalog.catalog import Catalog
from pipeline.metastore.hive.generated import Struct
from pipeline.metastore.hive.server import listen
from pipeline.metastore.hive.table_files import TableFiles
from pipeline.metastore.stores.base import LogStore
from pipeline.storage import open_storage
from tests.metastore.hive.clients import client
from tests.metastore.hive.hive_server import HiveServer
from tests.metastore.hive.samples import DATABASE, filled, partition, table

Connect = Callable[[TableFiles], Struct]


@pytest.fixture
def connect(store: LogStore, tmp_path: Path) -> Iterator[Connect]:
    ends: list[Callable[[], None]] = []

    def connected(files: TableFiles) -> Struct:
        catalog = Catalog(store, warehouse=f"file:{tmp_path}/warehouse")
        server = HiveServer(catalog, store, listener=listen("127.0.0.1", 0), files=files)
        server.start()
        opened = client(server.address)
        ends.extend([opened.__exit__, lambda: server.stop(drain_seconds=1.0)])
        return opened.__enter__()

    yield connected
    for end in ends:
        end()


def put(location: str) -> Path:
    path = Path(location.removeprefix("file:")) / "data.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"rows")
    return path


def allowing(tmp_path: Path, *, hudi: bool = False) -> TableFiles:
    return TableFiles(open_storage, delete=True, roots=(f"file:{tmp_path}/warehouse",), hudi=hudi)


@pytest.mark.parametrize(
    "fields",
    [{"parameters": {"EXTERNAL": "true"}}, {"parameters": {"EXTERNAL": "TRUE"}, "tableType": "EXTERNAL_TABLE"}],
)
def test_files_of_external_tables_never_go(connect: Connect, tmp_path: Path, fields: Struct) -> None:
    c = connect(allowing(tmp_path, hudi=True))
    filled(c)
    c.create_table(table("ext", location=f"file:{tmp_path}/warehouse/ext", **fields))
    c.add_partition(partition("d", "1", name="ext"))
    file = put(c.get_partition(DATABASE, "ext", ["d", "1"]).sd.location)
    c.drop_partition(DATABASE, "ext", ["d", "1"], True)
    c.drop_table(DATABASE, "ext", True)
    assert file.exists()


def test_a_managed_table_with_files_stays_while_files_may_not_be_deleted(connect: Connect, tmp_path: Path) -> None:
    c = connect(TableFiles(open_storage))
    filled(c)
    got = c.get_partition(DATABASE, "orders", ["d0", "0"])
    c.drop_partition(DATABASE, "orders", ["d0", "1"], True)
    file = put(got.sd.location)
    with pytest.raises(ttypes.MetaException, match="the service deletes no files"):
        c.drop_partition(DATABASE, "orders", ["d0", "0"], True)
    with pytest.raises(ttypes.MetaException, match="the service deletes no files"):
        c.drop_table(DATABASE, "orders", True)
    with pytest.raises(ttypes.MetaException, match="the service deletes no files"):
        c.drop_database(DATABASE, True, True)
    assert c.get_partition(DATABASE, "orders", ["d0", "0"]) == got
    c.drop_table(DATABASE, "orders", False)
    assert file.exists()


def test_files_of_managed_tables_go_below_a_root(connect: Connect, tmp_path: Path) -> None:
    c = connect(allowing(tmp_path))
    filled(c)
    file = put(c.get_partition(DATABASE, "orders", ["d0", "0"]).sd.location)
    other = put(c.get_table(DATABASE, "orders").sd.location)
    parts = ttypes.RequestPartsSpec(names=["dt=d0/hour=0"])
    c.drop_partitions_req(ttypes.DropPartitionsRequest(DATABASE, "orders", parts, True))
    assert (file.exists(), other.exists()) == (False, True)
    c.drop_table(DATABASE, "orders", True)
    assert not other.exists()
    for place in (f"file:{tmp_path}/elsewhere", f"file:{tmp_path}/warehouse/../elsewhere"):
        c.create_table(table("far", location=place))
        kept = put(place)
        with pytest.raises(ttypes.MetaException, match="not below the `warehouse`"):
            c.drop_table(DATABASE, "far", True)
        assert kept.exists()
        c.drop_table(DATABASE, "far", False)


@pytest.mark.parametrize("allowed", [False, True])
def test_files_of_managed_hudi_tables_go_only_if_a_setting_says_so(
    connect: Connect, tmp_path: Path, allowed: bool
) -> None:
    c = connect(allowing(tmp_path, hudi=allowed))
    filled(c)
    c.create_table(table("hudi", parameters={"spark.sql.sources.provider": "hudi"}))
    file = put(c.get_table(DATABASE, "hudi").sd.location)
    if not allowed:
        with pytest.raises(ttypes.MetaException, match="it is a Hudi table"):
            c.drop_table(DATABASE, "hudi", True)
        assert file.exists()
    else:
        c.drop_database(DATABASE, True, True)
        assert not file.exists()


@pytest.mark.parametrize("scheme", ["file:", "file://", ""])
def test_one_place_may_be_spelled_in_several_ways(connect: Connect, tmp_path: Path, scheme: str) -> None:
    c = connect(allowing(tmp_path))
    filled(c)
    c.create_table(table("t", location=f"{scheme}{tmp_path}/warehouse/t"))
    file = put(f"{tmp_path}/warehouse/t")
    c.drop_table(DATABASE, "t", True)
    assert not file.exists()
