"""``binlake audit``: the records that commits read are accounted for; lost, doubled and unreadable ones are told."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hudilake
from binlake.cli.commands.proof.verify import NOT_COMPARED
from binlake.position.record_reader import RecordKey
from hudilake.errors import CorruptDataError
from hudilake.format.timeline.commit_metadata import CommitMetadata
from hudilake.storage import open_storage
from tests.binlake.cli.fed_lake import FedLake
from tests.binlake.stream.topic_log import event
from tests.hudilake.services.fsck.contents_plants import one_cell, plant

Extra = dict[str, Any]


@pytest.fixture
def lake(tmp_path: Path) -> FedLake:
    made = FedLake(tmp_path, {"compaction": {"mode": "off"}, "retention": {"commits": 50}})
    made.feed(4)
    return made


def forge(lake: FedLake, change: Callable[[Extra], None], commit: int = 2) -> str:
    """Rewrite what the n-th commit of ``shop.a`` says of itself; its instant."""
    instant = lake.commits()[commit]
    (file,) = (lake.path / "shop/a/.hoodie/timeline").glob(f"{instant}_*.deltacommit")
    body = CommitMetadata.from_bytes(file.read_bytes(), str(file))
    extra = {key: json.loads(text) if text[0] in "{[" else text for key, text in body.extra.items()}
    change(extra)
    texts = {key: said if isinstance(said, str) else json.dumps(said) for key, said in extra.items()}
    file.write_bytes(CommitMetadata(body.stats, texts, body.operation).to_bytes())
    return instant


def forget_records(place: Path, topic: str) -> None:
    """Delete the quarantined records of a topic, as nobody should."""
    table = hudilake.open_table(str(place))
    table.delete([row for row in table.scan().to_arrow().to_pylist() if row["topic"] == topic])


def told(lake: FedLake, *options: str) -> tuple[int, str]:
    done = lake.run("audit", "shop.a", *options)
    return done.exit_code, done.stdout


def test_a_sound_lake(lake: FedLake) -> None:
    done = lake.run("audit")
    assert done.exit_code == 0
    for name in "ab":
        assert f"shop.{name}: 4 commits; all accounted for; offsets without a gap" in done.stdout
    assert "shop: read 14 = applied 13 + superseded 1 + filtered 0 + quarantined 0" in done.stdout
    table = lake.json("audit")[0]
    assert table["streams"]["shop"]["read"] == sum(len(r) for (t, _), r in lake.log.records.items() if t == "s.shop.a")


def test_every_fate_is_counted(lake: FedLake) -> None:
    topic = "s.shop.a"
    lake.log.add(topic, None, {"id": 7})
    lake.log.add(topic, b"{broken", {"id": 7})
    bad = event("a", "u", 900, {"id": 1, "owner": "o", "colour": "red"})
    lake.log.add(topic, bad, {"id": 1})
    for pos in (901, 902):
        lake.log.add(topic, event("a", "u", pos, {"id": 1, "owner": "o", "balance": "AfQ=", "region": ""}), {"id": 1})
    lake.feed(1)
    last = [line for line in lake.json("audit", "shop.a", "--commits") if "counts" in line][-1]
    assert {name: last["counts"][name] for name in ("superseded", "quarantined")} == {"superseded": 3, "quarantined": 1}
    assert told(lake)[0] == 0


@pytest.mark.parametrize("left", ["nothing", "another's", "erased"])
def test_a_quarantine_that_is_not_there_is_told(lake: FedLake, left: str) -> None:
    for table in ("a", "b"):
        lake.log.add(f"s.shop.{table}", event(table, "u", 900, {"id": 1, "colour": "red"}), {"id": 1})
    lake.feed(1)
    assert told(lake)[0] == 0
    place = lake.path / lake.settings.quarantine_path
    if left == "erased":
        open_storage(str(place)).write(".hoodie/.binlake/erasures/1.json", b'{"time": "20260101000000000"}')
    shutil.rmtree(place) if left == "nothing" else forget_records(place, "s.shop.a")
    code, text = told(lake)
    assert code == (NOT_COMPARED if left == "erased" else CorruptDataError.exit_code)
    assert "1 record is said to be in quarantine, which has none of the commit's offsets" in text
    assert lake.run("audit", "shop.b").exit_code == (CorruptDataError.exit_code if left == "nothing" else 0)


@pytest.mark.full
def test_archived_commits_count(tmp_path: Path) -> None:
    made = FedLake(tmp_path, {"compaction": {"mode": "off"}, "retention": {"commits": 1}})
    made.feed(80, tables=("a",))
    code, text = told(made)
    assert code == 0
    assert "shop.a: 80 commits (" in text
    assert " archived); all accounted for; offsets without a gap" in text


def test_replays_of_quarantined_records_are_a_stream_of_their_own(lake: FedLake) -> None:
    lake.log.add("s.shop.a", event("a", "u", 900, {"id": 1, "owner": "o", "colour": "red"}), {"id": 1})
    lake.feed(1)
    document = json.loads(lake.conf.read_text())
    document["source"]["schemas"]["shop.a"]["columns"]["colour"] = "varchar(10)"
    lake.conf.write_text(json.dumps(document))
    lake.run("quarantine replay")
    code, text = told(lake)
    assert code == 0
    assert "  shop.quarantine: read 1 = applied 1 + superseded 0" in text
    assert "offsets without a gap" in text


def lose_a_record(extra: Extra) -> None:
    extra[RecordKey.COUNTS]["applied"] -= 1


def count_below_nothing(extra: Extra) -> None:
    extra[RecordKey.COUNTS] |= {"applied": extra[RecordKey.COUNTS]["applied"] + 1, "filtered": -1}


def claim_a_row(extra: Extra) -> None:
    counts = extra[RecordKey.COUNTS]
    counts |= {"applied": counts["applied"] + 1, "read": counts["read"] + 1}


def cover_more(extra: Extra) -> None:
    extra[RecordKey.OFFSETS]["s.shop.a"]["0"][1] += 1


def stand_further_back(extra: Extra) -> None:
    extra[RecordKey.POSITIONS]["shop"]["s.shop.a"]["0"] -= 1


def forget_the_counts(extra: Extra) -> None:
    del extra[RecordKey.COUNTS]


def count_in_words(extra: Extra) -> None:
    extra[RecordKey.COUNTS]["read"] = "many"


@pytest.mark.first(3)
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lose_a_record, "the records are not accounted for: read 4, but applied 3 + superseded 0"),
        (count_below_nothing, "the records are not accounted for"),
        (claim_a_row, "5 records are said to be applied, but the files hold 4 rows"),
        (cover_more, "are covered by the commits"),
        (stand_further_back, "but leaves the position"),
        (forget_the_counts, "the commit's counts cannot be read: there are none"),
        (count_in_words, "the commit's counts cannot be read"),
    ],
)
def test_what_is_wrong_is_told(lake: FedLake, change: Callable[[Extra], None], words: str) -> None:
    instant = forge(lake, change)
    code, text = told(lake)
    assert code == 66
    assert words in text
    assert f"instant {instant}" in text
    assert lake.run("audit", "shop.b").exit_code == 0


def test_a_gap_is_told_and_strictly_an_error(lake: FedLake) -> None:
    def cover_less(extra: Extra) -> None:
        extra[RecordKey.OFFSETS]["s.shop.a"]["0"][0] += 1

    forge(lake, cover_less)
    assert "1 gaps between the offset ranges" in told(lake)[1]
    assert told(lake)[0] == 0
    assert told(lake, "--strict")[0] == 66


def test_a_commit_that_cannot_be_read(lake: FedLake) -> None:
    instant = lake.commits()[1]
    (file,) = (lake.path / "shop/a/.hoodie/timeline").glob(f"{instant}_*.deltacommit")
    file.write_bytes(b"")
    assert told(lake) == (66, told(lake)[1])
    assert "the commit's file cannot be read" in told(lake)[1]


def test_a_changed_cell_in_a_file_is_found(lake: FedLake) -> None:
    done = lake.run("audit", "shop.a")
    assert (done.exit_code, " files hold the " in done.stdout) == (0, True)
    assert lake.json("audit", "shop.a")[0]["contents"]["undetermined"] == 0
    file = next((lake.path / "shop/a").rglob("*.log.*"))
    assert plant(file, one_cell)
    code, text = told(lake)
    assert code == CorruptDataError.exit_code
    assert f"error: its rows are not those that its commit wrote [{file.relative_to(lake.path / 'shop/a')}" in text
    assert told(lake, "--no-contents")[0] == 0  # the control: the commits alone do not tell it


def test_files_of_commits_without_sums_are_named_and_have_an_exit_code(lake: FedLake) -> None:
    (file,) = (lake.path / "shop/a/.hoodie/timeline").glob(f"{lake.commits()[1]}_*.deltacommit")
    body = CommitMetadata.from_bytes(file.read_bytes(), str(file))
    stats = tuple(replace(stat, contents=None) for stat in body.stats)
    file.write_bytes(CommitMetadata(stats, body.extra, body.operation).to_bytes())
    code, text = told(lake, "--commits")
    assert code == NOT_COMPARED
    named = text.count("info: its contents are not determined: no readable commit records what it holds")
    assert named >= len(stats)
    assert f"{named} files are not determined (--commits names them)" in text
