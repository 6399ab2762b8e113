"""The pages of a table, a stream, a query, the quarantine and lineage: what they say is what the commands say."""

from __future__ import annotations

import json
import re
import socket
import time
from datetime import date
from html import unescape
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

from binlake.cli.app import app
from binlake.cli.commands.reads.console import served, watched
from binlake.cli.console import query_page
from binlake.cli.console.group_map import map_of_skips, map_of_values
from binlake.cli.console.page import address as page_address
from binlake.cli.console.query_page import CELLS, ROWS, first_query, run_query
from binlake.cli.console.stream_page import stage_charts
from binlake.cli.console.table_page import lanes
from binlake.cli.console.table_picture import TimelineMove, table_picture
from binlake.settings import Settings
from binlake.stream.monitoring.monitor import Monitor
from binlake.stream.monitoring.progress import BatchTimes, ProgressEvent
from binlake.tables.seal import SEALED, Seal
from hudilake.errors import ConfigError
from hudilake.format.files.names import BaseFileName
from hudilake.format.files.view import BaseFile, FileSlice
from hudilake.read import Snapshot, TableReader
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


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("binlake.cli.console.query_page.SECONDS", 600.0)  # no test judges by the clock


@pytest.fixture(scope="module")
def seen(lake: FedLake) -> Watched:
    return Watched.of(lake.conf)


def test_a_table_has_its_timeline_groups_columns_and_properties(lake: FedLake, seen: Watched) -> None:
    page = seen.page("/table", table="shop.a")
    picture = table_picture(lake.table("a"), "shop", 60)
    for move in picture.moves:
        assert f"{move.words} {move.instant}" in page
    assert {move.words for move in picture.moves} >= {"stream", "compaction"}
    assert {(move.lane, move.action) for move in picture.moves} >= {
        ("commits", "deltacommit"),
        ("compactions", "commit"),
    }
    commits = [cells for cells in rows_of(page) if cells[1:2] == ["stream"]]
    assert commits[0][0] == lake.commits("a")[-1]
    assert "s.shop.a/0:" in commits[0][7]
    drawn = page.partition('class="drawing" width="')[2]
    squares = re.findall(r"<g><title>.*?</g>", page.partition('<ul class="legend"')[0])
    assert drawn
    assert len(squares) == picture.groups == len(lake.table().file_slices())
    columns = {cells[0]: cells for cells in rows_of(page) if cells[0] in lake.table().schema.names}
    assert set(columns) == set(lake.table().schema.names)
    assert columns["id"][2:5] == ["key", "0", str(lake.batches - 1)]
    assert "hoodie.table.version" in page
    for shade in ("log ratio", "log files", "skipping", "no such shade"):
        seen.page("/table", table="shop.a", shade=shade)


def test_the_map_shows_which_file_groups_a_condition_skips(lake: FedLake, seen: Watched) -> None:
    for where in ("id = 5", "id >= 0", "id = 5 and owner like '%x'", "id > 1000"):
        page = seen.page("/table", table="shop.a", where=where)
        plan = TableReader(lake.table("a")).plan(Snapshot(), where, count_all=True)
        left = {piece.file_id for piece in plan.slices}
        shown = {cells[0]: cells[5] for cells in rows_of(page) if len(cells) == 6 and cells[5] in ("read", "skipped")}
        assert shown == {s.file_id: "read" if s.file_id in left else "skipped" for s in lake.table("a").file_slices()}
        crossed = page.partition('<ul class="legend"')[0].count('class="cross"')
        assert crossed == len(shown) - len(left)
        assert plan.steps[-1].name in words_of(page)
    assert "not understood" in words_of(seen.page("/table", table="shop.a", where="length(owner) = 2"))
    for wrong in ("nonsense = 1", "id = ", "id = '", "; drop table", "id = (select 1)", "(" * 40):
        page = seen.page("/table", table="shop.a", where=wrong)
        assert 'role="alert"' in page or "not understood" in page, wrong


