"""What the tests of clusters share. It stands alone: pytest looks for fixtures here."""

from __future__ import annotations

from pathlib import Path

import pytest

from distributions.build import ARCHIVE, build


@pytest.fixture(scope="package")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The three wheels in one archive, as ``make package`` builds it; built without the network."""
    out = tmp_path_factory.mktemp("wheel")
    build(out)
    return out / ARCHIVE
