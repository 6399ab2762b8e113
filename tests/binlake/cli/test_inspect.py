import io
from pathlib import Path

import pyarrow as pa
import pytest
from rich.console import Console

from binlake.cli.commands.reads.inspect import Inspection, print_inspection
from binlake.settings import Settings
from hudilake.errors import ConfigError
from hudilake.format.definition.config import TableConfig
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.paths import GOLDEN

TABLE = GOLDEN / "tbl_hudi120"


def shown(found: Inspection, instants: int = 20, slices: int = 50) -> str:
    target = Console(file=io.StringIO(), width=200, color_system=None)
    print_inspection(found, target, instants=instants, slices=slices)
    assert isinstance(target.file, io.StringIO)
    return target.file.getvalue()


def test_a_table_that_hudi_wrote_is_shown() -> None:
    text = shown(Inspection.of(str(TABLE), None))
    assert str(TABLE) in text
    assert "region=eu/dt=2024-01-01" in text
    assert "deltacommit" in text
    assert "metadata table: bloom_filters, column_stats, files, partition_stats" in text
    sizes = sum(f.stat().st_size for f in TABLE.rglob("*.parquet") if ".hoodie" not in f.parts)
    assert sizes > 0


def test_limits_keep_the_newest_instants_and_the_largest_slices() -> None:
    found = Inspection.of(str(TABLE), None)
    newest = found.table.timeline.completed()[-1].requested_time
    text = shown(found, instants=1, slices=1)
    assert newest in text
    assert found.table.timeline.completed()[0].requested_time not in text
    largest = max(found.slices, key=lambda s: s.base_size + s.log_size)
    assert largest.file_id in text
    assert sum(s.file_id in text for s in found.slices) == 1


def test_a_table_is_found_through_the_settings(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("_binlake_order", pa.int64())])
    config = TableConfig("orders", ("id",), "_binlake_order", 4, database="shop")
    HudiTable.create(open_storage(str(tmp_path)).sub("raw/shop.orders"), config, schema)
    text = f"name: s\nlake: {{uri: 'file://{tmp_path}'}}\nkafka: {{bootstrap_servers: 'h:9092', topics: [a]}}\n"
    settings = Settings.parse(text + "tables: {path: 'raw/{database}.{table}'}")
    for name in ("shop.orders", "raw/shop.orders"):
        printed = shown(Inspection.of(name, settings))
        assert "shop.orders" in printed
        assert "4 buckets" in printed
        assert "0 file slices" in printed


@pytest.mark.parametrize("name", ["/no/such/dir", "no.such"])
def test_no_table(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        Inspection.of(name, None)
    with pytest.raises(ConfigError, match="no Hudi table"):
        Inspection.of(str(tmp_path), None)
