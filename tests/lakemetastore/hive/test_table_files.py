"""Which files go when a client drops a table or a partition and wants its data deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hive_metastore import ttypes

from hudilake.storage import Storage, open_storage
from lakemetastore.catalog.catalog import Catalog
from lakemetastore.hive.generated import Struct
from lakemetastore.hive.server import listen
from lakemetastore.hive.table_files import TableFiles
from lakemetastore.log.stores.base import LogStore
from tests.lakemetastore.hive.clients import client
from tests.lakemetastore.hive.hive_server import HiveServer
from tests.lakemetastore.hive.samples import DATABASE, filled, partition, table

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


def renamed(c: Struct, name: str, to: str) -> Struct:
    """As Spark renames a table: with the ``path`` of its new place, and the location that it has."""
    new = c.get_table(DATABASE, name)
    new.tableName = to
    c.alter_table_with_environment_context(DATABASE, name, new, None)
    return c.get_table(DATABASE, to)


def put(location: str) -> Path:
    path = Path(location.removeprefix("file:")) / "data.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"rows")
    return path


def allowing(tmp_path: Path, *, hudi: bool = False) -> TableFiles:
    warehouse, elsewhere = f"file:{tmp_path}/warehouse", f"file:{tmp_path}/elsewhere"
    return TableFiles(open_storage, delete=True, roots=(warehouse,), hudi=hudi, locations=(elsewhere,))


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
    c = connect(TableFiles(open_storage, roots=(f"file:{tmp_path}/warehouse",)))
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
    for place in (f"file:{tmp_path}/elsewhere", f"file:{tmp_path}/warehouse/../elsewhere/"):
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


def test_a_partition_that_is_renamed_takes_its_files_along_and_a_new_one_of_the_old_value_is_empty(
    connect: Connect, tmp_path: Path
) -> None:
    c = connect(allowing(tmp_path))
    filled(c)
    old = c.get_partition(DATABASE, "orders", ["d0", "0"])
    file = put(old.sd.location)
    new = c.get_partition(DATABASE, "orders", ["d0", "0"])
    new.values = ["d0", "9"]
    c.rename_partition(DATABASE, "orders", ["d0", "0"], new)
    c.add_partition(partition("d0", "0"))
    moved = c.get_partition(DATABASE, "orders", ["d0", "9"]).sd.location
    assert moved != c.get_partition(DATABASE, "orders", ["d0", "0"]).sd.location == old.sd.location
    assert (file.exists(), put(moved).exists()) == (False, True)
    c.drop_partition(DATABASE, "orders", ["d0", "0"], True)
    assert (Path(moved.removeprefix("file:")) / file.name).exists()


def test_a_managed_table_that_is_renamed_takes_its_files_along(connect: Connect, tmp_path: Path) -> None:
    c = connect(allowing(tmp_path))
    filled(c)
    file = put(c.get_partition(DATABASE, "orders", ["d0", "0"]).sd.location)
    place = renamed(c, "orders", "bills").sd.location
    part = c.get_partition(DATABASE, "bills", ["d0", "0"]).sd.location
    assert place == f"file:{tmp_path}/warehouse/sales.db/bills"
    assert part.startswith(f"{place}/")
    assert (file.exists(), (Path(part.removeprefix("file:")) / file.name).exists()) == (False, True)


def test_a_rename_that_is_refused_leaves_the_files(connect: Connect, tmp_path: Path) -> None:
    c = connect(allowing(tmp_path))
    filled(c)
    file = put(c.get_table(DATABASE, "orders").sd.location)
    junk = put(f"{tmp_path}/warehouse/sales.db/bills")
    with pytest.raises(ttypes.InvalidOperationException, match="already exists"):
        renamed(c, "orders", "bills")
    wrong = c.get_table(DATABASE, "orders")
    wrong.tableName, wrong.partitionKeys = "others", []
    with pytest.raises(ttypes.InvalidOperationException, match="partition keys can not be changed"):
        c.alter_table(DATABASE, "orders", wrong)
    assert file.exists()
    assert junk.exists()
    assert not (tmp_path / "warehouse/sales.db/others").exists()


def test_a_new_table_has_a_directory_and_a_refused_one_leaves_none(connect: Connect, tmp_path: Path) -> None:
    c = connect(allowing(tmp_path))
    filled(c)
    c.create_table(table("plain", keys=False))
    assert (tmp_path / "warehouse/sales.db/plain").is_dir()
    with pytest.raises(ttypes.AlreadyExistsException):
        c.create_table(table("plain", keys=False, location=f"file:{tmp_path}/warehouse/other"))
    put(f"{tmp_path}/warehouse/file")
    with pytest.raises(ttypes.MetaException, match="not a directory or unable to create one"):
        c.create_table(table("over", location=f"file:{tmp_path}/warehouse/file/data.parquet"))
    assert not (tmp_path / "warehouse/other").exists()


def lake(place: Path) -> Path:
    """A Hudi table, as much as matters here."""
    properties = place / ".hoodie" / "hoodie.properties"
    properties.parent.mkdir(parents=True)
    properties.write_text("hoodie.table.name=t")
    put(f"{place}/day=1")
    return properties


@pytest.mark.parametrize("where", ["lake", "lake/day=1", "", "lake/.hoodie", "db/deeper"])
@pytest.mark.parametrize("hudi", [False, True])
def test_a_managed_table_declared_over_a_hudi_table_never_takes_it_along(
    connect: Connect, tmp_path: Path, where: str, hudi: bool
) -> None:
    c = connect(allowing(tmp_path, hudi=hudi))
    filled(c)
    properties = lake(tmp_path / "warehouse" / "lake")
    inner = lake(tmp_path / "warehouse" / "db" / "deeper" / "and" / "deeper")
    location = f"file:{tmp_path}/warehouse/{where}"
    c.create_table(table("trap", keys=False, location=location))
    put(location)
    with pytest.raises(ttypes.MetaException, match="cannot be dropped with its files"):
        c.drop_table(DATABASE, "trap", True)
    with pytest.raises(ttypes.MetaException, match="cannot be dropped with its files"):
        c.drop_database(DATABASE, True, True)
    with pytest.raises(ttypes.MetaException, match="cannot be truncated"):
        c.truncate_table(DATABASE, "trap", None)
    assert properties.exists()
    assert inner.exists()


def test_a_lake_of_the_service_is_not_touched_whatever_is_in_it(connect: Connect, tmp_path: Path) -> None:
    root = f"file:{tmp_path}/warehouse/lake"
    c = connect(TableFiles(open_storage, delete=True, roots=(f"file:{tmp_path}/warehouse",), lakes=(root,)))
    filled(c)
    for name, location in {"at": root, "below": f"{root}/ledger"}.items():
        file = put(location)
        c.create_table(table(name, keys=False, location=location))
        with pytest.raises(ttypes.MetaException, match="they are in the lake"):
            c.drop_table(DATABASE, name, True)
        assert file.exists()


def test_no_table_or_partition_takes_along_what_another_one_has(connect: Connect, tmp_path: Path) -> None:
    c = connect(allowing(tmp_path))
    filled(c)
    orders = c.get_table(DATABASE, "orders").sd.location
    first = c.get_partition(DATABASE, "orders", ["d0", "0"]).sd.location
    c.add_partition(partition("d0", "shared"))
    same = c.get_partition(DATABASE, "orders", ["d0", "shared"])
    same.sd.location = first
    c.alter_partition(DATABASE, "orders", same)
    c.create_table(table("around", keys=False, location=orders))
    c.create_table(table("inside", keys=False, location=first))
    file = put(first)
    refused = "they belong to"
    drops: tuple[Callable[[], object], ...] = (
        lambda: c.drop_partition(DATABASE, "orders", ["d0", "0"], True),
        lambda: c.drop_partition(DATABASE, "orders", ["d0", "shared"], True),
        lambda: c.drop_table(DATABASE, "orders", True),
        lambda: c.drop_table(DATABASE, "around", True),
        lambda: c.drop_table(DATABASE, "inside", True),
    )
    for drop in drops:
        with pytest.raises(ttypes.MetaException, match=refused):
            drop()
    with pytest.raises(ttypes.InvalidOperationException, match=refused):
        renamed(c, "orders", "bills")
    assert file.exists()


def test_a_partition_at_the_place_of_another_one_is_refused(connect: Connect, tmp_path: Path) -> None:
    c = connect(allowing(tmp_path))
    filled(c)
    moved = c.get_partition(DATABASE, "orders", ["d0", "0"])
    moved.sd.location = f"file:{tmp_path}/warehouse/sales.db/orders/dt=d9/hour=9"
    c.alter_partition(DATABASE, "orders", moved)
    with pytest.raises(ttypes.MetaException, match="is that of the partition dt=d0/hour=0"):
        c.add_partition(partition("d9", "9"))


def test_a_drop_follows_no_link_out_of_the_warehouse(connect: Connect, tmp_path: Path) -> None:
    c = connect(allowing(tmp_path))
    filled(c)
    outside = tmp_path / "elsewhere"
    file = put(f"{outside}/t")
    (tmp_path / "warehouse" / "link").symlink_to(outside)
    (tmp_path / "warehouse" / "here").symlink_to(tmp_path / "warehouse" / "sales.db")
    for name, path in {"out": "link/t", "at": "link", "in": "here/orders"}.items():
        c.create_table(table(name, keys=False, location=f"file:{tmp_path}/warehouse/{path}"))
        put(f"{tmp_path}/warehouse/{path}")
        with pytest.raises(ttypes.MetaException, match="not below the `warehouse`"):
            c.drop_table(DATABASE, name, True)
    assert file.exists()


@pytest.mark.parametrize(
    "location",
    [
        "s3://evil/t",
        "hdfs://10.0.0.1:9/t",
        "http://host/t",
        "file:/etc",
        "/etc",
        "{w}/../t",
        "{w}x/t",
        "{w}/link/t",
        "file:t",
        "t",
        "{w}/%2e%2e/t",
        "file:/../../t",
        "{w}/a\n/../../t",
    ],
)
def test_clients_name_locations_of_the_warehouse_and_the_lakes_only(
    connect: Connect, tmp_path: Path, location: str
) -> None:
    opened: list[str] = []

    def watched(uri: str) -> Storage:
        opened.append(uri)
        return open_storage(uri)

    warehouse = f"file:{tmp_path}/warehouse"
    c = connect(TableFiles(watched, delete=True, roots=(warehouse,)))
    filled(c)
    (tmp_path / "out").mkdir()
    (tmp_path / "warehouse" / "link").symlink_to(tmp_path / "out")
    place = location.format(w=warehouse)
    calls: tuple[Callable[[], object], ...] = (
        lambda: c.create_database(ttypes.Database("e", None, place, {})),
        lambda: c.alter_database(DATABASE, ttypes.Database(DATABASE, None, place, {})),
        lambda: c.create_table(table("t", location=place, parameters={"EXTERNAL": "TRUE"})),
        lambda: c.alter_table(DATABASE, "orders", table(location=place)),
        lambda: c.add_partition(placed("x", place)),
        lambda: c.add_partitions([placed("x", place)]),
        lambda: c.add_partitions_req(ttypes.AddPartitionsRequest(DATABASE, "orders", [placed("x", place)], True)),
        lambda: c.alter_partition(DATABASE, "orders", placed("d0", place)),
        lambda: c.alter_partitions(DATABASE, "orders", [placed("d0", place)]),
    )
    for refused in calls:
        with pytest.raises(ttypes.MetaException, match=r"is not allowed|leads out of|is not absolute") as raised:
            refused()
        assert "\n" not in raised.value.message.replace(place, "")
    assert {uri for uri in opened if not uri.startswith((f"{warehouse}/", warehouse))} == set()
    assert [path.name for path in (tmp_path / "out").iterdir()] == []


def placed(day: str, location: str) -> Struct:
    new = partition(day, "0")
    new.sd.location = location
    return new


def test_a_table_is_emptied_and_partitions_change_their_table(connect: Connect, tmp_path: Path) -> None:
    c = connect(allowing(tmp_path))
    filled(c)
    c.create_table(table("archive"))
    files = [put(c.get_partition(DATABASE, "orders", [f"d{i // 2}", str(i)]).sd.location) for i in range(4)]
    c.truncate_table(DATABASE, "orders", ["dt=d0/hour=0", "dt=nope/hour=0"])
    assert [file.exists() for file in files] == [False, True, True, True]
    moved = c.exchange_partitions({"dt": "d0", "hour": "1"}, DATABASE, "orders", DATABASE, "archive")
    assert [part.values for part in moved] == [["d0", "1"]]
    assert c.get_partition_names(DATABASE, "archive", -1) == ["dt=d0/hour=1"]
    assert (Path(moved[0].sd.location.removeprefix("file:")) / files[1].name).exists()
    assert "dt=d0/hour=1" not in c.get_partition_names(DATABASE, "orders", -1)
    c.truncate_table(DATABASE, "orders", None)
    assert [file.exists() for file in files] == [False] * 4
    c.create_table(table("ext", keys=False, parameters={"EXTERNAL": "TRUE"}))
    file = put(c.get_table(DATABASE, "ext").sd.location)
    with pytest.raises(ttypes.MetaException, match="it is an external table"):
        c.truncate_table(DATABASE, "ext", None)
    assert file.exists()


def test_a_dropped_database_keeps_the_files_of_its_external_tables(connect: Connect, tmp_path: Path) -> None:
    c = connect(allowing(tmp_path))
    filled(c)
    c.create_table(table("ext", keys=False, parameters={"EXTERNAL": "TRUE"}))
    kept, gone = (put(c.get_table(DATABASE, name).sd.location) for name in ("ext", "orders"))
    c.drop_database(DATABASE, True, True)
    assert (kept.exists(), gone.exists()) == (True, False)
    c.create_database(ttypes.Database("empty", None, None, {}))
    junk = put(c.get_database("empty").locationUri)
    c.drop_database("empty", True, False)
    assert not junk.parent.exists()
