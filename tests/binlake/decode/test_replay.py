"""Every recorded topic, decoded and replayed, gives the source's final rows cell by cell."""

from __future__ import annotations

import pickle
import time
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import pytest

from binlake.decode.changes import ControlKind, DecodedRecords, SourceTable
from binlake.decode.formats.reader import decode
from binlake.decode.schemas.schemas import NoSchemas
from tests.binlake.decode import recordings
from tests.binlake.decode.recordings import VARIANTS

ALL = 10**9
#: Cells that no row event carries, by (database, table, column): what only DDL could fill. From KNOWN.md.
ONLY_BY_DDL = {
    ("shop", "customers", "tier"): 111,
    ("shop", "customers", "score"): 245,
    ("shop", "customers", "prefs"): 245,
    ("shop", "orders", "remark"): 135,
}


@pytest.fixture(autouse=True, params=["UTC"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The machine's time zone."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


def decode_recording(database: str, variant: str, size: int) -> DecodedRecords:
    return _decode_in(database, variant, size, time.tzname)


@lru_cache(maxsize=32)
def _decode_in(database: str, variant: str, size: int, zone: tuple[str, str]) -> DecodedRecords:
    schemas = pickle.loads(pickle.dumps(recordings.history_of(database, variant)))
    options = pickle.loads(pickle.dumps(recordings.options_of(variant, before_of="all")))
    return recordings.decode_all(database, variant, schemas, options, size)


def differences(found: DecodedRecords, database: str) -> tuple[Counter[Any], Counter[Any], dict[str, int]]:
    """Cells that differ, cells no event carried, and rows missing or too many by table (keyed tables)."""
    differ: Counter[Any] = Counter()
    absent: Counter[Any] = Counter()
    row_counts: dict[str, int] = {}
    rows, keyless = recordings.replay(found)
    for table, (expected, kinds) in recordings.truth(database).items():
        source = SourceTable(database, table)
        if source in keyless:
            continue
        key = next(batch.schema.key for batch in found.changes if batch.schema.source == source)
        by_key = {
            tuple(recordings.as_server_sends(row[name], kinds[name]) for name in key): row for row in rows[source]
        }
        row_counts[table] = len(rows[source]) - len(expected)
        for row in expected:
            replayed = by_key[tuple(row[name] for name in key)]
            for name, cell in row.items():
                if name not in replayed:
                    absent[database, table, name] += 1
                elif not recordings.same_cell(cell, replayed[name], kinds[name]):
                    differ[database, table, name] += 1
    return differ, absent, {table: n for table, n in row_counts.items() if n}


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("database", "variant", "size"),
    [(*which, ALL) for which in VARIANTS]
    + [("bank", "plain", 997), ("shop", "plain", 61), ("shop", "schema", 997), ("shop", "schema", 61)]
    + [("shop", "flat", 61)],
)
def test_replay_equals_the_source(database: str, variant: str, size: int) -> None:
    found = decode_recording(database, variant, size)
    assert not found.quarantined
    assert not found.unknown_columns
    differ, absent, row_counts = differences(found, database)
    assert absent == {place: n for place, n in ONLY_BY_DDL.items() if place[0] == database}
    # replace.null.with.default=true turned a NULL into the default; lost before it reached the topic
    defaulted = database == "shop" and variant != "schema"
    assert differ == ({("shop", "scratch", "dv"): 5} if defaulted else {})
    # the flat form knows no TRUNCATE
    assert row_counts == ({"scratch": 5} if variant == "flat" else {})


@pytest.mark.first(2)
@pytest.mark.parametrize("variant", ["plain", "schema"])
@pytest.mark.parametrize("size", [ALL, 13])
def test_the_table_without_key_as_a_multiset(variant: str, size: int) -> None:
    found = decode_recording("shop", variant, size)
    _, keyless = recordings.replay(found)
    assert list(keyless) == [SourceTable("shop", "audit_log")]
    expected, kinds = recordings.truth("shop")["audit_log"]
    by_hand = Counter(tuple(sorted(row.items())) for row in expected)
    replayed: Counter[Any] = Counter()
    for batch in found.changes:
        if batch.schema.source.table == "audit_log":
            sides = [(row, 1 - 2 * row["__op"]) for row in batch.rows.to_pylist()]
            sides += [(row, -1) for row in (batch.before.to_pylist() if batch.before is not None else [])]
            for row, sign in sides:
                cells = {n: recordings.as_server_sends(row[n], kinds[n]) for n in kinds}
                replayed[tuple(sorted(cells.items()))] += sign
    assert +replayed == by_hand
    assert not -replayed


@pytest.mark.parametrize(("database", "variant"), VARIANTS)
def test_every_record_is_in_exactly_one_place(database: str, variant: str) -> None:
    found = decode_recording(database, variant, ALL)
    total = sum(
        len(part)
        for topic, parts in recordings.topics(database, variant).items()
        if not topic.startswith("_history")
        for part in parts.values()
    )
    rows = sum(batch.rows.num_rows for batch in found.changes)
    assert rows + len(found.controls) + sum(found.filtered.values()) == total


@pytest.mark.parametrize(("database", "variant"), VARIANTS)
def test_the_schema_history_topic_is_counted_as_ddl(database: str, variant: str) -> None:
    (part,) = recordings.topics(database, variant)[f"_history.{database}_{variant}"].values()
    found = decode(part, NoSchemas(), recordings.options_of(variant))
    assert found.filtered == {(None, "ddl"): len(part)}
    assert not found.quarantined


@pytest.mark.parametrize("database", ["bank", "shop"])
def test_plain_and_schema_give_the_same_types(database: str) -> None:
    """A table must not change its types with the switch schemas.enable."""
    seen = {}
    for variant in ("plain", "schema"):
        found = decode_recording(database, variant, ALL)
        seen[variant] = {(b.schema.source, b.schema.key, b.schema.arrow()) for b in found.changes}
    assert seen["plain"] == seen["schema"]


def test_the_embedded_schema_alone_is_exact_but_for_wrapped_bigints() -> None:
    found = recordings.decode_all("shop", "schema", NoSchemas(), recordings.options_of("schema"), ALL)
    assert not found.quarantined
    differ, _, row_counts = differences(found, "shop")
    assert set(differ) == {("shop", "customers", "ext_id")}
    assert not row_counts


def test_the_bank_never_loses_a_cent() -> None:
    for variant in ("plain", "schema"):
        rows, _ = recordings.replay(decode_recording("bank", variant, ALL))
        assert sum(row["balance"] for row in rows[SourceTable("bank", "accounts")]) == 1_000_000


def test_truncate_carries_its_place() -> None:
    found = decode_recording("shop", "plain", ALL)
    (truncate,) = [c for c in found.controls if c.kind is ControlKind.TRUNCATE]
    assert (truncate.source, truncate.order) == (SourceTable("shop", "scratch"), 1 << 32 | 401018)


def test_statements_are_controls_with_their_text() -> None:
    found = decode_recording("shop", "plain", ALL)
    texts = [c.text for c in found.controls if c.kind is ControlKind.DDL and c.order > 1 << 32 | 300_000]
    assert len(texts) == 6
    assert texts[0] == "ALTER TABLE customers ADD COLUMN tier VARCHAR(12) NOT NULL DEFAULT 'basic' AFTER vip"


@pytest.mark.first(2)
@pytest.mark.parametrize("zone", ["Asia/Shanghai", "America/New_York"], indirect=True)
@pytest.mark.parametrize("variant", ["plain", "schema", "flat"])
def test_the_zone_of_the_machine_changes_nothing(variant: str, zone: str) -> None:
    assert time.tzname != ("UTC", "UTC"), "the zone took hold"
    found = decode_recording("shop", variant, ALL)
    differ, _, _ = differences(found, "shop")
    assert set(differ) <= {("shop", "scratch", "dv")}
