"""The pages of a table, a stream, a query, the quarantine and lineage: what they say is what the commands say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from binlake.cli.app import app
from binlake.cli.console.query_page import ROWS, first_query, run_query
from binlake.cli.console.stream_page import stages
from binlake.cli.console.table_page import group_map, lanes
from binlake.cli.console.table_picture import TimelineMove, table_picture
from binlake.stream.monitoring.monitor import Monitor
from binlake.stream.monitoring.progress import ProgressEvent
from binlake.tables.seal import SEALED, Seal
from hudilake.errors import ConfigError
from hudilake.storage import open_storage
from tests.binlake.cli.console.watched_lake import Watched, rows_of, words_of
from tests.binlake.cli.fed_lake import FedLake
from tests.whole.security.hostile import HostileTopic

HTML = '<img src=x onerror="alert(1)">'


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> FedLake:
    lake = FedLake(tmp_path_factory.mktemp("pages"))
    lake.feed(5)
    assert lake.run("compact", "shop.a").exit_code == 0
    lake.feed(1)
    return lake


@pytest.fixture(scope="module")
def seen(lake: FedLake) -> Watched:
    return Watched.of(lake.conf)


def test_a_table_has_its_timeline_groups_columns_and_properties(lake: FedLake, seen: Watched) -> None:
    page = seen.page("/table", table="shop.a")
    picture = table_picture(open_storage(f"{lake.path}/shop/a"), "shop", 60)
    for move in picture.moves:
        assert f"{move.lane} {move.instant}" in page
    assert {move.lane for move in picture.moves} >= {"stream", "compaction"}
    commits = [cells for cells in rows_of(page) if cells[1:2] == ["stream"]]
    assert commits[0][0] == lake.commits("a")[-1]
    assert "s.shop.a/0:" in commits[0][7]
    assert page.count('class="q') == picture.groups == len(lake.table().file_slices())
    columns = {cells[0]: cells for cells in rows_of(page) if cells[0] in lake.table().schema.names}
    assert set(columns) == set(lake.table().schema.names)
    assert columns["id"][2:5] == ["key", "0", str(lake.batches - 1)]
    assert "hoodie.table.version" in page
    for shade in ("log ratio", "log files", "no such shade"):
        seen.page("/table", table="shop.a", shade=shade)


def test_lanes_put_each_instant_beside_the_others_and_pending_ones_look_so() -> None:
    moves = [
        TimelineMove(str(n), lane, state, "", None)
        for n, (lane, state) in enumerate(
            [("stream", "completed"), ("clean", "completed"), ("compaction", "requested"), ("stream", "inflight")]
        )
    ]
    drawn = lanes(moves)
    assert [name for name, _ in drawn.labels] == ["stream", "clean", "compaction"]
    assert len({mark.x for mark in drawn.marks}) == len(moves)
    assert drawn.marks[0].y == drawn.marks[3].y != drawn.marks[1].y
    assert [mark.look.split()[0] for mark in drawn.marks] == [move.state for move in moves]
    assert all(mark.x < drawn.width and mark.y < drawn.height for mark in drawn.marks)
    assert lanes([]).marks == group_map([], "size").marks == []


def test_a_stream_has_its_partitions_and_what_is_held_back(seen: Watched) -> None:
    page = seen.page("/stream", stream="shop")
    ledger = seen.watch.view.stream.ledger if seen.watch.view.stream is not None else None
    assert ledger is not None
    said = {cells[0]: cells[2] for cells in rows_of(page)}
    for topic, _, position in ledger.positions.places():
        assert said[topic] == f"{position:,}"
    assert "the stream does not run" in page


def test_stages_are_those_of_the_metrics_in_their_order() -> None:
    monitor = Monitor(60)
    for ms in (10.0, 30.0):
        monitor.update(ProgressEvent(1, ms, {"commit": ms, "fetch": 2.0, "plan": 1.0, "publish": 5.0}))
    known = stages(monitor.render())
    assert [(one.name, one.batches, one.inner) for one in known] == [
        ("plan", 2, False), ("fetch", 2, True), ("commit", 2, False), ("publish", 2, True)]  # fmt: skip
    assert known[2].mean_ms == pytest.approx(20.0)
    assert stages("") == []


def test_a_query_gives_rows_and_what_each_step_of_its_plan_left(lake: FedLake, seen: Watched) -> None:
    page = seen.page("/query", sql="select id, owner from shop.a where id = 5", run="1")
    assert ["5", "o5"] in rows_of(page)
    assert "left to read: 1 file slices" in words_of(page)
    first = lake.commits("b")[0]
    assert "0" in words_of(seen.page("/query", sql="select id from shop.b", as_of=first, run="1"))
    assert ["5", "o5"] not in rows_of(page.replace("o5", ""))  # the control: the search sees cells


def test_the_difference_of_two_commits_is_what_changes_prints(lake: FedLake, seen: Watched) -> None:
    commits = lake.commits("a")
    since, until = commits[-2], commits[-1]
    page = seen.page("/query", table="shop.a", since=since, until=until, diff="1")
    shown = [cells for cells in rows_of(page.partition('id="changes"')[2]) if len(cells) == 3]
    done = {one.requested_time: one.completion_time for one in lake.table("a").timeline.completed()}
    words = ["shop.a", "--conf", str(lake.conf), "--since", str(done[since]), "--until", str(done[until]), "--json"]
    printed = [json.loads(line) for line in CliRunner().invoke(app, ["changes", *words]).stdout.splitlines()]
    kinds = {"i": "insert", "u": "update", "d": "delete"}
    assert [cells[1] for cells in shown] == [kinds[one["op"]] for one in printed]
    assert {cells[0] for cells in shown} == {until}
    updated = next(cells for cells in shown if cells[1] == "update")
    assert " -> o" in updated[2]
    everything = seen.page("/query", table="shop.a", diff="1")
    assert everything.count("insert") > page.count("insert")
    assert "no row changed" in seen.page("/query", table="shop.a", since=until, until=until, diff="1")
    assert "no such commit" in words_of(seen.page("/query", table="shop.a", since="20200101000000000", diff="1"))


def test_a_query_that_writes_is_wrong_or_reads_files_is_refused_with_words(seen: Watched) -> None:
    for sql in ("drop table shop.a", "select * from shop.none", "select * from read_csv('/etc/passwd')", "select from"):
        page = seen.page("/query", sql=sql, run="1")
        assert 'role="alert"' in page, sql
        assert "root:" not in page


def test_a_query_ends_after_enough_rows_or_time(lake: FedLake) -> None:
    many = "select range from range(100000)"
    bounded = run_query(str(lake.conf), f"select a.id, r.range from shop.a a, ({many}) r", "")
    assert len(bounded.rows) == ROWS
    assert bounded.ended == f"the first {ROWS} rows"
    late = run_query(str(lake.conf), "select 1 from shop.a", "", seconds=0.0)
    assert (late.rows, late.ended) == ([], "the query was ended after 0 s")


def test_time_travel_goes_over_the_commits_and_a_row_tells_why(lake: FedLake, seen: Watched) -> None:
    page = seen.page("/query", table="shop.a", key="4")
    assert all(instant in page for instant in lake.commits("a"))
    versions = [cells for cells in rows_of(page) if len(cells) == 6]
    assert versions[-1][4].startswith("live")
    assert "owner=o5" in versions[-1][5]
    assert first_query('shop.a"b') == 'select * from "shop"."a""b" limit 50'


def test_lineage_leads_from_a_commit_to_offsets_batch_and_files(lake: FedLake, seen: Watched) -> None:
    instant = lake.commits("a")[-1]
    [told] = lake.json("lineage", "shop.a", "--commit", instant)
    [commit] = told["commits"]
    assert commit["by"] == "stream"
    assert commit["batch"] == lake.batches - 1
    assert commit["offsets"] == {"s.shop.a": {"0": [told["positions"]["s.shop.a"]["0"] - lake.batches - 1,
                                                     told["positions"]["s.shop.a"]["0"]]}}  # fmt: skip
    assert all((lake.path / "shop/a" / path).exists() for path in commit["files"])
    page = words_of(seen.page("/lineage", table="shop.a", commit=instant))
    assert all(path in page for path in commit["files"])
    [of_key] = lake.json("lineage", "shop.a", "--key", "4")
    assert {one["instant"] for one in of_key["commits"]} >= {instant}
    assert lake.json("lineage", "shop.a", "--source") == [{"source": "shop.a", "feeds": {"shop.a": "its rows"}}]
    assert lake.json("lineage", "shop.none", "--source") == [
        {"source": "shop.none", "feeds": {"shop.none": "its rows"}}
    ]
    for wrong in (["--commit", "1"], ["--commit", instant, "--source"]):
        assert isinstance(lake.run("lineage", "shop.a", *wrong).exception, ConfigError)
    assert seen.get("/lineage", table="shop.a", commit="1").status_code == 404


def test_addresses_that_name_nothing_are_said_so(seen: Watched) -> None:
    for path, asked in (
        ("/table", {"table": "no.ne"}),
        ("/stream", {"stream": "none"}),
        ("/lineage", {}),
        ("/table", {}),
    ):
        answer = seen.get(path, **asked)
        assert answer.status_code == 404
        assert "Next:" in answer.text


def test_a_page_of_another_site_can_ask_for_nothing(seen: Watched) -> None:
    for site, status in (("cross-site", 404), ("same-site", 404), ("same-origin", 200), ("none", 200)):
        answer = seen.client.get("/query", params={"table": "shop.a"}, headers={"sec-fetch-site": site})
        assert answer.status_code == status


def test_hostile_names_and_values_are_text_on_every_page(tmp_path: Path) -> None:
    topic = HostileTopic(tmp_path)
    topic.put("shop", HTML, {"id": 1, "v": HTML})
    topic.log.add("t", b"{broken <script>alert(1)</script> \x1b[2J", None)
    topic.batch()
    seen, table = Watched.of(topic.conf), f"shop.{HTML}"
    asked: list[tuple[str, dict[str, str]]] = [
        ("/table", {"table": table}),
        ("/table", {"table": f"{table}none"}),
        ("/query", {"table": table, "key": "1"}),
        ("/query", {"sql": first_query(table), "run": "1"}),
        ("/lineage", {"table": table}),
        ("/quarantine", {"reason": "malformed_json", "table": "-"}),
        ("/stream", {}),
    ]
    for path, given in asked:
        page = seen.get(path, **given).text
        assert re.search(r"<img|<script(?! src=\"/static/)|onerror=\"|\x1b", page) is None, (path, given)
        assert "&lt;" in page or path == "/stream", path


def test_sealed_records_stay_sealed() -> None:
    closed, sealed = Seal(None, opens=False), Seal("secret").seal(b"value")
    assert closed.open(sealed) == SEALED
    assert closed.open(b"plain") == b"plain"
    assert Seal("secret").open(sealed) == b"value"  # the control