def test_a_map_says_its_values_by_colour_height_and_words() -> None:
    slices = [_piece(str(n), base) for n, base in enumerate((600, 600, 350, 100, 0))]
    drawn = map_of_values(slices, "size")
    looks = [(one.look, one.filled) for one in drawn.squares]
    assert looks == [("q5", 14), ("q5", 14), ("q3", 9), ("q1", 4), ("q0", 2)]
    assert drawn.summary == "5 file groups by size: 0 B: 1, 100 B: 1, 350 B: 1, 600 B: 2"
    assert [one.look for one in drawn.samples] == ["q0", "q1", "q3", "q5"]
    skipped = map_of_skips(slices, slices[1:3])
    assert [one.crossed for one in skipped.squares] == [True, False, False, True, True]
    assert skipped.summary == "5 file groups by skipping: read: 2, skipped: 3"
    many = map_of_values([_piece(str(n), 1) for n in range(100)], "size")
    assert len({(one.x, one.y) for one in many.squares}) == 100
    assert all(one.x < many.width and one.y < many.height for one in many.squares)


def _piece(name: str, size: int) -> FileSlice:
    return FileSlice("", name, BaseFile("", BaseFileName(name, "20260101000000000"), size), ())


def test_lanes_put_each_instant_beside_the_others_and_pending_ones_look_so() -> None:
    moves = [
        TimelineMove(str(n), "", lane, state, "", None)
        for n, (lane, state) in enumerate(
            [("commits", "completed"), ("cleans", "completed"), ("compactions", "requested"), ("commits", "inflight")]
        )
    ]
    drawn = lanes(moves)
    assert [name for name, _ in drawn.labels] == ["commits", "cleans", "compactions"]
    assert len({mark.x for mark in drawn.marks}) == len(moves)
    assert drawn.marks[0].y == drawn.marks[3].y != drawn.marks[1].y
    assert [mark.look.split()[0] for mark in drawn.marks] == [move.state for move in moves]
    assert all(mark.x < drawn.width and mark.y < drawn.height for mark in drawn.marks)
    assert not lanes([]).marks
    assert not map_of_values([], "size").squares


def test_a_stream_has_its_partitions_and_what_is_held_back(seen: Watched) -> None:
    page = seen.page("/stream", stream="shop")
    ledger = seen.watch.view.stream.ledger if seen.watch.view.stream is not None else None
    assert ledger is not None
    said = {cells[0]: cells[2] for cells in rows_of(page)}
    for topic, _, position in ledger.positions.places():
        assert said[topic] == f"{position:,}"
    assert "the stream does not run" in page


def test_stages_are_those_of_the_last_batches_in_their_order_and_of_one_scale() -> None:
    monitor = Monitor(60)
    for number, ms in enumerate((10.0, 30.0)):
        stages = {"commit": ms, "fetch": 3.0, "plan": 1.0} | ({"publish": 5.0} if number else {})
        monitor.update(ProgressEvent(number, ms, stages))
    charts = stage_charts([BatchTimes(**fields) for fields in json.loads(json.dumps(monitor.batches()))])
    assert [(one.name, one.inner, list(one.values)) for one in charts] == [
        ("plan", False, [1.0, 1.0]), ("fetch", True, [3.0, 3.0]), ("commit", False, [10.0, 30.0]), ("publish", True, [None, 5.0])]  # fmt: skip  # noqa: E501
    assert [list(one.bars) for one in charts] == [[1.2, 1.2], [3.6, 3.6], [12.0, 36.0], [0.0, 6.0]]
    assert (charts[2].last_ms, charts[2].mean_ms, charts[2].most_ms) == (30.0, 20.0, 30.0)
    assert stage_charts([]) == []
    for number in range(200):
        monitor.update(ProgressEvent(number, 1.0, {"plan": 1.0}))
    assert [one["batch"] for one in monitor.batches()] == list(range(140, 200))


