"""Topics that are no change events, through whole batches into lake tables."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import fastavro

from tests.binlake.load.replay.dumped import HOUR, Record, as_json, replay, write
from tests.binlake.stream.test_fanout import World

LAYOUT = "all/dt={date}/hour={hour}/*"

CLICKS = {
    "topics": "clicks-*",
    "table": "web.clicks",
    "columns": {"id": "bigint", "page": "varchar(200)", "price": "decimal(8,2)"},
    "key": ["id"],
}


class PlainWorld(World):
    """A stream of JSON topics ``clicks-eu`` and ``clicks-us``."""

    def __init__(self, path: Path, *entries: dict[str, Any], **sections: Any) -> None:  # noqa: ANN401
        source = {"format": "json", "plain": list(entries), **sections.pop("source", {})}
        super().__init__(path, [], kafka={"topics": ["clicks-eu", "clicks-us"]}, source=source, **sections)

    def say(self, value: dict[str, Any] | bytes | None, key: dict[str, Any] | None = None, topic: str = "eu") -> None:
        self.log.add(f"clicks-{topic}", value, key)

    def clicks(self, *columns: str) -> set[tuple[Any, ...]]:
        return self.rows(*columns, path="web/clicks")


def test_the_newest_message_of_a_key_is_its_row(tmp_path: Path) -> None:
    here = PlainWorld(tmp_path, CLICKS)
    here.say({"id": 1, "page": "a", "price": 1})
    here.say({"id": 2, "page": "a"})
    here.say({"id": 1, "page": "b"})
    here.say({"id": 3, "page": "c"}, topic="us")
    here.feed()
    assert here.clicks("id", "page") == {(1, "b"), (2, "a"), (3, "c")}
    here.say(None, {"id": 2})
    here.say({"id": "x"})
    here.say({"id": 1, "page": "d", "price": "2.50"})
    here.feed()
    assert {(i, p, str(d)) for i, p, d in here.clicks("id", "page", "price")} == {(1, "d", "2.50"), (3, "c", "None")}
    assert here.quarantined() == [("web.clicks", "bad_value")]


def test_nothing_is_applied_twice_when_the_ledger_is_lost(tmp_path: Path) -> None:
    here = PlainWorld(tmp_path, CLICKS)
    here.say({"id": 1, "page": "a"})
    here.say(None, {"id": 1})
    here.feed()
    here.start()
    assert [t.events_read for t in here.batch().tables] == []
    (tmp_path / "lake/.binlake/shop/ledger.json").unlink()
    here.start()
    here.say({"id": 2, "page": "c"})
    here.feed()
    assert here.clicks("id", "page") == {(2, "c")}


INFERRED = {"topics": ["clicks-*"], "table": "web.clicks", "key": ["id"]}


def test_columns_are_learned_from_the_messages(tmp_path: Path) -> None:
    here = PlainWorld(tmp_path, INFERRED, quarantine={"max_records_per_batch": 2, "max_fraction": 0.1})
    for i in range(30):
        here.say({"id": i, "page": f"p{i}", "ok": i % 2 == 0, "ratio": 1 if i < 5 else 0.5, "none": None})
    here.feed()
    assert (6, "p6", True, 0.5) in here.clicks("id", "page", "ok", "ratio")
    assert (4, "p4", True, 1.0) in here.clicks("id", "page", "ok", "ratio")
    here.start()
    here.say({"id": 31, "page": "x", "none": "some", "at": "2024-01-01T00:00:00Z", "doc": {"a": [1]}})
    here.say({"id": 32, "page": {"path": "/"}, "doc": "text"})
    here.feed()
    assert {r for r in here.clicks("id", "page", "none", "at", "doc") if r[0] > 29} == {
        (31, "x", "some", "2024-01-01T00:00:00Z", '{"a": [1]}'),
        (32, '{"path": "/"}', None, None, "text"),
    }
    assert here.quarantined() == []


def test_a_value_that_does_not_fit_a_learned_column_waits(tmp_path: Path) -> None:
    here = PlainWorld(tmp_path, INFERRED, quarantine={"max_fraction": 1.0})
    here.say({"id": 1, "n": 5})
    here.say({"id": 2, "n": "five"})
    here.say({"id": 3, "N": 1})
    here.say({"id": 4, "_hoodie_x": 1})
    here.feed()
    (tmp_path / "lake/.binlake/shop/inferred.json").unlink()
    here.start()
    here.say({"id": 5, "n": 1.5})
    here.say({"id": 6, "n": 6})
    here.feed()
    assert here.clicks("id", "n") == {(1, 5), (6, 6)}
    assert {reason for _, reason in here.quarantined()} == {"bad_value", "unknown_column"}


def test_a_dump_of_plain_topics_is_replayed_once(tmp_path: Path) -> None:
    records: list[Record] = [
        ("clicks-eu", 0, at, HOUR * 3_600_000, b'{"id": %d}' % (at % 3), value)
        for at, value in enumerate(
            [b'{"id": 0, "n": 1}', b'{"id": 1, "n": 2}', b'{"id": 2}', b'{"id": 0, "n": 9}', None]
        )
    ]
    dumps = tmp_path / "dumps"
    write(dumps, "clicks", HOUR, "a.jsonl", as_json(records), LAYOUT)
    here = PlainWorld(
        tmp_path,
        INFERRED,
        dump={"uri": str(dumps), "options": {"fsync": "false"}, "path": LAYOUT},
    )
    for _ in range(2):
        replay(here.settings)
        assert here.clicks("id", "n") == {(0, 9), (2, None)}


def test_rows_without_a_key_are_added_once(tmp_path: Path) -> None:
    entry = {key: value for key, value in INFERRED.items() if key != "key"} | {"metadata_columns": {"offset": "o"}}
    here = PlainWorld(tmp_path, entry, tables={"defaults": {"kind": "append"}})
    for i in range(4):
        here.say({"n": 1, "page": f"p{i % 2}"})
    here.say(None, {"id": 1})
    here.feed()
    (tmp_path / "lake/.binlake/shop/ledger.json").unlink()
    here.start()
    here.say({"n": 1, "page": "p0", "more": {"a": 1}})
    here.say({"n": "x"})
    here.feed()
    old = {(1, f"p{i % 2}", None, i) for i in range(4)}
    assert here.clicks("n", "page", "more", "o") == old | {(1, "p0", '{"a": 1}', 5)}
    assert here.quarantined() == [("web.clicks", "bad_value")]


def test_avro_records_of_a_file_schema_widen_the_table(tmp_path: Path) -> None:
    schema: dict[str, Any] = {
        "type": "record",
        "name": "Click",
        "fields": [{"name": "id", "type": "long"}, {"name": "n", "type": "int"}],
    }

    def body(row: dict[str, Any]) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, fastavro.parse_schema(schema), row)
        return out.getvalue()

    file = tmp_path / "click.avsc"
    file.write_text(json.dumps(schema))
    entry = INFERRED | {"schema_file": str(file)}
    here = PlainWorld(tmp_path, entry, source={"format": "avro", "plain": [entry]})
    here.say(body({"id": 1, "n": 1}))
    here.feed()
    schema["fields"] = [{"name": "id", "type": "long"}, {"name": "n", "type": "long"}, {"name": "s", "type": "string"}]
    file.write_text(json.dumps(schema))
    here.start()
    here.say(body({"id": 2, "n": 1 << 40, "s": "x"}))
    here.feed()
    assert here.clicks("id", "n", "s") == {(1, 1, None), (2, 1 << 40, "x")}
