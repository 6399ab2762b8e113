"""What the API says of lake tables: pages, moments, freshness, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hudilake.errors import TransientError
from hudilake.format.files.view import file_slices
from hudilake.storage import open_storage
from lakemetastore.api import paths
from lakemetastore.http.open_tables import OpenTables
from lakemetastore.http.options import ServeOptions
from tests.hudilake.metadata.indexed_table import IndexedTable
from tests.hudilake.read.lakes import new_table, row
from tests.lakemetastore.http.asking import get, post
from tests.lakemetastore.http.served import serving

PAGE = 3


@pytest.fixture
def table(tmp_path: Path) -> IndexedTable:
    table = new_table(tmp_path / "lake" / "t")
    table.write([row(key, 1) for key in range(40)])
    table.write([row(key, 2) for key in range(20)])
    return table


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    with serving([open_storage(str(tmp_path / "lake"))], ServeOptions(page=PAGE, body_bytes=100_000)) as found:
        yield found


def pages(address: str, path: str, items: str, **fields: str) -> list[Any]:
    """The items of all pages; none of them is longer than a page."""
    found: list[Any] = []
    while True:
        status, answer = get(address, path, **fields)
        assert status == 200, answer
        found += answer[items]
        assert len(answer[items]) <= PAGE
        if answer["after"] is None:
            return found
        fields["after"] = answer["after"]


def test_slices_come_in_pages(table: IndexedTable, address: str) -> None:
    location = table.storage.uri
    assert pages(address, paths.PARTITIONS, "partitions", location=location) == ["part=p0", "part=p1", "part=p2"]
    shown = pages(address, paths.SLICES, "slices", location=location, partition="part=p1")
    listed = [piece for piece in file_slices(table.storage, table.table.timeline) if piece.partition_path == "part=p1"]
    assert [piece["file_id"] for piece in shown] == [piece.file_id for piece in listed]
    logs = [[name for name, _ in piece["logs"]] for piece in shown]
    assert logs == [[str(log.name) for log in piece.log_files] for piece in listed]


def test_slices_of_an_earlier_moment(table: IndexedTable, address: str) -> None:
    first = table.table.timeline.completed()[0].requested_time
    fields = {"location": table.storage.uri, "partition": "part=p1"}
    now, then = (pages(address, paths.SLICES, "slices", **fields, **more) for more in ({}, {"as_of": first}))
    assert sum(len(piece["logs"]) for piece in now) == 2 * sum(len(piece["logs"]) for piece in then)


def test_a_partition_is_no_path(table: IndexedTable, address: str) -> None:
    for partition in ("part=p9", "..", "../t/part=p1", "/etc"):
        assert pages(address, paths.SLICES, "slices", location=table.storage.uri, partition=partition) == []


def test_column_ranges_bound_the_rows(table: IndexedTable, address: str) -> None:
    fields = {"location": table.storage.uri, "partition": "part=p1", "column": "id"}
    found = pages(address, paths.RANGES, "ranges", **fields)
    held = [one for one in found if one["rows"] > one["nulls"]]
    lows, highs = [int(one["low"]["value"]) for one in held], [int(one["high"]["value"]) for one in held]
    assert (min(lows), max(highs)) == (1, 37)
    assert {one["type"] for one in held} == {"LONG"}


def test_pruned_plans_for_a_condition_in_sql(table: IndexedTable, address: str) -> None:
    """By partition values, and by ranges of a column that is no partition column."""
    where = {"location": table.storage.uri}
    _, everything = post(address, paths.PLAN, {}, where)
    _, one_partition = post(address, paths.PLAN, {"condition": "part = 'p1'"}, where)
    _, by_range = post(address, paths.PLAN, {"condition": "name = 'n039'"}, where)
    left = [answer["steps"][-1]["slices"] for answer in (everything, one_partition, by_range)]
    assert left == [12, 4, 1]
    assert by_range["steps"][-1]["name"] == "column stats"


def test_parts_of_a_condition_that_skip_nothing_are_told(table: IndexedTable, address: str) -> None:
    _, answer = post(address, paths.PLAN, {"condition": "part = 'p1' AND nosuch = 3"}, {"location": table.storage.uri})
    assert answer["steps"][-1]["slices"] == 4
    assert "nosuch" in answer["warnings"][0]["what"]


def test_a_plan_in_pages_is_of_one_state(table: IndexedTable, address: str) -> None:
    where = {"location": table.storage.uri}
    _, first = post(address, paths.PLAN, {}, where)
    assert (len(first["slices"]), first["pages"]) == (PAGE, 4)
    _, last = post(address, paths.PLAN, {"state": first["state"], "page": 3}, where)
    assert len(last["slices"]) == PAGE
    assert not {piece["file_id"] + piece["partition"] for piece in first["slices"]} & {
        piece["file_id"] + piece["partition"] for piece in last["slices"]
    }
    table.write([row(1, 3)])
    _, moved = post(address, paths.PLAN, {"state": first["state"], "page": 1}, where)
    assert moved["table"]["state"] == moved["state"] != first["state"]
    assert moved["slices"] == []


def test_the_schema_now_and_as_of_an_instant(table: IndexedTable, address: str) -> None:
    first = table.table.timeline.completed()[0].requested_time
    for more in ({}, {"as_of": first}):
        _, answer = get(address, paths.SCHEMA, location=table.storage.uri, **more)
        assert answer["columns"]["price"] == "decimal128(10, 2)"
        assert "_hoodie_commit_time" not in answer["columns"]


def test_a_registered_instant_is_in_every_later_answer(table: IndexedTable, address: str) -> None:
    location = table.storage.uri
    table.write([row(1, 3)])
    newest = table.table.timeline.completed()[-1].requested_time
    _, answer = post(address, paths.INSTANTS, {"location": location, "instant": newest})
    assert answer["seen"]
    assert post(address, paths.INSTANTS, {"location": location, "instant": newest})[1] == answer
    _, instants = get(address, paths.TABLE, location=location, max_age_ms="3600000", at_least=newest)
    assert instants["instants"][-1]["requested"] == newest
    never = "29990101000000000"
    _, unseen = post(address, paths.INSTANTS, {"location": location, "instant": never})
    assert not unseen["seen"]
    assert get(address, paths.TABLE, location=location, at_least=never)[0] == 409


def test_old_answers_are_allowed_when_asked_for(table: IndexedTable, address: str) -> None:
    location = table.storage.uri
    _, before = get(address, paths.TABLE, location=location)
    table.write([row(1, 3)])
    assert get(address, paths.TABLE, location=location, max_age_ms="3600000")[1]["state"] == before["state"]
    assert get(address, paths.TABLE, location=location)[1]["state"] != before["state"]


def test_a_table_that_is_made_anew_is_read_anew(table: IndexedTable, address: str, tmp_path: Path) -> None:
    location = table.storage.uri
    get(address, paths.TABLE, location=location)
    table.storage.delete_tree("")
    assert get(address, paths.TABLE, location=location)[0] == 404
    again = new_table(tmp_path / "lake" / "t", buckets=1, part=None)
    again.write([row(1, 1)])
    assert pages(address, paths.PARTITIONS, "partitions", location=location) == [""]


@pytest.mark.first(4)
@pytest.mark.parametrize(
    ("location", "what"),
    [
        ("file:///etc", "none of the service's lakes"),
        ("{lake}/../secret", "none of the service's lakes"),
        ("{lake}/./t", "none of the service's lakes"),
        ("{lake}evil/t", "none of the service's lakes"),
        ("s3://elsewhere/t", "none of the service's lakes"),
        ("{lake}/absent", "no table at this location"),
    ],
)
def test_places_outside_of_the_lakes_are_not_opened(
    table: IndexedTable, address: str, tmp_path: Path, location: str, what: str
) -> None:
    lake = (tmp_path / "lake").as_uri()
    status, answer = get(address, paths.TABLE, location=location.format(lake=lake))
    assert status == 404
    assert what in answer["what"]


def test_bad_requests_are_told_what_is_wrong(table: IndexedTable, address: str) -> None:
    where = {"location": table.storage.uri}
    deep: dict[str, Any] = {"kind": "constant", "value": True}
    for _ in range(100):
        deep = {"kind": "not", "parts": [deep]}
    compare = {"kind": "compare", "column": "id", "op": "=", "value": {"type": "integer", "value": "x"}}
    cases: list[tuple[int, dict[str, Any] | bytes, str]] = [
        (400, {"condition": "id ="}, "the condition cannot be parsed"),
        (400, {"condition": deep}, "nested too deep"),
        (400, {"condition": compare}, "no literal of type integer"),
        (400, {"query": {"kind": "snapshot", "as_of": "yesterday"}}, "is not an instant"),
        (400, {"page": 1}, "a later page needs the state"),
        (422, {"page": -1}, "greater than or equal to 0"),
        (422, {"query": 3}, "query"),
        (422, b"{", "JSON"),
        (413, b" " * 100_001, "longer than 100000 bytes"),
    ]
    for status, body, what in cases:
        found, answer = post(address, paths.PLAN, body, where)
        assert found == status, (body[:80] if isinstance(body, bytes) else body, answer)
        assert what in answer["what"], answer
    assert get(address, paths.TABLE)[1]["what"] == "the request names no table, or two"
    assert get(address, paths.TABLE, table="shop.orders")[1]["what"] == "this service has no catalog"
    assert get(address, "/v1/nothing")[0] == 404


def test_a_store_that_hangs_holds_one_table_alone(
    table: IndexedTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests for it are told so after a while; other tables are answered meanwhile."""
    monkeypatch.setattr("lakemetastore.http.open_tables._LOCK_S", 0.2)
    other = new_table(tmp_path / "lake" / "other")
    other.write([row(1, 1)])
    tables = OpenTables([open_storage(str(tmp_path / "lake"))])
    with tables.at(table.storage.uri).hold():
        with pytest.raises(TransientError, match="other requests hold the table"), tables.at(table.storage.uri).hold():
            pass
        with tables.at(other.storage.uri).hold() as view:
            assert view.known.instants


@pytest.mark.first(1)
@pytest.mark.parametrize(
    "condition",
    [
        " OR ".join(f"id = {n}" for n in range(3000)),
        "(" * 5000 + "id = 1" + ")" * 5000,
        "id = " + "- " * 20_000 + "1",
        {"kind": "or", "parts": [{"kind": "is_null", "column": "id"}] * 2_000},
    ],
    ids=["ors", "brackets", "signs", "tree"],
)
def test_a_condition_that_is_too_large(table: IndexedTable, address: str, condition: object) -> None:
    status, answer = post(address, paths.PLAN, {"condition": condition}, {"location": table.storage.uri})
    assert status == 400
    assert answer["what"].startswith("the condition is")
    assert len(answer["what"].splitlines()) == 1


def test_a_body_that_is_nested_too_deep(table: IndexedTable, address: str) -> None:
    part = '{"kind": "not", "parts": ['
    for depth in (100, 5000, 100_000):
        tree = part * depth + '{"kind": "constant", "value": true}' + "]}" * depth
        status, _ = post(address, paths.PLAN, f'{{"condition": {tree}}}'.encode(), {"location": table.storage.uri})
        assert status in (400, 413, 422)
