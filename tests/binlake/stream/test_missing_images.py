"""Changes that come without the row before: where it decides what they change, they go to quarantine.

The flat form never has it, and a delete may have its key alone.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hudilake
from hudilake.storage import open_storage
from tests.binlake.stream.test_exactly_once import row, runner
from tests.binlake.stream.topic_log import LocalEngine, TopicLog, event, settings

Row = dict[str, Any]
BY_REGION: dict[str, Any] = {"partition": {"column": "region"}}
#: Tables whose rows are found without the row before.
SAFE: dict[str, dict[str, Any]] = {
    "no partitions": {},
    "the key has the partition": BY_REGION | {"key": ["id", "region"]},
    "a global index": BY_REGION | {"index": {"type": "record_index"}},
}


def envelope(op: str, pos: int, values: Row) -> Row:
    """Without a before image."""
    bare = event("orders", op, pos, values)
    return bare | {"before": None}


def flat(op: str, pos: int, values: Row) -> Row:
    place = {"__source_file": "mysql-bin.000003", "__source_pos": pos, "__source_ts_ms": 1_760_000_000_000}
    return values | {"__op": op, "__deleted": "true" if op == "d" else "false"} | place


FORMS: dict[str, Callable[[str, int, Row], Row]] = {"envelope": envelope, "flat": flat}


def applied(path: Path, log: TopicLog, rules: dict[str, Any]) -> tuple[list[Row], list[tuple[int, str]]]:
    """The rows of a table of these rules, and (offset, reason) of what is in quarantine."""
    key = rules.get("key", ["id"])
    rules = {name: value for name, value in rules.items() if name != "key"}
    columns = {"id": "bigint", "owner": "varchar(40)", "region": "varchar(10)"}
    source = {"schemas": {"shop.orders": {"columns": columns, "key": key}}}
    config = settings(str(path), ["orders"], source=source, tables={"defaults": rules})
    runner(config, open_storage(str(path), {"fsync": "false"})).run(0, log.end(), 0, LocalEngine(log))
    rows = hudilake.open_table(str(path / "shop/orders")).scan(["id", "owner", "region"]).to_arrow().to_pylist()
    held = path / "_quarantine" / "shop"
    bad = hudilake.open_table(str(held)).scan(["offset", "reason"]).to_arrow().to_pylist() if held.exists() else []
    return sorted(rows, key=str), sorted((one["offset"], one["reason"]) for one in bad)


def small(key: int, owner: str, region: str) -> Row:
    return {name: value for name, value in row(key, owner, region=region).items() if name != "balance"}


def moved(form: str) -> TopicLog:
    log, message = TopicLog(), FORMS[form]
    for n, (op, values) in enumerate([("c", small(1, "a", "eu")), ("u", small(1, "b", "us"))]):
        log.add("s.shop.orders", message(op, 10 + n, values), {"id": 1})
    return log


@pytest.mark.parametrize("form", FORMS)
def test_a_row_that_may_have_left_its_partition(tmp_path: Path, form: str) -> None:
    rows, bad = applied(tmp_path, moved(form), BY_REGION)
    assert rows == [small(1, "a", "eu")], "not in two partitions"
    assert bad == [(1, "missing_image")]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rules", SAFE)
def test_a_row_that_is_found_all_the_same(tmp_path: Path, form: str, rules: str) -> None:
    rows, bad = applied(tmp_path, moved(form), SAFE[rules])
    assert not bad
    if rules == "the key has the partition":  # Debezium writes such a change as a delete and an insert
        assert rows == [small(1, "a", "eu"), small(1, "b", "us")]
    else:
        assert rows == [small(1, "b", "us")]


@pytest.mark.parametrize("form", FORMS)
def test_a_promise_that_rows_stay(tmp_path: Path, form: str) -> None:
    log = TopicLog()
    for n, (op, values) in enumerate(
        [("c", small(1, "a", "eu")), ("u", small(1, "b", "eu")), ("c", small(2, "", "us"))]
    ):
        log.add("s.shop.orders", FORMS[form](op, 10 + n, values), {"id": 1})
    log.add("s.shop.orders", event("orders", "d", 20, small(2, "", "us")) | {"before": None}, {"id": 2})
    rows, bad = applied(tmp_path, log, BY_REGION | {"immutable_partition": True})
    assert rows == [small(1, "b", "eu"), small(2, "", "us")]
    assert bad == [(3, "missing_image")], "a key alone does not say the partition"


@pytest.mark.parametrize(("rules", "done"), [({}, True), (SAFE["a global index"], True), (BY_REGION, False)])
def test_a_delete_with_its_key_alone(tmp_path: Path, rules: dict[str, Any], done: bool) -> None:
    log = TopicLog()
    log.add("s.shop.orders", event("orders", "c", 10, small(1, "a", "eu")), {"id": 1})
    log.add("s.shop.orders", event("orders", "d", 20, small(1, "a", "eu")) | {"before": None}, {"id": 1})
    rows, bad = applied(tmp_path, log, rules)
    assert (rows, bad) == (([], []) if done else ([small(1, "a", "eu")], [(1, "missing_image")]))


def test_a_table_without_a_key(tmp_path: Path) -> None:
    log = TopicLog()
    for n, (op, values) in enumerate([("c", small(1, "a", "eu")), ("u", small(1, "b", "eu"))]):
        log.add("s.shop.orders", flat(op, 10 + n, values), None)
    rows, bad = applied(tmp_path, log, {"key": []})
    assert (rows, bad) == ([small(1, "a", "eu")], [(1, "missing_image")])


@pytest.mark.parametrize("seed", range(6))
def test_rows_are_right_or_named(tmp_path: Path, seed: int) -> None:
    """Any changes, with and without images: a key whose records are all applied has the row of the source."""
    dice = random.Random(seed)
    rules = dice.choice([BY_REGION, BY_REGION, SAFE["a global index"], {"key": []}, {}])
    log, source, keys_of = TopicLog(), dict[int, Row](), list[int]()
    for pos in range(10, 50):
        key, new = dice.randrange(5), small(0, dice.choice("ab"), dice.choice(["eu", "us"]))
        was, now = source.get(key), {**new, "id": key}
        op = "c" if was is None else dice.choice("uud")
        form = dice.choice(["flat", "whole"] if rules.get("key") is None else ["flat"])
        values = (was or now) if op == "d" else now
        told = event("orders", op, pos, values, was) if form == "whole" else FORMS[form](op, pos, values)
        log.add("s.shop.orders", told, {"id": key} if rules.get("key") is None else None)
        keys_of.append(key)
        if op == "d":
            del source[key]
        else:
            source[key] = now
    rows, bad = applied(tmp_path, log, rules)
    named = {keys_of[offset] for offset, _ in bad}
    sound = [one for one in rows if one["id"] not in named]
    assert sound == sorted((one for key, one in source.items() if key not in named), key=str), json.dumps(rules)
