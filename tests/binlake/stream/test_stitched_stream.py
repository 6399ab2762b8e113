"""Stitched tables through whole batches: recordings of two tables in one lake table, judged by a join of the tables.

Without Spark and Kafka; hudi-rs reads, fsck and audit look on.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from binlake.position.ledger import Ledger
from binlake.settings import Settings
from binlake.settings.sections import SourceSettings
from binlake.source.dump_layout import DumpLayout
from binlake.source.offsets import Offsets
from binlake.stream.batches.runner import BatchRunner
from binlake.tables.audit import audit
from hudilake.services.fsck import Severity, fsck
from hudilake.storage import open_storage
from tests.binlake.decode.formats import format_recordings
from tests.binlake.decode.recordings import Row, same_cell, topics, truth
from tests.binlake.load.replay.dumped import HOUR, lines_of, replay
from tests.binlake.stream.format_feed import Feed
from tests.binlake.stream.test_exactly_once import runner
from tests.binlake.stream.topic_log import LocalEngine, TopicLog
from tests.judges import hudi_rs

BANK: dict[str, Any] = {
    "table": "wide.bank",
    "key": ["id"],
    "sources": [
        {"name": "accounts", "match": "bank.accounts"},
        {
            "name": "transfers",
            "match": "bank.transfers",
            "columns": {"from": "src", "to": "dst", "amount": "amount", "cents": "CAST(amount * 100 AS BIGINT)"},
        },
    ],
}
#: Files without the records' keys do not say the key of a table.
DECLARED = {
    "bank.transfers": {
        "columns": {"id": "bigint", "src": "int", "dst": "int", "amount": "decimal(15,2)", "at": "datetime(6)"},
        "key": ["id"],
    }
}
#: Column of the lake -> table, column of the source.
PLAIN = {name: ("accounts", name) for name in ("owner", "balance", "version", "updated")}
RENAMED = {"from": ("transfers", "src"), "to": ("transfers", "dst"), "amount": ("transfers", "amount")}

Truth = dict[str, tuple[list[Row], dict[str, str]]]


def settings(lake: Path, name: str, names: list[str], sources: object = None) -> Settings:
    """A stream of these topics; ``sources``: other ones than those of ``BANK``."""
    document = {
        "name": name,
        "lake": {"uri": str(lake), "options": {"fsync": "false"}},
        "kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": names},
        "tables": {"defaults": {"buckets": 2}, "stitched": [{**BANK, "sources": sources or BANK["sources"]}]},
    }
    return Settings.parse(json.dumps(document))


def rows_of(lake: Path) -> dict[int, Row]:
    """The stitched table through hudi-rs, when fsck and audit find nothing wrong with it."""
    storage = open_storage(str(lake / "wide" / "bank"))
    findings = [*fsck(storage, grace_ms=0).findings, *audit(storage).findings]
    assert [f.what for f in findings if f.severity is Severity.ERROR] == []
    rows = hudi_rs.snapshot(lake / "wide" / "bank").to_pylist()
    found = {row["id"]: row for row in rows}
    assert len(found) == len(rows)
    return found


def unequal(found: dict[int, Row], source: Truth) -> set[tuple[str, int]]:
    """The cells (column, key) that differ from ``accounts FULL OUTER JOIN transfers``; and rows too many or too few."""
    tables = {table: {int(row["id"] or 0): row for row in source[table][0]} for table in ("accounts", "transfers")}
    wrong = {("", key) for key in found.keys() ^ (tables["accounts"].keys() | tables["transfers"].keys())}
    for lake, (table, column) in {**PLAIN, **RENAMED}.items():
        kind = source[table][1][column]
        for key, row in found.items():
            expected = tables[table].get(key, {}).get(column)
            if not same_cell(expected, row[lake], kind):
                wrong.add((lake, key))
    for key, row in found.items():
        amount = tables["transfers"].get(key, {}).get("amount")
        if row["cents"] != (None if amount is None else int(str(amount).replace(".", ""))):
            wrong.add(("cents", key))
    return wrong


@pytest.fixture(scope="module")
def recorded() -> TopicLog:
    """Both topics of the recording of which Connect was killed: many events came twice."""
    log = TopicLog()
    for table in ("accounts", "transfers"):
        name = f"bank_schema.bank.{table}"
        part = topics("bank", "schema")[name][0]
        log.records[name, 0] = list(zip(part.keys, part.values, strict=True))
    return log


def upto(log: TopicLog, parts: dict[str, float]) -> Offsets:
    """The ends after a share of each topic's records."""
    return Offsets.of_places(
        (f"bank_schema.bank.{table}", 0, int(share * len(log.records[f"bank_schema.bank.{table}", 0])))
        for table, share in parts.items()
    )


def test_two_tables_of_one_stream_become_their_join(tmp_path: Path, recorded: TopicLog) -> None:
    """One source is far ahead of the other, then behind it; every batch begins with a new process."""
    conf = settings(tmp_path, "bank", [topic for topic, _ in recorded.records])
    root, engine = open_storage(str(tmp_path), {"fsync": "false"}), LocalEngine(recorded)
    cuts = [(0.5, 0.0), (0.5, 0.6), (0.7, 0.7), (1.0, 0.8), (1.0, 1.0)]
    for number, (accounts, transfers) in enumerate(cuts):
        done = runner(conf, root).run(number, upto(recorded, {"accounts": accounts, "transfers": transfers}), 0, engine)
        for table in done.tables:
            assert (table.table, table.error) == ("wide.bank", None)
            fates = table.applied + table.superseded + table.filtered + table.quarantined
            assert table.events_read == fates + table.already_applied
    assert unequal(rows_of(tmp_path), truth("bank")) == set()
    (tmp_path / ".binlake/bank/ledger.json").unlink()
    again = runner(conf, root).run(9, recorded.end(), 0, engine)
    assert sum(table.applied for table in again.tables) == 0


