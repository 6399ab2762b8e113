"""Lakes that earlier code wrote: today's code reads them, and goes on with them."""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from binlake.position.ledger import LEDGER, Ledger
from binlake.rows.upsert.keyless import KeylessState
from binlake.source.offsets import Offsets
from hudilake.storage import open_storage
from tests.judges.agreement import read_ourselves
from tests.judges.hudi_spark import HudiSpark
from tests.judges.rows import canonical
from tests.paths import ROOT
from tests.selection import first
from tests.whole.lake_before.kept import WRITERS, KeptLake, record
from tests.whole.lake_before.make import ROWS, make
from tests.whole.lake_before.running import LAKES, command, rows_of, tables, transactions_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="commits name the dump's root below /proc")

#: The keys of extraMetadata, of the history's footers and of the index definitions when the lake was written.
KEYS = (
    *("batch", "counts", "ddl", "dump", "dump_hours", "dump_table", "extra", "keyless", "left", "offsets", "positions"),
    *("replayed", "skipped", "source", "source_times", "stream", "transactions", "truncated"),
)
#: The fields of each stream's ledger that say nothing: Kafka gives the topics' ids, and each stream uses its own.
EMPTY = {
    "shop": {"topic_ids", "planned", "torn", "transactions_ended", "transactions_ms"},
    "bank": {"topic_ids", "behind", "skipped", "transactions_ended"},
}


