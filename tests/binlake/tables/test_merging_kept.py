"""A table keeps the merging that it was created with."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from binlake.decode.changes import SourceTable
from binlake.rows.upsert.target import Target
from binlake.settings.tables import TablesSettings
from binlake.tables.lake import Lake
from hudilake.errors import ConfigError
from hudilake.format.definition.bucketing import SimpleBuckets
from hudilake.format.definition.merging import Merging
from hudilake.storage import open_storage

SOURCE = SourceTable("db", "t")
COLUMNS = pa.schema([("id", pa.int64()), ("n", pa.int64())])
SUM = Merging("aggregate", functions=(("n", "sum"),))


def opened(path: Path, merging: Merging) -> Merging:
    rules = TablesSettings.model_validate({"defaults": {"buckets": 1}}).rules(SOURCE)
    target = Target.new(SOURCE, rules.path, ("id",), SimpleBuckets(rules.buckets), merging=merging)
    table = Lake(open_storage(str(path), {"fsync": "false"})).get_or_create(rules, target, COLUMNS)
    return table.hudi.config.merging


def test_the_engine_is_a_property_of_the_table(tmp_path: Path) -> None:
    assert opened(tmp_path, SUM) == SUM
    assert opened(tmp_path, SUM) == SUM
    assert '"engine":"aggregate"' in (tmp_path / "db/t/.hoodie/hoodie.properties").read_text().replace("\\", "")


@pytest.mark.parametrize(
    ("first", "then", "why"),
    [
        (SUM, Merging("first_row"), "aggregate"),
        (SUM, Merging("aggregate", functions=(("n", "max"),)), "'n': 'sum'"),
        (SUM, Merging(), "aggregate"),
        (Merging(), SUM, "newest"),
        (Merging("first_row"), Merging("partial_update"), "first_row"),
    ],
)
def test_another_one_is_refused(tmp_path: Path, first: Merging, then: Merging, why: str) -> None:
    opened(tmp_path, first)
    with pytest.raises(ConfigError, match=why):
        opened(tmp_path, then)
    assert opened(tmp_path, first) == first
