"""Reverts in recorded banks: a transfer goes back as a whole, in every format, and the sum of balances stays."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from binlake.proof.history.planned import BeforeImages, Means, RevertPlan, carry_out, plan_revert
from binlake.proof.history.selection import ChangeSelection
from binlake.proof.history.undo import Obstacle
from binlake.settings import Settings
from binlake.tables.catalog import catalog_table
from hudilake.errors import BadInputError
from hudilake.storage import open_storage
from tests.binlake.decode.formats import format_recordings
from tests.binlake.decode.recordings import topics
from tests.binlake.proof.history.bank import LogRecords
from tests.binlake.stream.format_feed import TOPIC, Feed
from tests.binlake.stream.test_exactly_once import runner
from tests.binlake.stream.topic_log import LocalEngine, TopicLog
from tests.judges import hudi_rs

SUM = Decimal("1000000.00")
Row = dict[str, Any]


def rows_of(lake: Path, table: str) -> dict[int, Row]:
    rows = hudi_rs.snapshot(lake / "bank" / table).to_pylist()
    return {r["id"]: {n: v for n, v in r.items() if not n.startswith(("_hoodie", "_binlake"))} for r in rows}


def planned(settings: Settings, log: TopicLog, selection: ChangeSelection) -> RevertPlan:
    root = open_storage(settings.lake.uri, {"fsync": "false"})
    places = [catalog_table(settings, root, f"bank.{table}") for table in ("accounts", "transfers")]
    return plan_revert(settings, places, selection, Means(BeforeImages.KAFKA, LogRecords(log), 100_000))


def reverted(settings: Settings, plan: RevertPlan) -> list[str]:
    return [place.name for place, commit in carry_out(settings, plan, None, leave_conflicts=False) if commit]


# -- Debezium ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Settings, TopicLog]:
    """The lake of the recording with embedded schemas, of which Connect was killed: many events came twice."""
    lake, log = tmp_path_factory.mktemp("bank"), TopicLog()
    names = ["bank_schema.bank.accounts", "bank_schema.bank.transfers"]
    for name in names:
        part = topics("bank", "schema")[name][0]
        log.records[name, 0] = list(zip(part.keys, part.values, strict=True))
    document = {
        "name": "bank",
        "lake": {"uri": str(lake), "options": {"fsync": "false"}},
        "kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": names},
        "tables": {"defaults": {"buckets": 4}},
    }
    config = Settings.parse(json.dumps(document))
    runner(config, open_storage(str(lake), {"fsync": "false"})).run(0, log.end(), 0, LocalEngine(log))
    return lake, config, log


def transfers(log: TopicLog) -> Iterator[tuple[str, list[Row]]]:
    """The transactions of the recording that are whole transfers, newest first: GTID, and the accounts' events."""
    found: dict[str, dict[int, Row]] = {}
    last: dict[int, str] = {}
    for _, value in log.records["bank_schema.bank.accounts", 0]:
        event = json.loads(value)["payload"] if value is not None else None
        if event is not None and event["op"] == "u":
            found.setdefault(event["source"]["gtid"], {})[event["after"]["id"]] = event
        if event is not None and event["op"] in "ucd":
            last[(event["after"] or event["before"])["id"]] = event["source"]["gtid"]
    for gtid in sorted(found, key=lambda gtid: -int(gtid.rpartition("-")[2])):
        if len(found[gtid]) == 2 and all(last[key] == gtid for key in found[gtid]):
            yield gtid, list(found[gtid].values())


@pytest.mark.full
def test_a_transfer_goes_back(bank: tuple[Path, Settings, TopicLog]) -> None:
    lake, config, log = bank
    before, sent = rows_of(lake, "accounts"), rows_of(lake, "transfers")
    assert sum(row["balance"] for row in before.values()) == SUM
    gtid, events = next(transfers(log))
    plan = planned(config, log, ChangeSelection(frozenset({gtid})))
    assert reverted(config, plan) == ["bank.accounts", "bank.transfers"]
    after = rows_of(lake, "accounts")
    changed = {key for key in before if before[key] != after[key]}
    assert changed == {event["after"]["id"] for event in events}
    for event in events:
        key, was = event["before"]["id"], event["before"]
        assert (after[key]["version"], after[key]["owner"]) == (was["version"], was["owner"])
        assert after[key]["updated"].isoformat().replace("+00:00", "Z") == was["updated"]
    assert sum(row["balance"] for row in after.values()) == SUM
    assert len(sent.keys() - rows_of(lake, "transfers").keys()) == 1
    assert reverted(config, planned(config, log, ChangeSelection(frozenset({gtid})))) == []


def test_an_old_transfer_has_later_changes(bank: tuple[Path, Settings, TopicLog]) -> None:
    lake, config, log = bank
    event = json.loads(next(v for _, v in log.records["bank_schema.bank.transfers", 0][1000:] if v is not None))
    gtid, before = event["payload"]["source"]["gtid"], rows_of(lake, "accounts")
    plan = planned(config, log, ChangeSelection(frozenset({gtid})))
    obstacles = {place.name: [c.obstacle for row in table.rows for c in row.conflicts] for place, table in plan.tables}
    assert obstacles == {"bank.accounts": [Obstacle.CHANGED_LATER] * 2, "bank.transfers": []}
    with pytest.raises(BadInputError, match="2 rows were changed later"):
        reverted(config, plan)
    assert rows_of(lake, "accounts") == before


# -- Maxwell and Canal ------------------------------------------------------------------------------------------------


def fed(path: Path, form: str) -> Feed:
    feed = Feed(path, source={"format": form})
    for value in format_recordings.messages("bank", form).values:
        feed.put(value or b"")
    feed.batch()
    return feed


def test_maxwells_transactions_are_chosen_by_their_number(tmp_path: Path) -> None:
    feed = fed(tmp_path, "maxwell")
    newest: dict[int, int] = {}
    members: dict[int, set[int]] = {}
    for _, value in feed.log.records[TOPIC, 0]:
        event = json.loads(value or b"null")
        if event.get("table") == "accounts" and event["type"] in ("insert", "update", "delete"):
            newest[event["data"]["id"]] = event["xid"]
            members.setdefault(event["xid"], set()).add(event["data"]["id"])
    whole = [xid for xid, keys in members.items() if len(keys) == 2 and all(newest[key] == xid for key in keys)]
    before = rows_of(tmp_path, "accounts")
    plan = planned(feed.settings, feed.log, ChangeSelection(frozenset({str(whole[-1])})))
    assert reverted(feed.settings, plan) == ["bank.accounts", "bank.transfers"]
    after = rows_of(tmp_path, "accounts")
    assert {key for key in before if before[key] != after[key]} == members[whole[-1]]
    assert sum(row["balance"] for row in after.values()) == sum(row["balance"] for row in before.values())


def test_canal_by_time(tmp_path: Path) -> None:
    """Canal's messages name no transaction; the last second of the recording is a range."""
    feed = fed(tmp_path, "canal")
    last = max(json.loads(value or b"{}").get("es", 0) for _, value in feed.log.records[TOPIC, 0])
    before = rows_of(tmp_path, "transfers")
    plan = planned(feed.settings, feed.log, ChangeSelection(since_ms=last, until_ms=last + 1000))
    rows = sum(len(table.written) for _, table in plan.tables)
    assert rows > 0
    assert plan.conflicts == 0
    assert reverted(feed.settings, plan) != []
    assert rows_of(tmp_path, "transfers").keys() <= before.keys()
    assert reverted(feed.settings, planned(feed.settings, feed.log, ChangeSelection(since_ms=last))) == []
