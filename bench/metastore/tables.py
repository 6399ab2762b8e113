"""The table that both metastores hold: 1,000 partitions a day."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from hive_metastore import ttypes

from embedded.hive_client import hive_client
from hudilake.clock import monotonic_s

DATABASE, TABLE = "bench", "orders"
A_DAY = 1000
#: Partitions of one call, as HiveSync sends them.
BATCH = 1000
_COLUMNS = 12
_FORMAT = (
    "org.apache.hudi.hadoop.HoodieParquetInputFormat",
    "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
    "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
)
_KEYS = ("day", "part")


def values_of(number: int) -> tuple[str, str]:
    """The values of a partition by its number."""
    return f"d{number // A_DAY:05d}", f"p{number % A_DAY:04d}"


def one_hit(partitions: int) -> str:
    """A condition that one partition in the middle fulfils."""
    day, part = values_of(partitions // 2)
    return f'day = "{day}" and part = "{part}"'


def one_day(partitions: int) -> str:
    """A condition that 1,000 partitions fulfil."""
    return f'day = "{values_of(partitions // 2)[0]}"'


def every_day() -> str:
    """A condition that all partitions fulfil."""
    return 'day >= "d00000"'


def create(host: str, port: int, name: str = TABLE) -> None:
    """The database, if there is none, and an empty table."""
    keys = [ttypes.FieldSchema(key, "string", None) for key in _KEYS]
    table = ttypes.Table(name, DATABASE, "bench", 0, 0, 0, _storage(f"/{name}"), keys, {"EXTERNAL": "TRUE"})
    table.tableType = "EXTERNAL_TABLE"
    with hive_client(host, port) as client:
        if DATABASE not in client.get_all_databases():
            client.create_database(ttypes.Database(DATABASE, None, f"file:/nowhere/{DATABASE}", {}))
        client.create_table(table)


def load(host: str, port: int, name: str, numbers: Sequence[int], clients: int = 1) -> float:
    """Add partitions over some connections; returns the seconds."""
    parts = [numbers[start : start + BATCH] for start in range(0, len(numbers), BATCH)]
    begin = monotonic_s()
    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(lambda part: _add(host, port, name, part), parts))
    return monotonic_s() - begin


def _add(host: str, port: int, name: str, numbers: Sequence[int]) -> None:
    request = ttypes.AddPartitionsRequest(DATABASE, name, list(_partitions(name, numbers)), True, False)
    with hive_client(host, port, timeout_s=600) as client:
        client.add_partitions_req(request)


def _partitions(name: str, numbers: Sequence[int]) -> Iterator[Any]:
    for number in numbers:
        values = values_of(number)
        place = "/".join(f"{key}={value}" for key, value in zip(_KEYS, values, strict=True))
        yield ttypes.Partition(list(values), DATABASE, name, 0, 0, _storage(f"/{name}/{place}"), {})


def _storage(place: str) -> Any:  # noqa: ANN401 - generated classes have no types
    columns = [ttypes.FieldSchema(f"column_{number}", "string", None) for number in range(_COLUMNS)]
    serde = ttypes.SerDeInfo(None, _FORMAT[2], {"serialization.format": "1"})
    where = f"file:/nowhere/{DATABASE}{place}"
    return ttypes.StorageDescriptor(columns, where, _FORMAT[0], _FORMAT[1], False, -1, serde, [], [], {})