@pytest.fixture(params=WRITERS)
def lake(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KeptLake:
    monkeypatch.chdir(tmp_path)
    return KeptLake(tmp_path, request.param)


@pytest.mark.full
def test_every_key_occurs_and_is_still_known(lake: KeptLake) -> None:
    files = [p.read_bytes() for p in lake.place.rglob("*") if p.is_file()]
    code = "".join(p.read_text() for p in (ROOT / "pipeline").rglob("*.py"))
    for key in KEYS:
        assert any(re.search(rb"binlake\.%s\b" % key.encode(), data) for data in files), key
        assert f'"binlake.{key}"' in code, key


@pytest.mark.full
def test_every_table_is_what_it_was(lake: KeptLake) -> None:
    before = lake.record("rows")["before"]
    assert {name: rows_of(path) for name, path in tables(lake.place).items()} == before
    assert len(before) == 12
    lake.check_sound()
    assert [s["comment"] for s in command(lake.place, "shop", "savepoint list", "shop.orders", "--json")] == ["before"]
    waiting = command(lake.place, "shop", "quarantine list", "--json", "--records")
    assert sorted(r["reason"] for r in waiting) == ["malformed_json"] * 2 + ["unknown_column"] * 2
    for path in ("lake/shop/orders", "lake/shop/visits"):
        assert lake.upkeep(path)["history"] > 0
    assert lake.table("lake/shop/parts").timeline.pending()


@pytest.mark.full
def test_todays_code_writes_the_same_rows(tmp_path: Path) -> None:
    """The same story, told to today's code. The quarantine has the times at which it was written."""
    make(tmp_path)
    today = json.loads(gzip.decompress((tmp_path / ROWS).read_bytes()))["before"]
    for writer in WRITERS:
        before = record(writer, "rows")["before"]
        assert today.keys() == before.keys()
        assert [name for name in today if "_quarantine" not in name and today[name] != before[name]] == []


@pytest.mark.first(1)
@pytest.mark.parametrize("name", LAKES)
def test_the_ledger_is_read_and_written_as_before(lake: KeptLake, name: str) -> None:
    state = open_storage(str(lake.place / LAKES[name] / ".binlake" / name))
    then = json.loads(state.read(LEDGER))
    assert {key for key, said in then.items() if not said} == EMPTY[name]
    ledger = Ledger.load(state, name)
    assert ledger is not None
    ledger.save(state)
    assert json.loads(state.read(LEDGER)) == then


@pytest.mark.first(1)
def test_the_tables_remember_what_the_story_needs(lake: KeptLake) -> None:
    """Deletes that are owed, TRUNCATEs, DDL that was carried out, definitions of tables, sealed records."""
    assert len(json.loads(lake.table("lake/shop/visits").extra_metadata("binlake.keyless") or "{}")["debts"]) == 2
    for table in ("orders", "items"):
        assert lake.table(f"lake/shop/{table}").extra_metadata("binlake.truncated")
    assert len(json.loads(lake.table("lake/shop/goods").extra_metadata("binlake.ddl") or "[]")) == 3
    definitions = json.loads((lake.place / "lake/.binlake/shop/definitions.json").read_bytes())
    assert len(definitions["records"]) == 1
    held = (lake.place / "lake/_quarantine/shop").glob(".*.log.*")
    assert any(b"binlake-sealed" in path.read_bytes() for path in held)


@pytest.mark.full
@pytest.mark.parametrize("lake", first(1, WRITERS), indirect=True)
@pytest.mark.spark
@pytest.mark.judge
def test_the_streams_go_on_and_hudi_reads_the_lake(lake: KeptLake, hudi_spark: HudiSpark) -> None:
    _check_going_on(lake, hudi_spark)


@pytest.mark.full
@pytest.mark.parametrize("lake", first(1, reversed(WRITERS)), indirect=True)
def test_the_streams_go_on_without_their_ledgers(lake: KeptLake) -> None:
    _check_going_on(lake, ledgers="lost")


def _check_going_on(lake: KeptLake, spark: HudiSpark | None = None, ledgers: str = "kept") -> None:
    then = _savepoint_rows(lake)
    before = {path: lake.upkeep(path) for path in ("lake/shop/orders", "lake/shop/visits")}
    if ledgers == "lost":
        lake.lose_ledgers()
    lake.go_on()
    lake.check_rows(spark)
    lake.check_sound()
    assert _savepoint_rows(lake) == then
    for path, had in before.items():
        now = lake.upkeep(path)
        assert [name for name in had if not now[name] > had[name]] == [], path
    assert not lake.table("lake/shop/parts").timeline.pending()


def _savepoint_rows(lake: KeptLake) -> list[dict[str, Any]]:
    (found,) = command(lake.place, "shop", "savepoint list", "shop.orders", "--json")
    return list(canonical(read_ourselves(lake.place / "lake/shop/orders", found["instant"])))


@pytest.mark.first(1)
@pytest.mark.parametrize("name", LAKES)
def test_a_lost_ledger_is_worked_out_as_before(lake: KeptLake, name: str) -> None:
    lake.lose_ledgers()
    stream = lake.stream(name)
    stream.close()
    then = lake.record("rows")["recovered"][name]
    assert stream.recovered == Offsets.from_json(then["positions"])
    assert transactions_of(stream.ledger) == {name: then[name] for name in ("torn", "ms", "ended")}


def _further(said: dict[str, Any]) -> dict[str, Any]:
    said["shop"]["s.shop.orders"] = {p: o + 12 for p, o in said["shop"]["s.shop.orders"].items()}
    return said


def _empty(_: object) -> Any:  # noqa: ANN401 - any JSON
    return json.loads(KeylessState().to_text())


@pytest.mark.full
@pytest.mark.parametrize(
    ("table", "key", "change"),
    [("lake/shop/orders", "positions", _further), ("lake/shop/visits", "keyless", _empty)],
    ids=["positions that are too far", "no memory of rows"],
)
def test_control_with_forged_commits_rows_differ(
    lake: KeptLake, table: str, key: str, change: Callable[[Any], Any]
) -> None:
    lake.forge(table, f"binlake.{key}", change)
    lake.go_on()
    with pytest.raises(AssertionError, match=f"binlake, {table} gives"):
        lake.check_rows()


@pytest.mark.full
def test_control_without_the_portion_a_dump_is_taken_again(lake: KeptLake) -> None:
    lake.forge("lake/shop/parts", "binlake.dump", lambda said: None)
    with pytest.raises(AssertionError):
        lake.replay_dump()
