"""Plain topics in the settings: which topics feed which table, and the tables that cannot take them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from binlake.settings import Settings, SettingsError

ENTRY: dict[str, Any] = {"topics": "clicks-*", "table": "web.clicks", "columns": {"id": "bigint"}, "key": ["id"]}


def settings(*entries: dict[str, Any], form: str = "json", **tables: Any) -> Settings:  # noqa: ANN401 - any YAML value
    document = {
        "name": "web",
        "lake": {"uri": "file:///lake"},
        "kafka": {"bootstrap_servers": "h:9092", "topics": ["a"]},
        "source": {"format": form, "plain": entries},
        "tables": {"defaults": tables},
    }
    return Settings.parse(json.dumps(document))


def test_topics_are_one_pattern_or_several() -> None:
    (entry,) = settings(ENTRY | {"topics": ["clicks", "c-*"]}).source.plain
    assert [entry.takes(topic) for topic in ("clicks", "c-eu", "d")] == [True, True, False]
    (entry,) = settings(ENTRY).source.plain
    assert entry.topics == ("clicks-*",)


@pytest.mark.parametrize(
    ("entries", "more", "message"),
    [
        ([], {}, "needs entries"),
        ([ENTRY, ENTRY | {"topics": "other"}], {}, "two entries name one table"),
        ([ENTRY | {"table": "clicks"}], {}, "must be database.table"),
        ([ENTRY | {"columns": {}}], {}, "must name a column, or be infer"),
        ([ENTRY | {"key": ["idd"]}], {}, "no such column: idd"),
        ([ENTRY | {"metadata_columns": {"offset": "id"}}], {}, "there already: id"),
        ([ENTRY | {"metadata_columns": {"offset": "ID"}}], {}, "there already: ID, id"),
        ([ENTRY | {"key": ["id", "id"]}], {}, "each column can be named once: id, id"),
        ([ENTRY | {"columns": {"id": "bigint", "ID": "int"}}], {}, "each column can be named once: id, ID"),
        ([ENTRY | {"metadata_columns": {"offset": "o", "partition": "o"}}], {}, "there already: o"),
        ([ENTRY | {"metadata_columns": {"size": "o"}}], {}, "metadata_columns"),
        ([ENTRY | {"schema_file": "a.avsc"}], {}, "schema_file is for format avro"),
        ([ENTRY], {"form": "avro"}, "the writer's schema gives the columns"),
        ([ENTRY | {"columns": "infer"}], {"form": "avro"}, "needs registry.url, or a schema_file"),
        ([ENTRY | {"key": []}], {}, "name its key, or set kind: append"),
        ([ENTRY], {"kind": "append", "index": {"type": "none"}}, "a table of kind append has no key"),
        ([ENTRY], {"change_log": "data_before"}, "change_log data_before: only kind upsert of type copy_on_write"),
        ([ENTRY], {"change_log": "all", "type": "copy_on_write"}, "change_log"),
        ([ENTRY], {"partition": {"column": "day"}}, "cannot leave its partition: take day into the key"),
    ],
)
def test_mistakes(entries: list[dict[str, Any]], more: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        settings(*entries, **more)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "more",
    [
        {"partition": {"column": "id"}},
        {"partition": {"column": "day"}, "immutable_partition": True},
        {"partition": {"column": "day"}, "index": {"type": "global_simple"}},
        {"kind": "append", "index": {"type": "none"}, "entry": {"key": []}},
    ],
)
def test_tables_that_take_plain_rows(more: dict[str, Any]) -> None:
    assert settings(ENTRY | more.pop("entry", {}), **more).source.plain
