"""A real Hive Metastore from Maven: it answers, uses direct SQL, and keeps what it holds over a restart."""

from __future__ import annotations

from pathlib import Path

import pytest
from hive_metastore import ttypes

from embedded.hive_client import hive_client
from embedded.hms import EmbeddedHiveMetastore
from hudilake.errors import TransientError


@pytest.mark.full
@pytest.mark.hms
def test_databases_outlive_a_restart_and_direct_sql_is_on(tmp_path: Path) -> None:
    with EmbeddedHiveMetastore(tmp_path) as metastore:
        with hive_client(metastore.host, metastore.port) as client:
            client.create_database(ttypes.Database("shop", locationUri="file:/nowhere/shop"))
        metastore.stop()
        assert metastore.pid is None
        metastore.start()
        with hive_client(metastore.host, metastore.port) as client:
            assert client.get_all_databases() == ["default", "shop"]
    # The first start's test fails, before there are tables; those of the two other starts do not.
    assert metastore.log_file.read_text().count("direct SQL is disabled") == 1


@pytest.mark.full
@pytest.mark.hms
def test_a_metastore_that_does_not_start_says_why(tmp_path: Path) -> None:
    metastore = EmbeddedHiveMetastore(tmp_path, settings={"metastore.task.threads.always": "no.such.Task"})
    with pytest.raises(TransientError, match=r"no\.such\.Task"):
        metastore.start()
    assert metastore.pid is None
