"""Real Hive Metastores for the tests: fixtures, each started at most once by each process of a run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embedded.hms import EmbeddedHiveMetastore


@pytest.fixture(scope="session")
def hms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedHiveMetastore]:
    """Release 3.1.3, with Derby. Tests keep apart by the names of their databases."""
    with EmbeddedHiveMetastore(tmp_path_factory.mktemp("hms3"), "3.1.3") as metastore:
        yield metastore


@pytest.fixture(scope="session")
def hms4(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedHiveMetastore]:
    """Release 4.0.1, with Derby. Tests keep apart by the names of their databases."""
    with EmbeddedHiveMetastore(tmp_path_factory.mktemp("hms4"), "4.0.1") as metastore:
        yield metastore
