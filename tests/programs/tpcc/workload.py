"""``pingcap/go-tpc``, fetched and built by Go as a module, with a hundredth of the rows of each table.

TPC-C's numbers of rows are constants of its source. They are divided here, all by one number, so that the ratios stay:
a warehouse has 10 districts of 30 customers and 30 orders, 9 of these new, and 1,000 items of stock. The balances of
districts and warehouses are divided with them, for they are sums over the customers.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from hudilake.errors import ConfigError, TransientError

MODULE, VERSION = "github.com/pingcap/go-tpc", "v1.0.12"
_SUM = "h1:dsggDwLlrFIrbA6J2iejyUfJ9hnm139iRSrwOnNxwqA="
#: Orders of a district that are delivered at the beginning.
DELIVERED_AT_FIRST = 21
#: File of the source -> what stands there -> what is built.
_SMALLER: Mapping[str, Mapping[str, str]] = {
    "tpcc/load.go": {
        "100000": "1000", "3000": "30", "900": "9", "3001": "31", "2101": "22", "1000": "10",
        "300000.00": "3000.00", "30000.00": "300.00",
    },
    "tpcc/rand.go": {"100000": "1000", "3000": "30", "1000": "10"},
}  # fmt: skip
_QUERY = re.compile(r"(q\d+) = `\n((?:.|\n)*?)`")
_VIEW = re.compile(r"create view (\w+) (\(.*?\)) as \((.*?)\);", re.DOTALL)
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])")


def program(cache: Path) -> Path:
    """The program, built on first use into a directory. Raises ConfigError without Go, TransientError."""
    built = cache / f"go-tpc-{VERSION}-small"
    if not built.exists():
        if shutil.which("go") is None:
            raise ConfigError("Go is not here", do_next="install Go 1.21 or later: go-tpc is built from its source")
        cache.mkdir(parents=True, exist_ok=True)
        source = _fetched(cache)
        for name, numbers in _SMALLER.items():
            file = source / name
            file.write_text(_NUMBER.sub(lambda number: numbers.get(number[0], number[0]), file.read_text()))  # noqa: B023
        _go(source, "build", "-mod=mod", "-o", str(built), "./cmd/go-tpc")
    return built


def queries(cache: Path) -> dict[str, str]:
    """The queries of CH-benCHmark as the program has them, its view put into them: name -> SQL of MySQL."""
    view = _VIEW.search((cache / "source" / "ch" / "workload.go").read_text())
    texts = _QUERY.findall((cache / "source" / "ch" / "query.go").read_text())
    assert view is not None, "the program has another view"
    name, columns, select = view.groups()
    before = f"WITH {name} {columns} AS ({select}) "
    return {query: (before if name in sql else "") + sql.strip().rstrip(";") for query, sql in texts}


def _fetched(cache: Path) -> Path:
    """A copy of the module's source that may be changed; its hash is the one that is known."""
    asking, source = cache / "asking", cache / "source"
    shutil.rmtree(source, ignore_errors=True)
    asking.mkdir(exist_ok=True)
    (asking / "go.mod").write_text(f"module asking\n\ngo 1.21\n\nrequire {MODULE} {VERSION}\n")
    (asking / "go.sum").unlink(missing_ok=True)
    told = json.loads(_go(asking, "mod", "download", "-json", f"{MODULE}@{VERSION}"))
    if told["Sum"] != _SUM:
        raise TransientError(f"{MODULE} {VERSION} is not what it was: {told['Sum']}", do_next="see where Go fetches it")
    shutil.copytree(told["Dir"], source)
    for path in (source, *source.rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)
    return source


def _go(place: Path, *words: str) -> str:
    environment = {**os.environ, "GOFLAGS": "-mod=mod"}
    done = subprocess.run(
        ["go", *words],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise TransientError(f"go {words[0]} failed: {done.stderr.strip()[-500:]}", do_next="see whether Go works")
    return done.stdout
