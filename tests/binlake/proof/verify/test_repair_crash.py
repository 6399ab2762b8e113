"""A repair that dies before or after any call to the store is done again, and leaves what one repair leaves."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.planted import DATABASE, SOURCE, fill_lake, fill_source, plant, settings
from binlake.proof.verify.repair import Repairer
from binlake.proof.verify.rows import EVERYTHING
from binlake.proof.verify.run import Verifier, VerifyOptions
from binlake.settings import Settings
from binlake.tables.catalog import catalog_table
from binlake.tables.lake import Lake
from embedded.mariadb import EmbeddedMariaDB
from hudilake.storage import open_storage
from tests.binlake.proof.verify.source import verified
from tests.binlake.stream.dying_store import Answer, DyingStore, Fate, Killed
from tests.hypothesis_profile import scaled

pytestmark = pytest.mark.database

ROWS, PLANTED = 100, 4
NAME = str(SOURCE)


@pytest.fixture
def source(server: EmbeddedMariaDB) -> Iterator[EmbeddedMariaDB]:
    fill_source(server, ROWS, user=False)
    yield server
    server.execute(f"DROP DATABASE {DATABASE}")


def repaired_with(config: Settings, fate: Fate) -> None:
    """Compare, and repair through a store with a fate."""
    root = DyingStore(open_storage(config.lake.uri, config.lake.storage_options()), fate)
    with Verifier(config, VerifyOptions(wait_s=None)) as verifier:
        table = catalog_table(config, open_storage(config.lake.uri), NAME)
        check = verifier.check(table, verifier.origins(table)[0])
        check.run(EVERYTHING, Repairer(config, Lake(root)))


@pytest.mark.full
def test_a_repair_that_dies_is_done_again(source: EmbeddedMariaDB, tmp_path: Path) -> None:
    document = {"tables": {"defaults": {"buckets": 1}}}
    config = settings(str(tmp_path / "lake"), source, **document)
    fill_lake(config, ROWS, source)
    plant(source, PLANTED, ROWS)
    kept = tmp_path / "kept"
    shutil.copytree(tmp_path / "lake", kept)
    whole = Fate()
    repaired_with(config, whole)
    points = [(at, answer) for at in range(len(whole.calls)) for answer in (Answer.LOST, Answer.DONE)]
    step = max(1, len(points) // scaled(60, 8))
    deaths = 0
    for at, answer in points[::step]:
        shutil.rmtree(tmp_path / "lake")
        shutil.copytree(kept, tmp_path / "lake")
        fate = Fate(at, answer)
        with contextlib.suppress(Killed):
            repaired_with(config, fate)
            deaths -= 1
        deaths += 1
        fate.settle()
        again = verified(config, repair=True)[NAME]
        assert not again.different, (at, answer, whole.calls[at])
        assert again.source_rows == ROWS
        assert not verified(config)[NAME].total
    assert deaths > len(points[::step]) // 2
