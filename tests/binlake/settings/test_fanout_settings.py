"""Routes, columns and masks in the settings, and whole transactions: what they say, and their mistakes."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from binlake.decode.changes import SourceTable
from binlake.settings import Settings, SettingsError
from binlake.settings.fanout import ColumnsRule, Destination, MaskRule, ShardRule
from binlake.settings.sql_expression import check_expression

ROUTES = [
    {"match": r"shop\.tmp_.*", "to": None},
    {
        "match": r"(\w+)\.orders_(?P<no>\d\d)",
        "to": "{1}.orders",
        "shard": {"column": "shard", "value": "{database}-{no}"},
    },
    {"match": r"old\.(.+)", "to": "shop.{1}"},
]


def settings(environ: dict[str, str] | None = None, **sections: Any) -> Settings:  # noqa: ANN401 - any YAML value
    base = {
        "name": "shop",
        "lake": {"uri": "file:///lake"},
        "kafka": {"bootstrap_servers": "h:9092", "topics": ["a"]},
    }
    for name, section in sections.items():
        base[name] = {**base.get(name, {}), **section}  # type: ignore[dict-item]
    return Settings.parse(json.dumps(base), environ=environ or {})


@pytest.mark.parametrize(
    ("source", "destination"),
    [
        (("shop", "orders_07"), Destination("shop", "orders", ShardRule("shard", "shop-07"))),
        (("shop", "orders_7"), Destination("shop", "orders_7")),
        (("old", "items"), Destination("shop", "items")),
        (("shop", "tmp_a"), None),
        (("shop", "other"), Destination("shop", "other")),
    ],
)
def test_the_first_route_that_matches_is_taken(source: tuple[str, str], destination: Destination | None) -> None:
    tables = settings(tables={"routes": ROUTES}).tables
    assert tables.destination(SourceTable(*source)) == destination
    assert tables.selects(SourceTable(*source)) == (destination is not None)


def test_what_is_excluded_is_so_by_its_own_name() -> None:
    tables = settings(tables={"routes": ROUTES, "exclude": ["old.*"]}).tables
    assert not tables.selects(SourceTable("old", "items"))
    assert tables.selects(SourceTable("shop", "items"))


def test_column_rules_go_to_tasks_and_show_no_salt() -> None:
    columns = {
        "exclude": ["Notes"],
        "mask": {"email": {"how": "hash", "salt": "${env:SALT}"}, "phone": {"how": "redact"}},
        "computed": {"day": "placed_at::date"},
    }
    made = settings(
        {"SALT": "pepper", "SEAL": "s"}, tables={"defaults": {"columns": columns}}, quarantine={"seal": "${env:SEAL}"}
    )
    rule = made.table_rules(SourceTable("shop", "a")).columns
    masks = (MaskRule("email", "hash", "pepper"), MaskRule("phone", "redact"))
    assert rule == ColumnsRule((("day", "placed_at::date"),), ("*",), ("Notes",), masks)
    assert pickle.loads(pickle.dumps(rule)) == rule
    assert not rule.keeps("notes")
    assert "pepper" not in repr(made.tables) + repr(rule) + json.dumps(made.effective())
    assert "${env:SALT}" in json.dumps(made.effective())
    assert settings().table_rules(SourceTable("shop", "a")).columns is None


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"tables": {"routes": [{"match": "a(", "to": "a.b"}]}}, "no regular expression"),
        ({"tables": {"routes": [{"match": "a", "to": "ab"}]}}, "must be database.table"),
        ({"tables": {"routes": [{"match": "a", "to": "a.{2}"}]}}, "no placeholders"),
        (
            {"tables": {"routes": [{"match": "a", "to": "a.b", "shard": {"column": "s", "value": "{x}"}}]}},
            "no placeholders",
        ),
        ({"tables": {"defaults": {"columns": {"mask": {"a": {"how": "hash"}}}}}}, "needs a salt"),
        ({"tables": {"defaults": {"columns": {"mask": {"a": {"how": "redact"}}}}}}, "quarantine.seal"),
        ({"tables": {"overrides": [{"match": "*", "columns": {"mask": {"a": {"how": "null"}}}}]}}, "quarantine.seal"),
        ({"tables": {"defaults": {"columns": {"computed": {"a": "count(*)"}}}}}, "one row"),
        ({"tables": {"defaults": {"columns": {"computed": {"a": "now()"}}}}}, "same answer"),
        ({"batch": {"transaction_consistent": True}}, "transaction_topic"),
        (
            {"batch": {"transaction_consistent": True}, "kafka": {"transaction_topic": "t", "fetch": "spark"}},
            "kafka.fetch: direct",
        ),
    ],
)
def test_mistakes(sections: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        settings(**sections)
    text = " ".join(map(str, caught.value.problems))
    assert message in text or (message == "no regular expression" and "is not a regular expression" in text)


@pytest.mark.parametrize(
    "text",
    ["a + 1", "upper(country)", "case when x in ('a') then 1 end", "x::date", "strftime(at, '%Y-%m')", "md5(a || b)"],
)
def test_expressions_over_one_row(text: str) -> None:
    assert check_expression(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "sum(a)",
        "random()",
        "current_date",
        "uuid()",
        "localtimestamp",
        "(select 1)",
        "*",
        "a as b",
        "a b",
        "?",
        "$1",
        "",
    ],
)
def test_what_is_no_expression_over_one_row(text: str) -> None:
    assert check_expression(text) is not None


def test_the_transaction_topic_is_read_too() -> None:
    kafka = settings(kafka={"transaction_topic": "p.transaction"}).kafka
    assert (kafka.read_topics, kafka.read_pattern) == (("a", "p.transaction"), None)
    kafka = settings(kafka={"topics": [], "topic_pattern": "p[.]x[.].*", "transaction_topic": "p.transaction"}).kafka
    assert (kafka.read_topics, kafka.read_pattern) == ((), r"(?:p[.]x[.].*)|(?:p\.transaction)")
    assert settings().kafka.read_topics == ("a",)
