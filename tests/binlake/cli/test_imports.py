"""What a command imports: the libraries it needs and no others, and not more modules than it did.

Each command is a process, so people wait for its imports before its work; most of the time of a short command is that.
Modules are counted, because seconds depend on the machine.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.docs.shop import Shop

#: Runs a command as ``python -m binlake.cli`` does, after a statement, and prints the modules at its end.
_RUN: Final = """
import atexit, sys
atexit.register(lambda: print("modules:", *sys.modules, file=sys.stderr))
from binlake.cli.app import main
{before}
main()
"""
#: Libraries that cost 0.1 to 0.8 s of processor time each: compiled loops, frames, SQL, drivers, Spark, pages.
HEAVY: Final = frozenset(
    {
        "numba",
        "pandas",
        "duckdb",
        "sqlglot",
        "pymysql",
        "confluent_kafka",
        "pyspark",
        "textual",
        "starlette",
        "uvicorn",
        "jinja2",
        "boto3",
        "sqlalchemy",
    }
)
#: pyarrow imports pandas, where it is installed, for the first value that it makes: for commands that read rows.
_ROWS: Final = frozenset({"pandas"})
_SQL: Final = frozenset({"duckdb", "sqlglot"})


@dataclass(frozen=True)
class Cost:
    """What a command may import: ``heavy`` libraries, and at most so many modules in all."""

    words: str
    most: int
    heavy: Collection[str] = frozenset()


COSTS: Final = (
    Cost("--version", 230),
    Cost("--help", 370),
    Cost("config-schema", 450),
    Cost("init --help", 850, {"confluent_kafka", "pymysql"}),
    Cost("tables {conf}", 1000),
    Cost("cuts {conf}", 1050),
    Cost("inspect --conf {conf} shop.orders", 1000),
    Cost("fsck --conf {conf} shop.orders", 1600, {*_ROWS, "numba"}),
    Cost("savepoint list {conf} shop.orders", 1000),
    Cost("status {conf} --no-kafka", 1550, {*_ROWS, "confluent_kafka"}),
    Cost("clean {conf}", 1350, _ROWS),
    Cost("compact {conf}", 1350, _ROWS),
    Cost("query --conf {conf} shop.orders SELECT_1", 1550, {*_ROWS, *_SQL}),
)


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shop = Shop(tmp_path_factory.mktemp("shop"))
    shop.fill()
    return shop.conf


def modules_of(words: str, conf: Path, before: str = "") -> set[str]:
    """The modules that a command has imported at its end."""
    given = [word.format(conf=conf).replace("SELECT_1", "SELECT count(*) FROM t") for word in words.split()]
    done = subprocess.run(
        [sys.executable, "-c", _RUN.format(before=before), *given], capture_output=True, text=True, check=False
    )
    *errors, modules = done.stderr.splitlines()
    assert done.returncode == 0, errors
    return set(modules.removeprefix("modules: ").split())


def too_much(cost: Cost, modules: Collection[str]) -> Mapping[str, object]:
    """The heavy libraries that a command should not import, and the number of modules where it is too large."""
    heavy = sorted(HEAVY.intersection(modules).difference(cost.heavy))
    return {**dict.fromkeys(heavy, "imported"), **({"modules": len(modules)} if len(modules) > cost.most else {})}


@pytest.mark.first(5)
@pytest.mark.parametrize("cost", COSTS, ids=lambda cost: cost.words.split()[0])
def test_a_command_imports_what_it_needs(cost: Cost, conf: Path) -> None:
    modules = modules_of(cost.words, conf)
    print(f"{cost.words}: {len(modules)} modules, heavy: {sorted(HEAVY.intersection(modules))}")
    assert too_much(cost, modules) == {}


def test_the_control_imports_too_much(conf: Path) -> None:
    cost = next(cost for cost in COSTS if cost.words.startswith("tables"))
    found = too_much(cost, modules_of(cost.words, conf, before="import hudilake.compiled, pandas"))
    assert found.keys() == {"numba", "pandas", "modules"}


@pytest.mark.parametrize(("after", "read"), [("", False), ("; json_schema()", True)], ids=["import", "control"])
def test_settings_read_their_own_source_for_a_schema_alone(after: str, read: bool) -> None:
    """Descriptions of fields are texts in the source; to look for them is a third of the import's time."""
    look = f"import linecache; from binlake.settings import json_schema{after}; print(*linecache.cache)"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert any("settings" in Path(name).parts for name in done.stdout.split()) is read
