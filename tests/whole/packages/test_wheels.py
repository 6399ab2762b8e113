"""What is in the wheels: each package whole, with its data, and no other top-level name."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from distributions.build import ARCHIVE, build
from tests.paths import ROOT

PACKAGES = ("hudilake", "lakemetastore", "binlake")
_COMPILED = {".pyc", ".nbi", ".nbc"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheels by their packages."""
    return dict(zip(PACKAGES, build(tmp_path_factory.mktemp("wheels")), strict=True))


def _sources(package: str) -> set[str]:
    root = ROOT / "pipeline"
    files = (path for path in (root / package).rglob("*") if path.is_file() and path.suffix not in _COMPILED)
    return {str(path.relative_to(root)) for path in files}


def _members(file: Path) -> tuple[set[str], set[str]]:
    """The files of packages, and those of metadata without their directory."""
    names = {name for name in zipfile.ZipFile(file).namelist() if not name.endswith("/")}
    metadata = {name for name in names if ".dist-info/" in name}
    return names - metadata, {name.partition("/")[2] for name in metadata}


@pytest.mark.full
@pytest.mark.parametrize("package", PACKAGES)
def test_a_wheel_has_its_package_whole_and_nothing_else(built: dict[str, Path], package: str) -> None:
    files, metadata = _members(built[package])
    assert files == _sources(package)
    assert f"{package}/py.typed" in files
    assert {"METADATA", "licenses/LICENSE"} <= metadata
    text = zipfile.ZipFile(built[package]).read(f"{package}-0.1.0.dist-info/METADATA").decode()
    assert f"# {package}" in text, "the page that registries show"


def test_the_archive_for_spark_submit_has_all_three(built: dict[str, Path]) -> None:
    files, metadata = _members(built["binlake"].parent / ARCHIVE)
    assert files == set().union(*map(_sources, PACKAGES))
    assert "entry_points.txt" in metadata