@pytest.mark.full
def test_a_query_gives_rows_and_what_each_step_of_its_plan_left(lake: FedLake, seen: Watched) -> None:
    page = seen.page("/query", sql="select id, owner from shop.a where id = 5", run="1")
    assert ["5", "o5"] in rows_of(page)
    assert "left to read: 1 file slice" in words_of(page)
    words = ["explain", "select id, owner from shop.a where id = 5", "--conf", str(lake.conf), "--json"]
    explained = json.loads(CliRunner().invoke(app, words).stdout.splitlines()[0])
    steps = {cells[0]: cells[1:4] for cells in rows_of(page) if len(cells) == 6}
    for step in explained["steps"]:
        counts = (step["partitions"], step["slices"], step["files"])
        assert steps[step["name"]] == ["" if count is None else f"{count:,}" for count in counts]
    inside = explained["inside"]
    assert f"{inside['row_groups']} of {inside['of_row_groups']} row groups" in words_of(page)
    assert "was read" in words_of(page)
    first = lake.commits("b")[0]
    assert "0" in words_of(seen.page("/query", sql="select id from shop.b", as_of=first, run="1"))
    assert ["5", "o5"] not in rows_of(page.replace("o5", ""))  # the control: the search sees cells
    joined = seen.page("/query", sql="select count(*) from shop.a a join shop.b b on a.id = b.id", run="1")
    assert joined.count('aria-label="plan of ') == 2
    assert "null" in words_of(seen.page("/query", sql="select null as n from shop.a limit 1", run="1"))


@pytest.mark.full
def test_a_difference_is_of_the_values_and_not_of_what_is_shown_of_them() -> None:
    long = "x" * 10_000
    for before, after in [(None, "null"), (long + "a", long + "b"), ({"d": date(2024, 2, 29)}, {"d": None})]:
        assert " -> " in query_page._changed_cell("name", before, after, "u")
    assert query_page._changed_cell("name", {"d": date(2024, 2, 29)}, {"d": date(2024, 2, 29)}, "u") == (
        'name={"d": "2024-02-29"}'
    )


def test_spaces_of_a_key_are_the_keys_own(lake: FedLake, seen: Watched) -> None:
    """They were cut off, so that the history of another row was shown."""
    assert "is no value of column id" in words_of(seen.page("/query", table="shop.a", key=" 3"))
    assert "version of such a row" not in words_of(seen.page("/query", table="shop.a", key="3"))


def test_time_travel_and_the_difference_keep_each_other(lake: FedLake, seen: Watched) -> None:
    first, second = lake.commits("a")[-2:]  # older ones were cleaned
    sql = "select id from shop.a"
    page = seen.page("/query", sql=sql, as_of=first, run="1", since=first, until=second)
    assert f"<option selected>{first}" in page  # the table is that of the query, whose commits the slider goes over
    assert f'value="{lake_position(page, first)}" data-moments' in page
    assert f'name="sql" value="{sql}"' in page
    compared = seen.page("/query", table="shop.a", sql=sql, as_of=first, since=first, until=second, diff="1")
    assert f">\n{sql}</textarea>" in compared
    assert f'name="as_of" value="{first}"' in compared
    assert ">insert<" in compared.partition('id="changes"')[2]
    wrong = seen.page("/query", sql="select id from shop.a", as_of="yesterday", run="1")
    assert 'role="alert"' in wrong


def lake_position(page: str, moment: str) -> int:
    """The place of a commit among those of the slider."""
    return page.partition('data-moments="')[2].partition('"')[0].split(" ").index(moment)


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


@pytest.mark.parametrize("control", ["sql", "as_of", "key", "table"])
def test_a_form_holds_what_was_given(seen: Watched, control: str) -> None:
    """Pages print other text on one line, with escapes; a form that came back so would ask for something else."""
    given = {"sql": "select 1 as n,\n  '<\u202e&\"' as t", "as_of": "2024\t02", "key": "a=1\tb", "table": "shop.a\tb"}
    page = seen.get("/query", **{control: given[control]}).text
    place = rf'<textarea id="{control}"[^>]*>\n(.*?)</textarea>|<input id="{control}"[^>]* value="(.*?)"'
    found = re.search(place, page, re.DOTALL)
    assert found is not None
    assert unescape(found[1] or found[2]) == given[control]


