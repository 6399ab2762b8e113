"""What a start of ``binlake run`` spares: libraries that a stream of a binlog never uses, and looks for garbage."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from binlake.cli.commands.stream.run import rarely_collecting
from tests.binlake.cli.test_imports import HEAVY, modules_of
from tests.binlake.stream.binlog.followed import FollowedDatabase, binlog_server

_SEES_PANDAS = "import sys, pyarrow as pa{before}; pa.array([1, None, 2.5]); print('pandas' in sys.modules)"
_ALONE = "; from binlake.cli.commands.stream.run import pyarrow_alone; pyarrow_alone()"
_FRAME = "; import pyarrow as pa; print(pa.table({'a': [1, 2]}).to_pandas()['a'].sum())"


def said_by(code: str) -> str:
    """What a Python of its own prints."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize(("before", "seen"), [(_ALONE, "False"), ("", "True")], ids=["alone", "control"])
def test_pyarrow_makes_values_without_pandas(before: str, seen: str) -> None:
    assert said_by(_SEES_PANDAS.format(before=before)) == seen


@pytest.mark.parametrize("before", ["pass" + _ALONE, "import pandas" + _ALONE], ids=["asked later", "there before"])
def test_frames_are_made_all_the_same(before: str) -> None:
    assert said_by(before + _FRAME) == "3"


def test_garbage_is_looked_for_as_before_behind_a_start() -> None:
    before = gc.get_threshold()
    with rarely_collecting():
        assert gc.get_threshold() > before
    assert gc.get_threshold() == before


@pytest.mark.parametrize(
    ("before", "heavy"),
    [
        ("", {"numba", "pymysql", "confluent_kafka"}),
        ("import pandas, pyspark", {"numba", "pymysql", "confluent_kafka", "pandas", "pyspark"}),
    ],
    ids=["run", "control"],
)
def test_a_stream_of_a_binlog_starts_without_spark_pandas_and_sql(
    tmp_path_factory: pytest.TempPathFactory, before: str, heavy: set[str]
) -> None:
    with binlog_server() as server:
        followed = FollowedDatabase(server, tmp_path_factory.mktemp("followed"), "lean")
        followed.settings()
        followed.execute("CREATE TABLE t (id INT PRIMARY KEY, d DATETIME(6), n DECIMAL(5, 2))")
        followed.execute("INSERT INTO t VALUES (1, '2020-01-01', 1.5), (2, NULL, NULL)")
        modules = modules_of("run {conf} --once --no-display", followed.conf, before)
        assert HEAVY.intersection(modules) == heavy
        followed.check("t")
