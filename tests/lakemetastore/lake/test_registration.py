"""Tables of a lake in the catalog: what a registration makes and changes, and names that follow the source."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakemetastore.catalog.catalog import Catalog
from lakemetastore.errors import AlreadyExistsError, NoSuchObjectError
from lakemetastore.lake.lake_tables import LakeTables
from lakemetastore.lake.naming import NamedTable
from lakemetastore.lake.registration import Registered, Registration
from lakemetastore.log.stores.opening import open_store
from tests.hudilake import lake
from tests.lakemetastore.lake.hudi_tables import TABLES, add, made


@pytest.fixture
def registration(tmp_path: Path) -> Registration:
    store = open_store(str(tmp_path / "store"))
    return Registration(Catalog(store), LakeTables(store))


def _table(path: Path, name: str = "t") -> NamedTable:
    return NamedTable(lake.storage_at(path), "shop", name)


def test_a_registered_table_follows_its_partitions(tmp_path: Path, registration: Registration) -> None:
    table = made(tmp_path / "t", partitions=("day=d1",))
    first = registration.register(_table(tmp_path / "t"))
    assert first == Registered(("shop.t", "shop.t_ro", "shop.t_rt"), (), 3, 0)
    assert not registration.register(_table(tmp_path / "t")).changed
    add(table, "day=d2")
    assert registration.register(_table(tmp_path / "t")) == Registered(added=3)
    entry = registration.catalog.tables.get("shop", "T_rt")
    assert entry.partitions.names() == ["day=d1", "day=d2"]
    assert entry.table.kind == "EXTERNAL_TABLE"


@pytest.mark.parametrize("name", TABLES)
def test_a_second_registration_changes_nothing(name: str, tmp_path: Path, registration: Registration) -> None:
    TABLES[name](tmp_path / name)
    assert registration.register(_table(tmp_path / name)).created
    assert registration.register(_table(tmp_path / name)) == Registered()


def test_a_partition_without_rows_is_dropped(tmp_path: Path, registration: Registration) -> None:
    table = made(tmp_path / "t", partitions=("day=d1", "day=d2"), kind="copy_on_write")
    registration.register(_table(tmp_path / "t"))
    gone = [piece.file_id for piece in table.file_slices() if piece.partition_path == "day=d1"]
    table.commit(table.begin_replace(), [], replaced={"day=d1": tuple(gone)})
    assert registration.register(_table(tmp_path / "t")) == Registered(dropped=1)
    assert registration.catalog.tables.get("shop", "t").partitions.names() == ["day=d2"]


def test_a_new_column_reaches_the_table_and_its_partitions(tmp_path: Path, registration: Registration) -> None:
    table = made(tmp_path / "t", partitions=("day=d1",))
    registration.register(_table(tmp_path / "t"))
    wider = table.schema.append(pa.field("colour", pa.string()))
    table.commit(table.begin(), [], schema=wider)
    assert registration.register(_table(tmp_path / "t")).altered == ("shop.t", "shop.t_ro", "shop.t_rt")
    entry = registration.catalog.tables.get("shop", "t_ro")
    assert entry.table.storage.columns[-1].name == "colour"
    assert entry.partitions[0].storage.columns[-1].name == "colour"


def test_a_change_that_hive_refuses_replaces_the_table_in_one_step(tmp_path: Path, registration: Registration) -> None:
    table = made(tmp_path / "t", partitions=("day=d1",))
    registration.register(_table(tmp_path / "t"))
    before = registration.catalog.tables.get("shop", "t").id
    first = pa.schema([pa.field("new", pa.string()), *table.schema])
    table.commit(table.begin(), [], schema=first)
    assert registration.register(_table(tmp_path / "t")).altered == ("shop.t", "shop.t_ro", "shop.t_rt")
    after = registration.catalog.tables.get("shop", "t")
    assert (after.id != before, after.partitions.names()) == (True, ["day=d1"])
    assert registration.catalog.tables.names("shop") == ["t", "t_ro", "t_rt"]
    assert not registration.register(_table(tmp_path / "t")).changed


def test_a_swap_at_the_source_is_one_version_of_the_names(tmp_path: Path, registration: Registration) -> None:
    for name in ("a", "b"):
        made(tmp_path / name, partitions=(f"day={name}",))
        registration.register(_table(tmp_path / name, name))
    swapped = [_table(tmp_path / "a", "b"), _table(tmp_path / "b", "a")]
    names = registration.catalog.tables._logs.names
    before = names.state().version
    assert registration.rename(swapped) == 6
    assert names.state().version == before + 1
    for suffix in ("", "_ro", "_rt"):
        assert registration.catalog.tables.get("shop", f"a{suffix}").partitions.names() == ["day=b"]
    assert (registration.rename(swapped), registration.register(swapped[0])) == (0, Registered())


def test_a_swap_that_another_process_made_is_not_made_twice(tmp_path: Path, registration: Registration) -> None:
    for name in ("a", "b"):
        made(tmp_path / name, partitions=(f"day={name}",))
        registration.register(_table(tmp_path / name, name))
    ids = {("shop", name): registration.catalog.tables.get("shop", name).id for name in ("a", "b")}
    moves = {("shop", "a"): ("shop", "b"), ("shop", "b"): ("shop", "a")}
    registration.catalog.tables.swap_names(moves, ids)
    with pytest.raises(NoSuchObjectError):
        registration.catalog.tables.swap_names(moves, ids)


def test_a_name_that_another_place_has_is_refused(tmp_path: Path, registration: Registration) -> None:
    made(tmp_path / "a")
    made(tmp_path / "b")
    registration.register(_table(tmp_path / "a"))
    with pytest.raises(AlreadyExistsError, match="of another place"):
        registration.register(_table(tmp_path / "b"))


def test_a_table_that_is_no_more_is_dropped_with_its_state(tmp_path: Path, registration: Registration) -> None:
    made(tmp_path / "t", partitions=("day=d1",))
    registration.register(_table(tmp_path / "t"))
    (state,) = registration.lakes.tables()
    assert registration.drop(state) == ["shop.t", "shop.t_ro", "shop.t_rt"]
    assert (registration.catalog.tables.names("shop"), list(registration.lakes.tables())) == ([], [])
    assert (tmp_path / "t" / ".hoodie").exists()
