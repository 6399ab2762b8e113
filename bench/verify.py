"""How long a comparison takes, and whether it finds what was planted: ``python -m bench.verify --rows 1000000``.

A table of every kind of value is filled at a real server and in a lake, apart from each other. 100 single differences
are planted at the source; then the table is compared, repaired and compared again. Prints a line of JSON a run.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.planted import Planted, fill_lake, fill_source, plant, settings
from binlake.proof.verify.result import TableResult
from binlake.proof.verify.run import Verifier, VerifyOptions
from binlake.settings import Settings
from binlake.tables.catalog import CatalogTable, catalog_tables
from embedded.mariadb import EmbeddedMariaDB
from hudilake.storage import open_storage


def compare(config: Settings, *, repair: bool = False) -> TableResult:
    """Compare the only table of the lake."""
    root = open_storage(config.lake.uri, config.lake.storage_options())
    with Verifier(config, VerifyOptions(repair=repair, wait_s=None, listed=10_000)) as verifier:
        [table] = catalog_tables(config, root)
        assert isinstance(table, CatalogTable)
        [result] = verifier.tables(table, named=True)
    return result


def line(what: str, result: TableResult, seconds: float, planted: Sequence[Planted]) -> str:
    """The figures of a run."""
    found = {d.key["id"] for d in result.differences}
    wanted = {str(one.key) for one in planted}
    figures = {
        "run": what,
        "seconds": round(seconds, 1),
        "rows": result.source_rows,
        "ranges differing": f"{result.ranges_differing} of {result.ranges}",
        "fetched by key": f"{result.fetched} ({100 * result.fetched / max(1, result.source_rows):.2f} %)",
        "planted": len(wanted),
        "found": len(found & wanted),
        "false": len(found - wanted),
        "repaired": result.repaired,
        "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    return json.dumps(figures)


def main() -> None:
    """Fill, compare, plant, compare, repair, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--planted", type=int, default=100)
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="db") as data,
        tempfile.TemporaryDirectory(prefix="lake") as lake,
        EmbeddedMariaDB(Path(data)) as database,
    ):
        fill_source(database, given.rows)
        config = settings(lake, database)
        fill_lake(config, given.rows, database)
        planted: list[Planted] = []
        for what in ("equal", "planted", "repair", "after it"):
            if what == "planted":
                planted = plant(database, given.planted, given.rows)
            began_s = time.monotonic()
            result = compare(config, repair=what == "repair")
            wanted = [] if what in ("equal", "after it") else planted
            print(line(what, result, time.monotonic() - began_s, wanted), flush=True)


if __name__ == "__main__":
    main()
