"""``binlake layout``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import yaml
from typer.testing import CliRunner, Result

from binlake.cli.app import app
from hudilake.errors import ConfigError
from hudilake.policies import ClusteringPolicy
from tests.hudilake.services.advice.tables import file_table


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("layout")
    count = 4000
    customers = np.random.default_rng(2).integers(0, 500, count)
    file_table(path, {"placed": pa.array(np.arange(count)), "customer": pa.array(customers)}, 8)
    return path


def binlake(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


def test_what_is_printed(table: Path, tmp_path: Path) -> None:
    queries = tmp_path / "queries.sql"
    queries.write_text(
        "select * from t where placed < 5;\nselect * from t where placed < 5;\nselect * from elsewhere;\n"
    )
    done = binlake("layout", table, "--queries", queries)
    assert done.exit_code == 0
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in done.stdout.splitlines() if "│" in line]
    assert ["placed", "2", "1.0", "8", "4,000", "0.0 %"] in cells
    assert ["SELECT * FROM t WHERE placed < 5", "2", "1", "12.5 %", ""] in cells
    assert "not counted: SELECT * FROM elsewhere: the query does not name the table" in done.stdout
    assert done.stdout.rstrip().endswith("no order was found that reads clearly less")


def test_json_has_the_lines_to_paste(table: Path, tmp_path: Path) -> None:
    queries = tmp_path / "queries.sql"
    queries.write_text("select * from t where customer = 7\n")
    found = json.loads(binlake("layout", table, "--queries", queries, "--json").stdout)
    assert found["order"] is None  # the default target size makes one file of these rows
    assert found["settings"] == []
    assert found["queries"][0]["files"] == 8
    assert found["columns"][0]["column"] == "customer"


def test_the_lines_are_settings(table: Path, tmp_path: Path) -> None:
    queries = tmp_path / "queries.sql"
    queries.write_text("select * from t where customer = 7\n")
    done = binlake("layout", table, "--queries", queries, "--file-bytes", "9000")
    lines = done.stdout.splitlines()
    proposal = next(number for number, line in enumerate(lines) if line.startswith("proposal: linear by customer: "))
    (override,) = yaml.safe_load("\n".join(lines[proposal + 1 :]))["tables"]["overrides"]
    assert override["match"] == "t"
    ClusteringPolicy.model_validate(override["clustering"])


def test_a_file_without_queries_is_refused(table: Path, tmp_path: Path) -> None:
    (tmp_path / "none.sql").write_text("-- nothing\n")
    for name in ("none.sql", "missing.sql"):
        with pytest.raises(ConfigError, match="quer"):
            binlake("layout", table, "--queries", tmp_path / name)
