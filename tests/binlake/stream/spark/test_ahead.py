"""What is imported while Spark starts: the first rows of a stream import and compile nothing on their way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

#: Two batches without Spark in a new process, after ``before``; prints the modules with compiled loops, and the
#: libraries, that the batches imported.
_FEED = """
import sys
from pathlib import Path
from tests.docs.shop import Shop
import binlake.rows.tasks.decode_and_route
import binlake.rows.tasks.write_parcels
from binlake.stream.spark.ahead import import_for_driver, import_for_tasks
{before}
shop, known = Shop(Path(sys.argv[1])), set(sys.modules)
shop.fill()
new = {{name: module for name, module in sys.modules.items() if name not in known}}
print(*(name for name, module in new.items() if hasattr(module, "compiled") or name in {{"numba", "pandas", "duckdb"}}))
"""
#: Prints the modules of this process after the imports ahead.
_IMPORTED = "import sys; from binlake.stream.spark.ahead import import_for_tasks; {before}; print(*sys.modules)"
#: The digest of a table's rows is worked out beside the write of its first commit.
_BESIDE = {"hudilake.format.digest.kernel"}


def imported_by_batches(before: str, place: Path) -> set[str]:
    place.mkdir()
    program = _FEED.format(before=before)
    done = subprocess.run(
        [sys.executable, "-c", program, str(place)], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return set(done.stdout.split())


@pytest.mark.full
@pytest.mark.parametrize(
    ("before", "imported"),
    [("import_for_tasks(); import_for_driver()", False), ("", True)],
    ids=["ahead", "control"],
)
def test_batches_find_what_they_need_imported(before: str, imported: bool, tmp_path: Path) -> None:
    found = imported_by_batches(before, tmp_path / "shop")
    assert bool(found - _BESIDE) is imported


@pytest.mark.full
@pytest.mark.parametrize(
    ("before", "missing"), [("import_for_tasks()", False), ("pass", True)], ids=["ahead", "control"]
)
def test_tasks_find_every_compiled_loop_of_the_formats(before: str, missing: bool) -> None:
    """A new format brings loops of its own: each worker would import them, and on a new machine compile them."""
    done = subprocess.run(
        [sys.executable, "-c", _IMPORTED.format(before=before)], capture_output=True, text=True, check=True, cwd=ROOT
    )
    pipeline = ROOT / "pipeline"
    loops = {
        ".".join(file.relative_to(pipeline).with_suffix("").parts)
        for folder in ("binlake/decode", "binlake/hbase/formats")
        for file in (pipeline / folder).rglob("*.py")
        if "from hudilake.compiled import" in file.read_text()
    }
    assert len(loops) > 4
    assert bool(loops - set(done.stdout.split())) is missing, loops - set(done.stdout.split())