def test_two_streams_feed_one_table(tmp_path: Path, recorded: TopicLog) -> None:
    """Each has the topic of one source, and a ledger of its own."""
    engine, streams = LocalEngine(recorded), dict[str, BatchRunner]()
    for table in ("transfers", "accounts"):
        conf = settings(tmp_path, table, [f"bank_schema.bank.{table}"])
        root = open_storage(str(tmp_path), {"fsync": "false"})
        streams[table] = runner(conf, root)
    for number, share in enumerate((0.3, 0.8, 1.0)):
        for table, stream in streams.items():
            done = stream.run(number, upto(recorded, {table: share}), 0, engine)
            assert [(t.table, t.error) for t in done.tables] == [("wide.bank", None)]
    assert unequal(rows_of(tmp_path), truth("bank")) == set()
    for table in streams:
        ledger = Ledger.load(open_storage(str(tmp_path)).sub(f".binlake/{table}"), table)
        assert ledger is None or set(ledger.positions) == {f"bank_schema.bank.{table}"}


def test_a_replayed_dump_feeds_a_source_beside_the_stream(tmp_path: Path, recorded: TopicLog) -> None:
    """The stream has the accounts; the transfers are in files, the newer ones in the earlier hour."""
    lake, dumps = tmp_path / "lake", tmp_path / "dumps"
    topic, engine = "bank_schema.bank.accounts", LocalEngine(recorded)
    stream = runner(settings(lake, "bank", [topic]), open_storage(str(lake), {"fsync": "false"}))
    stream.run(0, upto(recorded, {"accounts": 0.5}), 0, engine)
    values = [value for _, value in recorded.records["bank_schema.bank.transfers", 0]]
    template = "{database}.{table}/dt={date}/hour={hour}/*"
    for hour, part in ((HOUR, values[3000:]), (HOUR + 1, values[:3000])):
        path = f"{DumpLayout(template).directory('x.bank.transfers', hour)}/a.jsonl"
        open_storage(str(dumps)).write(path, lines_of(part))
    conf = settings(lake, "bank", [topic])
    dump = conf.dump.model_copy(update={"uri": str(dumps), "path": template, "base_files_from_rows": 500})
    conf = conf.model_copy(update={"dump": dump, "source": SourceSettings.model_validate({"schemas": DECLARED})})
    assert len(replay(conf).taken) == 2
    assert replay(conf).taken == []
    stream.run(1, upto(recorded, {"accounts": 1.0}), 0, engine)
    assert unequal(rows_of(lake), truth("bank")) == set()


@pytest.mark.first(1)
@pytest.mark.parametrize("form", ["canal", "maxwell"])
def test_other_formats(tmp_path: Path, form: str) -> None:
    feed = Feed(tmp_path, source={"format": form}, tables={"defaults": {"buckets": 2}, "stitched": [BANK]})
    values = format_recordings.messages("bank", form).values
    for start in range(0, len(values), 4000):
        for value in values[start : start + 4000]:
            feed.put(value or b"")
        feed.batch()
    assert not (tmp_path / "_quarantine").exists()
    assert unequal(rows_of(tmp_path), format_recordings.truth("bank")) == set()


ACCOUNTS, TRANSFERS = BANK["sources"]
MORE = {"name": "more", "match": "bank.more", "columns": {"more": "x"}}


@pytest.mark.parametrize(
    ("sources", "why"),
    [
        ([TRANSFERS, ACCOUNTS], "its group accounts comes where the settings have transfers"),
        ([{**ACCOUNTS, "on_delete": "row"}, TRANSFERS], "on_delete is columns, not row"),
        ([ACCOUNTS, {**TRANSFERS, "name": "moves"}], "its group transfers comes where the settings have moves"),
        ([ACCOUNTS, TRANSFERS, MORE], ""),
        ([ACCOUNTS], ""),
    ],
    ids=["other order", "other policy", "other name", "one more", "one fewer"],
)
def test_other_groups_than_the_table_has(
    tmp_path: Path, recorded: TopicLog, sources: list[dict[str, Any]], why: str
) -> None:
    topic = "bank_schema.bank.accounts"
    root, engine = open_storage(str(tmp_path), {"fsync": "false"}), LocalEngine(recorded)
    runner(settings(tmp_path, "bank", [topic]), root).run(0, upto(recorded, {"accounts": 0.1}), 0, engine)
    changed = settings(tmp_path, "bank", [topic], sources)
    done = runner(changed, root).run(1, upto(recorded, {"accounts": 0.2}), 0, engine)
    told = done.tables[0].error or ""
    assert why in told
    assert bool(told) == bool(why)
    columns = hudi_rs.snapshot(tmp_path / "wide" / "bank").column_names
    assert ("_binlake_order_more" in columns) == (MORE in sources)
