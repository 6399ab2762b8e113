"""Of a large base file only the columns asked for are fetched."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hudilake.errors import CorruptDataError
from hudilake.format.definition.schema import RECORD_KEY_FIELD, avro_schema
from hudilake.format.files.base_file import RANGED_READ_BYTES, encode_base_file, read_base_file
from hudilake.storage import open_storage
from hudilake.storage.base import StorageNotFoundError
from tests.hudilake.read.lakes import Counting

ROWS = 150_000


class Measuring(Counting):
    """Adds up the bytes that ranges fetch."""

    fetched = 0

    def read_range(self, path: str, start: int, length: int) -> bytes:
        self.fetched += length
        return super().read_range(path, start, length)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pa.Table]:
    chance = np.random.default_rng(1)
    own = {f"c{n}": pa.array(chance.integers(0, 1 << 60, ROWS)) for n in range(9)}
    table = pa.table({RECORD_KEY_FIELD: pa.array(np.sort(np.arange(ROWS).astype(str))), **own})
    path = tmp_path_factory.mktemp("large")
    (path / "x.parquet").write_bytes(encode_base_file(table, avro_schema(table.schema, "t", with_meta=False)))
    assert (path / "x.parquet").stat().st_size > RANGED_READ_BYTES
    return path, table


def test_the_same_columns_with_a_fraction_of_the_bytes(stored: tuple[Path, pa.Table]) -> None:
    path, table = stored
    size = (path / "x.parquet").stat().st_size
    storage = Measuring(open_storage(str(path)))
    wanted = ["c3", RECORD_KEY_FIELD, "not there"]
    assert read_base_file(storage, "x.parquet", wanted, size) == table.select(["c3", RECORD_KEY_FIELD])
    assert {method for method, _ in storage.calls} == {"read_range"}
    assert storage.fetched < size / 4
    storage.calls.clear()
    assert read_base_file(storage, "x.parquet", None, size) == table
    assert read_base_file(storage, "x.parquet", wanted[:1]) == table.select(["c3"])
    assert [method for method, _ in storage.calls] == ["read", "read"]


def test_a_flipped_bit_in_a_column_that_is_read(stored: tuple[Path, pa.Table], tmp_path: Path) -> None:
    data = (stored[0] / "x.parquet").read_bytes()
    at = 2 * len(data) // 3
    (tmp_path / "x.parquet").write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    storage = open_storage(str(tmp_path))
    outcomes = []
    for name in stored[1].column_names:
        try:
            outcomes.append(read_base_file(storage, "x.parquet", [name], len(data)) == stored[1].select([name]))
        except CorruptDataError as error:
            outcomes.append(error.where["path"] == "x.parquet" and "corrupt")
    assert sorted(map(str, outcomes)) == ["True"] * 9 + ["corrupt"]


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(StorageNotFoundError):
        read_base_file(open_storage(str(tmp_path)), "x.parquet", ["c3"], RANGED_READ_BYTES)
