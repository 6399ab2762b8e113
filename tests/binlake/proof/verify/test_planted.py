"""Differences of every kind planted at a real server are all found, nothing else is, and a repair removes them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from bench.planted import PLANTS, SOURCE, Planted, fill_lake, fill_source, plant, settings
from binlake.cli.app import app
from binlake.position.record_reader import RecordReader
from binlake.proof.verify import columns
from binlake.proof.verify.result import TableResult
from binlake.proof.verify.rows import KeyRange
from binlake.proof.verify.table_check import CheckOptions, Repair, TableCheck
from binlake.settings import Settings
from binlake.tables.audit import audit
from embedded.mariadb import EmbeddedMariaDB
from hudilake.storage import Storage, open_storage
from hudilake.table.table import HudiTable
from tests.binlake.proof.verify.source import verified
from tests.judges import hudi_rs
from tests.selection import first

pytestmark = pytest.mark.database

ROWS = 6_000
NAME = str(SOURCE)


@pytest.fixture
def lake(server: EmbeddedMariaDB, tmp_path: Path) -> Iterator[Settings]:
    """The table at the source and in the lake, equal."""
    fill_source(server, ROWS, user=False)
    config = settings(str(tmp_path / "lake"), server)
    fill_lake(config, ROWS, server)
    yield config
    server.execute(f"DROP DATABASE {SOURCE.database}")


def table_of(config: Settings) -> Storage:
    return open_storage(config.lake.uri).sub(config.table_rules(SOURCE).path)


def keys(planted: list[Planted]) -> set[str]:
    return {str(one.key) for one in planted}


@pytest.mark.full
def test_all_planted_differences_are_found_and_repaired(server: EmbeddedMariaDB, lake: Settings) -> None:
    assert not verified(lake)[NAME].different
    planted = plant(server, 4 * len(PLANTS), ROWS)
    found = verified(lake)[NAME]
    assert {d.key["id"] for d in found.differences} == keys(planted)
    assert found.total == len(planted)
    missing, extra = ({str(p.key) for p in planted if p.what == what} for what in ("missing row", "extra row"))
    assert {d.key["id"] for d in found.differences if d.kind == "missing"} == missing
    assert {d.key["id"] for d in found.differences if d.kind == "extra"} == extra
    cells = {str(p.key): p.what for p in planted}
    told = {cells[str(d.key["id"])]: {c.column for c in d.cells} for d in found.differences if d.kind == "differs"}
    assert told["stale row"] == {"small", "name", "money"}
    assert {what for what, names in told.items() if len(names) != 1} == {"stale row"}
    repaired = verified(lake, repair=True)[NAME]
    assert (repaired.total, repaired.repaired, repaired.different) == (len(planted), len(planted), False)
    assert verified(lake)[NAME].total == 0
    again = verified(lake, repair=True)[NAME]
    assert (again.total, again.repaired) == (0, 0)
    check_commits(table_of(lake), planted)
    [[count]] = [row.split("\t") for row in server.execute(f"SELECT COUNT(*) FROM {SOURCE}")]
    assert hudi_rs.snapshot(Path(lake.lake.uri) / SOURCE.database / SOURCE.table).num_rows == int(count)


def check_commits(storage: Storage, planted: list[Planted]) -> None:
    """The repair is one commit of its own that says where it stands, and it moves no position."""
    reader = RecordReader.newest_of(HudiTable.open(storage))
    note = reader.repaired
    assert note is not None
    assert note.position.startswith("mariadb-bin.")
    assert (note.rows + note.deletes, note.deletes) == (len(planted), sum(p.what == "extra row" for p in planted))
    assert reader.positions is None
    found = audit(storage)
    assert found.errors == []
    assert {c.stream for c in found.commits} == {"bench", "bench.verify"}


@pytest.mark.full
def test_portions_find_the_same_and_an_interrupted_run_goes_on(
    server: EmbeddedMariaDB, lake: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = plant(server, 30, ROWS)
    portions = CheckOptions(portion_rows=1_000)
    whole = verified(lake, check=portions)[NAME]
    assert {d.key["id"] for d in whole.differences} == keys(planted)
    assert len(whole.positions) == 1  # nothing was changed between the portions
    server.execute(f"DELETE FROM {SOURCE} WHERE id = 5999")  # behind all portions but the last
    portion_run, ran = TableCheck.run, list[KeyRange]()

    def dying(check: TableCheck, portion: KeyRange, repair: Repair | None = None) -> TableResult:
        ran.append(portion)
        if len(ran) == 4:
            raise KeyboardInterrupt
        return portion_run(check, portion, repair)

    monkeypatch.setattr(TableCheck, "run", dying)
    with pytest.raises(KeyboardInterrupt):
        verified(lake, check=portions)
    resumed = verified(lake, check=portions, resume=True)[NAME]
    assert {d.key["id"] for d in resumed.differences} == {*keys(planted), "5999"}
    assert resumed.source_rows == whole.source_rows - 1
    assert (len(ran), ran[4]) == (7, ran[3])  # three portions were not read again


def test_the_command_tells_people_and_programs(server: EmbeddedMariaDB, lake: Settings, tmp_path: Path) -> None:
    conf = tmp_path / "conf.yaml"
    document = lake.model_dump(mode="json", include={"name": True, "lake": {"uri"}})
    database = {"host": server.host, "port": server.port, "user": "verifier", "password": "${env:SOURCE_PASSWORD}"}
    document |= {"kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": ["x"]}, "source": {"database": database}}
    conf.write_text(json.dumps(document))
    secret = {"SOURCE_PASSWORD": "v-" + "8!pQ"}

    def run(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(app, ["verify", str(conf), "--no-wait", *arguments], env=secret)
        return result.exit_code, result.output

    code, text = run()
    assert (code, text.split("\n")[0]) == (0, f"{NAME}: equal")
    plant(server, 2, ROWS)
    code, text = run(NAME, "--limit", "1")
    assert code == 66
    assert f"{NAME}: different (1 extra, 1 missing)" in text
    assert "and 1 more; see --limit" in text
    code, text = run("--json", "--rows-per-second", "1000000")
    [line] = [json.loads(line) for line in text.splitlines()]
    assert (code, line["table"], line["different"], len(line["differences"])) == (66, NAME, True, 2)
    code, text = run("--repair")
    assert (code, text.split("\n")[0]) == (0, f"{NAME}: repaired, equal now (1 extra, 1 missing)")
    assert secret["SOURCE_PASSWORD"] not in text
    code, text = run("bank.nothing")
    assert code == 2


@pytest.mark.parametrize("rule", first(1, ["sign of zero", "trailing blanks", "exact floats"]))
def test_without_a_types_rule_the_comparison_is_wrong(
    rule: str, server: EmbeddedMariaDB, lake: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controls: a canonical form that loses something misses what was planted, or finds what was not."""
    server.execute(PLANTS["minus zero"].format(t=SOURCE, id=24))
    server.execute(PLANTS["trailing blank"].format(t=SOURCE, id=49))
    assert {d.key["id"] for d in verified(lake)[NAME].differences} == {"24", "49"}
    of_source, of_lake = columns.ComparedColumn.of_source, columns.ComparedColumn.of_lake

    def lossy(values_: pa.Array) -> pa.Array:
        if rule == "sign of zero" and pa.types.is_floating(values_.type):
            return pa.compute.add(values_, pa.scalar(0.0, values_.type))
        if rule == "trailing blanks" and pa.types.is_string(values_.type):
            return pa.compute.utf8_rtrim_whitespace(values_)
        return values_

    monkeypatch.setattr(columns.ComparedColumn, "of_source", lambda s, c, u: lossy(of_source(s, c, u)))
    monkeypatch.setattr(columns.ComparedColumn, "of_lake", lambda s, v: lossy(of_lake(s, v)))
    if rule == "exact floats":  # MySQL's own text of a FLOAT has six digits
        monkeypatch.setattr("binlake.source.database.source_table._FLOATS", frozenset())
        assert "rate" in {c.column for d in verified(lake)[NAME].differences for c in d.cells}
    else:
        missed = {"sign of zero": "24", "trailing blanks": "49"}[rule]
        assert missed not in {d.key["id"] for d in verified(lake)[NAME].differences}