@pytest.mark.full
def test_a_query_that_is_too_long_for_an_address_is_taken_as_a_form(seen: Watched) -> None:
    sql = f"select count(*) as n from shop.a where id in ({', '.join(map(str, range(1000, 13_000)))}) or id = 3"
    assert len(sql) > 65_536
    answer = seen.client.post("/query", data={"sql": sql, "run": "1"})
    assert answer.status_code == 200
    assert 'role="alert"' not in answer.text, words_of(answer.text)[-500:]
    assert ["1"] in rows_of(answer.text)
    assert seen.client.post("/query", data={"sql": "x" * (1 << 20)}).status_code == 413
    assert seen.client.post("/table", data={"table": "shop.a"}).status_code == 405
    for headers in ({"sec-fetch-site": "cross-site"}, {"origin": "http://evil.example"}):
        assert seen.client.post("/query", data={"sql": sql, "run": "1"}, headers=headers).status_code in (403, 404)


def test_a_query_that_writes_is_wrong_or_reads_files_is_refused_with_words(seen: Watched) -> None:
    for sql in ("drop table shop.a", "select * from shop.none", "select * from read_csv('/etc/passwd')", "select from"):
        page = seen.page("/query", sql=sql, run="1")
        assert 'role="alert"' in page, sql
        assert "root:" not in page


@pytest.mark.full
def test_a_query_ends_after_enough_rows_or_time(lake: FedLake) -> None:
    many = "select range from range(100000)"
    bounded = run_query(str(lake.conf), f"select a.id, r.range from shop.a a, ({many}) r", "")
    assert len(bounded.rows) == ROWS
    assert bounded.ended == f"the first {ROWS} rows"
    late = run_query(str(lake.conf), "select 1 from shop.a", "", seconds=0.0)
    assert (late.rows, late.ended) == ([], "the query was ended after 0 s")


@pytest.mark.full
def test_wide_and_long_answers_are_bounded_and_lose_no_column(lake: FedLake) -> None:
    wide = ", ".join(f"{n} as c{n}" for n in range(500))
    bounded = run_query(str(lake.conf), f"select {wide} from shop.a, range(200)", "")
    assert (len(bounded.columns), len(bounded.rows)) == (500, CELLS // 500)
    assert bounded.ended == f"the first {CELLS // 500} rows: more are too large for this page"
    same = run_query(str(lake.conf), "select 7 as a, 8 as a, null as b, '' as c from shop.a limit 1", "")
    assert (same.columns, same.rows) == (["a", "a_1", "b", "c"], [["7", "8", None, ""]])


def test_a_query_that_nobody_waits_for_ends_and_others_wait_for_their_turn(
    lake: FedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless = "select sum(r.range % 7 + q.range % 5) from shop.a, range(1000000000) r, range(1000000000) q"
    settings = {str(lake.conf): Settings.load(lake.conf)}
    monkeypatch.setattr(query_page, "TURN_S", 0.0)
    with watched(settings, ask_kafka=False) as site, served(site, "127.0.0.1", 0) as address:
        place = urlsplit(address)
        clients = []
        for _ in range(query_page.AT_ONCE):
            client = socket.create_connection((place.hostname, place.port))
            path = page_address("/query", sql=endless, run="1")
            client.sendall(f"GET {path} HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode())
            clients.append(client)
        while query_page._turns._value:
            time.sleep(0.05)
        assert "queries run here already" in run_query(str(lake.conf), "select 1 from shop.a", "").error
        for client in clients:
            client.close()
        while query_page._turns._value < query_page.AT_ONCE:
            time.sleep(0.05)


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
    for wrong in (["shop.none", "--source"], ["shop.a", "--commit", "1"], ["shop.a", "--commit", instant, "--source"]):
        assert isinstance(lake.run("lineage", *wrong).exception, ConfigError)
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


@pytest.mark.full
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
