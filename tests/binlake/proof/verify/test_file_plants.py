"""Random differences in the files of lake tables: verify finds each once and nothing else, and a repair removes all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from typer.testing import CliRunner

from binlake.cli.app import app
from binlake.proof.verify.run import Verifier, VerifyOptions
from binlake.tables.audit import audit
from binlake.tables.catalog import CatalogTable, catalog_table, catalog_tables
from binlake.tables.lake_table import LakeTable
from embedded.mariadb import EmbeddedMariaDB
from hudilake.clock import new_uuid
from hudilake.errors import UnsupportedError
from hudilake.storage import open_storage
from tests.binlake.proof.verify.file_plants import BASE, COMPUTED, LOGS, LOGS_COMPUTED, PARTITIONED, FilePlants
from tests.binlake.proof.verify.source import SentTable
from tests.hypothesis_profile import scaled
from tests.judges import hudi_rs
from tests.selection import first

pytestmark = pytest.mark.database

COLUMNS = {"id": "int", "name": "varchar(20)", "region": "varchar(10)"}
ROWS, DEAD = 120, 12
REGIONS = ("eu", "us", "ap")
PARTITION = {"partition": {"column": "region"}}
COPIES = {"type": "copy_on_write"}
#: Name -> rules of the table.
SHAPES: dict[str, dict[str, Any]] = {
    "merge on read": {"buckets": 4},
    "merge on read, partitioned": {"buckets": 2, **PARTITION},
    "copy on write": {"buckets": 4, **COPIES},
    "copy on write, partitioned": {"buckets": 2, **COPIES, **PARTITION},
    "copy on write, simple index": {**COPIES, "index": {"type": "simple"}, **PARTITION},
    "merge on read, record index": {"index": {"type": "record_index"}, **PARTITION},
}

RESYNCED = first(1, ["merge on read, partitioned", "copy on write", "merge on read, record index"])


@pytest.fixture
def database(server: EmbeddedMariaDB) -> Iterator[str]:
    name = f"f_{new_uuid()[:8]}"
    server.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
    yield name
    server.execute(f"DROP DATABASE {name}")


def filled(server: EmbeddedMariaDB, place: Path, database: str, rules: dict[str, Any]) -> SentTable:
    """Table ``t``, equal on both sides; its last DEAD rows are then lost at the source."""
    sent = SentTable(server, place, database, {"t": COLUMNS}, {"t": ["id"]}, {"defaults": {"buckets": None, **rules}})
    if "index" in rules:
        sent.rules = {"defaults": rules}
    regions = [REGIONS[number % 3] for number in range(ROWS)]
    values = ", ".join(f"({n}, {'NULL' if n % 7 == 0 else repr(f'n{n}')}, '{r}')" for n, r in enumerate(regions))
    server.execute(
        f"CREATE TABLE {database}.t (id INT PRIMARY KEY, name VARCHAR(20), region VARCHAR(10));"
        f"INSERT INTO {database}.t VALUES {values}"
    )
    sent.stands = sent.place_now()
    for number, region in enumerate(regions):
        sent.send("t", "c", {"id": number, "name": None if number % 7 == 0 else f"n{number}", "region": region})
    sent.apply()
    assert not sent.verify()[f"{database}.t"].different
    server.execute(f"DELETE FROM {database}.t WHERE id >= {ROWS - DEAD}")
    return sent


@pytest.mark.full
@pytest.mark.parametrize("seed", range(scaled(5, least=1)))
@pytest.mark.parametrize("shape", first(2, reversed(SHAPES)))
def test_each_planted_difference_is_found_once_and_repaired(
    server: EmbeddedMariaDB, tmp_path: Path, database: str, shape: str, seed: int
) -> None:
    sent, random, rules = filled(server, tmp_path, database, SHAPES[shape]), Random(seed), SHAPES[shape]
    plants = planted(sent, random, rules)
    assert len(plants.expected) >= 30
    found = sent.verify()[f"{database}.t"]
    assert sorted((d.kind.value, str(d.key["id"])) for d in found.differences) == sorted(plants.expected)
    assert found.total == len(plants.expected)
    assert "--repair" in found.advice
    repaired = sent.verify(repair=True)[f"{database}.t"]
    assert (repaired.total, repaired.repaired, repaired.different) == (found.total, found.total, False)
    again = sent.verify()[f"{database}.t"]
    assert (again.total, again.wrong, again.source_rows) == (0, [], ROWS - DEAD)
    read = hudi_rs.snapshot(Path(sent.settings().lake.uri) / database / "t").select(["id", "name", "region"])
    wanted = [(n, None if n % 7 == 0 else f"n{n}", REGIONS[n % 3]) for n in range(ROWS - DEAD)]
    assert sorted(tuple(row.values()) for row in read.to_pylist()) == wanted
    assert audit(plants.table.storage).errors == []


def opened(sent: SentTable) -> FilePlants:
    """The table, to plant in."""
    place = catalog_table(sent.settings(), open_storage(sent.settings().lake.uri), f"{sent.database}.t")
    assert isinstance(place, CatalogTable)
    return FilePlants(LakeTable.open(place.storage, place.rules), Random(1), ROWS - DEAD)


def ids(sent: SentTable) -> list[int]:
    """What hudi-rs reads."""
    found = hudi_rs.snapshot(Path(sent.settings().lake.uri) / sent.database / "t")
    return sorted(found.column("id").to_pylist())


def test_a_key_in_two_file_groups_is_named_with_both_and_the_repair_leaves_one_row(
    server: EmbeddedMariaDB, tmp_path: Path, database: str
) -> None:
    sent = filled(server, tmp_path, database, {"buckets": 2})
    plants = opened(sent)
    plants.in_logs([], [], range(ROWS - DEAD, ROWS))
    plants.in_bases(["in another group too", "twice"], [1, 2], [])
    first, second = sent.verify()[f"{database}.t"].differences
    by_key = {d.key["id"]: d for d in (first, second)}
    assert {d.kind.value for d in by_key.values()} == {"doubled"}
    assert [len(by_key[key].places) for key in ("1", "2")] == [2, 1]
    result = CliRunner().invoke(app, ["verify", str(sent.conf), "--no-wait"])
    assert (result.exit_code, "different (2 doubled)" in result.output) == (66, True), result.output
    assert "next: write the source's rows over these (binlake verify --repair)" in result.output
    assert not sent.verify(repair=True)[f"{database}.t"].different
    assert sent.verify()[f"{database}.t"].total == 0
    assert ids(sent) == list(range(ROWS - DEAD))


@pytest.mark.full
def test_one_row_with_an_order_that_no_change_has_is_named_and_the_others_are_compared(
    server: EmbeddedMariaDB, tmp_path: Path, database: str
) -> None:
    sent = filled(server, tmp_path, database, {"buckets": 2})
    plants = opened(sent)
    plants.in_logs([], [], range(ROWS - DEAD, ROWS))
    plants.in_bases(["ahead", "changed"], [1, 2], [])
    result = CliRunner().invoke(app, ["verify", str(sent.conf), "--no-wait"])
    assert (result.exit_code, "different (1 ahead, 1 differs)" in result.output) == (66, True), result.output
    assert any(line.startswith("  ahead id=1 in ") and " with order " in line for line in result.output.splitlines())
    assert not sent.verify(repair=True)[f"{database}.t"].different
    sent.stands = None
    server.execute(f"UPDATE {database}.t SET name = 'later' WHERE id = 1")
    sent.send("t", "u", {"id": 1, "name": "later", "region": "us"})  # the next change does not lose to it
    sent.apply()
    assert sent.verify()[f"{database}.t"].total == 0
    assert ids(sent) == list(range(ROWS - DEAD))


@pytest.mark.full
@pytest.mark.parametrize(
    "shape", first(1, ["merge on read, partitioned", "copy on write", "merge on read, record index"])
)
def test_a_resync_from_the_source_replaces_rows_with_an_order_that_no_change_has(
    server: EmbeddedMariaDB, tmp_path: Path, database: str, shape: str
) -> None:
    sent = filled(server, tmp_path, database, SHAPES[shape])
    plants = opened(sent)
    plants.compact()
    plants.in_bases(["ahead", "ahead and changed", "revived, ahead"], [1, 2], [ROWS - 1])
    settings = sent.settings()
    root = open_storage(settings.lake.uri, settings.lake.storage_options())
    with Verifier(settings, VerifyOptions(wait_s=None)) as verifier:
        (table,) = [one for one in catalog_tables(settings, root) if isinstance(one, CatalogTable)]
        verifier.resync(table)
    assert sent.verify()[f"{database}.t"].total == 0
    assert ids(sent) == list(range(ROWS - DEAD))


def test_a_delete_with_an_order_that_no_change_has_is_said_not_to_be_repaired(
    server: EmbeddedMariaDB, tmp_path: Path, database: str
) -> None:
    sent = filled(server, tmp_path, database, {"buckets": 2})
    plants = opened(sent)
    plants.in_logs([], [], range(ROWS - DEAD, ROWS))
    plants.delete_ahead(1)
    left = sent.verify(repair=True)[f"{database}.t"]
    assert (left.differing, left.repaired, left.different) == ({"missing": 1}, 0, True)
    assert "load the table again under a new path" in left.advice


def test_a_resync_from_another_server_is_refused_before_anything_is_written(
    server: EmbeddedMariaDB, tmp_path: Path, database: str
) -> None:
    sent = filled(server, tmp_path, database, {"buckets": 2})
    sent.stands = ("mariadb-bin.000900", 4)
    sent.send("t", "u", {"id": 1, "name": "x", "region": "us"})
    sent.apply()
    done = CliRunner().invoke(app, ["table", "resync", str(sent.conf), f"{database}.t", "--from-source"])
    assert (done.exit_code != 0, "the stream has read file 900" in str(done.exception)) == (True, True), done
    assert len(ids(sent)) == ROWS


def test_a_file_group_that_lost_all_rows_is_missing_row_by_row(
    server: EmbeddedMariaDB, tmp_path: Path, database: str
) -> None:
    sent = filled(server, tmp_path, database, SHAPES["merge on read, partitioned"])
    plants = opened(sent)
    plants.in_logs([], [], range(ROWS - DEAD, ROWS))
    plants.lose_a_group()
    found = sent.verify(repair=True)[f"{database}.t"]
    assert sorted((d.kind.value, str(d.key["id"])) for d in found.differences) == sorted(plants.expected)
    assert (found.total > 5, found.different) == (True, False)
    assert ids(sent) == list(range(ROWS - DEAD))


@pytest.mark.full
def test_rows_of_a_table_without_a_key_are_compared_as_often_as_they_are_there(
    server: EmbeddedMariaDB, tmp_path: Path, database: str
) -> None:
    sent = SentTable(server, tmp_path, database, {"t": COLUMNS}, {})
    server.execute(f"CREATE TABLE {database}.t (id INT, name VARCHAR(20), region VARCHAR(10))")
    for number in (*range(20), 3, 3):
        server.execute(f"INSERT INTO {database}.t VALUES ({number}, 'n{number}', 'eu')")
        sent.send("t", "c", {"id": number, "name": f"n{number}", "region": "eu"})
    sent.apply()
    plants = opened(sent)
    plants.compact()
    plants.in_bases(["lost", "twice", "changed"], [1, 2, 3], [])
    result = sent.verify()[f"{database}.t"]
    found = sorted((d.kind.value, str(d.key["id"])) for d in result.differences)
    assert found == [("extra", "2"), ("extra", "3"), ("missing", "1"), ("missing", "3")]
    assert "load it again under a new path" in result.advice
    with pytest.raises(UnsupportedError, match="without a key cannot be repaired"):
        sent.verify(repair=True)
    done = CliRunner().invoke(app, ["table", "resync", str(sent.conf), f"{database}.t", "--from-source"])
    assert (done.exit_code != 0, "nor fetched anew" in str(done.exception)) == (True, True), done


@pytest.mark.full
@pytest.mark.parametrize(
    "shape", first(1, ["merge on read, partitioned", "copy on write", "merge on read, record index"])
)
def test_a_resync_from_the_source_loses_no_row_of_a_key_that_is_there_twice(
    server: EmbeddedMariaDB, tmp_path: Path, database: str, shape: str
) -> None:
    sent = filled(server, tmp_path, database, SHAPES[shape])
    plants = opened(sent)
    plants.compact()
    plants.in_bases(["in another group too", "in another group too", "in another group too"], [1, 2, 3], [])
    settings = sent.settings()
    with Verifier(settings, VerifyOptions(wait_s=None)) as verifier:
        place = catalog_table(settings, open_storage(settings.lake.uri), f"{database}.t")
        assert isinstance(place, CatalogTable)
        verifier.resync(place)
    assert set(ids(sent)) == set(range(ROWS - DEAD))
    left = sent.verify(repair=True)[f"{database}.t"]
    assert not left.different
    assert left.total == 0 or "index" in SHAPES[shape]
    assert ids(sent) == list(range(ROWS - DEAD))


def planted(sent: SentTable, random: Random, rules: dict[str, Any]) -> FilePlants:
    """About forty plants of all kinds that the table can have."""
    plants = opened(sent)
    plants.random = random
    computed, logs = "index" not in rules, "type" not in rules
    if logs:
        plants.compact()
    keys = [number for number in range(ROWS - DEAD) if number % 7]
    whats = [*BASE, *(COMPUTED if computed else ()), *(PARTITIONED if "partition" in rules and computed else ())]
    chosen = [w for w in random.choices(whats, k=40) if not w.startswith("revived")]
    chosen += ["revived", "revived twice", "revived"]
    random.shuffle(keys)
    gone = list(range(ROWS - DEAD, ROWS))
    plants.in_bases(chosen, keys, gone[: DEAD // 2] if logs else gone)
    keys = keys[len(chosen) :]
    if logs:
        more = [*LOGS, *(LOGS_COMPUTED if computed else ())]
        chosen = [*more, *(w for w in random.choices(more, k=6) if not w.startswith("revived"))]
        plants.in_logs(chosen, keys, gone[DEAD // 2 :])
    return plants
