"""Lakes that streams write have their names from binlake; without it they are refused, and other lakes are named by
their paths."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudilake.errors import ConfigError
from hudilake.storage import open_storage
from hudilake.table.directory import BrokenTable
from lakemetastore.lake import naming
from lakemetastore.lake.named import NamedLake
from tests.lakemetastore.lake.hudi_tables import made


@pytest.fixture
def without_binlake(monkeypatch: pytest.MonkeyPatch) -> None:
    """No package gives a naming, as where binlake is not installed."""
    monkeypatch.setattr(naming, "entry_points", lambda **_: ())


def _names(place: Path) -> set[str]:
    tables = NamedLake.of_root(open_storage(str(place))).tables()
    return {table.name if isinstance(table, BrokenTable) else table.full_name for table in tables}


def test_binlake_gives_its_naming(tmp_path: Path) -> None:
    assert type(naming.naming_of_lake(open_storage(str(tmp_path)))).__name__ == "LakeNaming"


@pytest.mark.usefixtures("without_binlake")
def test_tables_of_other_writers_are_named_by_their_paths(tmp_path: Path) -> None:
    made(tmp_path / "shop" / "orders")
    made(tmp_path / "views")
    assert _names(tmp_path) == {"shop.orders", "default.views"}


@pytest.mark.usefixtures("without_binlake")
def test_a_lake_with_the_state_of_a_stream_is_refused(tmp_path: Path) -> None:
    made(tmp_path / "shop" / "orders")
    lake = NamedLake.of_root(open_storage(str(tmp_path)))
    (tmp_path / ".binlake" / "main").mkdir(parents=True)
    with pytest.raises(ConfigError, match="pip install binlake"):
        lake.tables()
    with pytest.raises(ConfigError, match="pip install binlake"):
        NamedLake.of_root(open_storage(str(tmp_path)))


@pytest.mark.usefixtures("without_binlake")
def test_the_settings_of_a_stream_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="pip install binlake"):
        NamedLake.of_settings(str(tmp_path / "stream.yaml"))


@pytest.mark.usefixtures("without_binlake")
def test_a_table_that_a_stream_wrote_is_refused_wherever_the_stream_keeps_its_state(tmp_path: Path) -> None:
    for name, key in {"orders": "binlake.stream", "items": "other.stream"}.items():
        table = made(tmp_path / "shop" / name)
        table.commit(table.begin(), [], {key: "main"})
    lake = NamedLake.of_root(open_storage(str(tmp_path)))
    broken = [table for table in lake.tables() if isinstance(table, BrokenTable)]
    assert [(table.name, table.error.do_next) for table in broken] == [("shop/orders", "pip install binlake")]
    assert _names(tmp_path) == {"shop/orders", "shop.items"}
