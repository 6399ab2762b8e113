"""Rows leave dumps whose records are no JSON: Debezium's Avro through a registry, in every form of a file.

The events are those of the recorded shop, as AvroConverter writes them. What is left is looked for by decoding every
record here, with the schemas that the events were written by.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import pytest

from binlake.decode.changes import RawRecords
from binlake.proof.history.erasure import DUMPS, plan_row_erasure
from binlake.settings import Settings
from binlake.source.dump_layout import DumpLayout, Window
from binlake.source.dump_read import read_dump
from binlake.tables.catalog import catalog_table
from hudilake.services.erasure.erase import ErasureReport
from hudilake.storage import open_storage
from tests.binlake.decode import recordings
from tests.binlake.decode.formats.avro_recordings import Writer, _plain
from tests.binlake.decode.formats.registry_server import Registry, serving
from tests.binlake.load.replay.dumped import FORMS, Record, replay
from tests.judges import hudi_rs

LAYOUT = "{topic}/{date}/{hour}/*"
TABLES = {"customers": "a.jsonl", "coupons": "a.avro", "stock": "a.jsonl.zst", "order_items": "a.parquet"}
Topics = dict[str, list[RawRecords]]


class Dumped:
    """A dump of some topics of the recording, and a lake that it was replayed into."""

    def __init__(self, path: Path, url: str, topics: Topics, writer: Writer) -> None:
        self.path, self.url, self.writer = path, url, writer
        self.dumps = open_storage(str(path / "dumps"), {"fsync": "false"})
        for topic, parts in topics.items():
            table = topic.rpartition(".")[2]
            held = [record for part in parts for record in records_of(part)]
            if table == topic:
                self.dumps.write(f"_ddl/{topic}.jsonl", FORMS["a.jsonl"](held))
            for hour, some in enumerate((held[: len(held) // 2], held[len(held) // 2 :]) if table in TABLES else ()):
                form = TABLES[table]
                self.dumps.write(f"{topic}/2025-10-09/{hour:02}/{form}", FORMS[form](some))
        self.settings = self.settings_of("lake")
        replay(self.settings)

    def settings_of(self, lake: str) -> Settings:
        document: dict[str, Any] = {
            "name": "shop",
            "lake": {"uri": str(self.path / lake), "options": {"fsync": "false"}},
            "kafka": {
                "bootstrap_servers": "127.0.0.1:1",
                "topics": [f"shop_schema.shop.{table}" for table in TABLES],
                "ddl_topics": ["shop_schema"],
            },
            "source": {"format": "debezium_avro", "registry": {"url": self.url}},
            "tables": {"defaults": {"buckets": 2}},
            "dump": {"uri": str(self.path / "dumps"), "path": LAYOUT, "options": {"fsync": "false"}},
        }
        return Settings.parse(json.dumps(document))

    def erase(self, table: str, key: str) -> dict[str, ErasureReport]:
        place = catalog_table(self.settings, open_storage(self.settings.lake.uri), f"shop.{table}")
        return dict(plan_row_erasure(self.settings, place, key).carry_out(release_savepoints=False))

    def rows(self, table: str, lake: str = "lake") -> list[dict[str, Any]]:
        rows = hudi_rs.snapshot(self.path / lake / "shop" / table).to_pylist()
        own = [{name: cell for name, cell in row.items() if not name.startswith("_hoodie")} for row in rows]
        return sorted(own, key=repr)

    def said(self) -> dict[tuple[str, str, int, int], str]:
        """Place -> what a record says, decoded: key and value."""
        schemas = {number: fastavro.parse_schema(_plain(json.loads(text))) for text, number in self.writer.ids.items()}

        def decoded(data: bytes | None) -> Any:  # noqa: ANN401 - Avro
            number = int.from_bytes(data[1:5], "big") if data else 0
            return fastavro.schemaless_reader(io.BytesIO(data[5:]), schemas[number], None) if data else None

        return {
            (file.path, chunk.topic, chunk.partition, offset): repr((decoded(key), decoded(value)))
            for file in DumpLayout(LAYOUT).find(self.dumps, Window(), ("_ddl",))
            for chunk in read_dump(self.dumps, file, 1000)
            for offset, key, value in zip(chunk.offsets.tolist(), chunk.keys, chunk.values, strict=True)
        }


def records_of(part: RawRecords) -> Iterator[Record]:
    columns = (part.offsets.tolist(), part.timestamps_ms.tolist(), part.keys, part.values)
    for offset, stamp, key, value in zip(*columns, strict=True):
        yield part.topic, part.partition, offset, stamp, key, value


@pytest.fixture(scope="module")
def avro() -> Iterator[tuple[str, Topics, Writer]]:
    writer = Writer()
    topics = {
        topic: [writer.records(part) for _, part in sorted(parts.items())]
        for topic, parts in recordings.topics("shop", "schema").items()
        if topic == "shop_schema" or topic.removeprefix("shop_schema.shop.") in TABLES
    }
    with serving(Registry()) as registry:
        registry.register(writer.ids)
        yield registry.url, topics, writer


def test_rows_leave_records_of_avro(tmp_path: Path, avro: tuple[str, Topics, Writer]) -> None:
    dumped = Dumped(tmp_path, *avro)
    keys = {"customers": ("id",), "coupons": ("code", "region"), "stock": ("sku",), "order_items": ("order_id", "line")}
    left: dict[str, list[dict[str, Any]]] = {}
    for table, names in keys.items():
        rows = dumped.rows(table)
        row = rows[len(rows) // 2]
        before = dumped.said()
        reports = dumped.erase(table, json.dumps({name: str(row[name]) for name in names}))
        assert [name for name, one in reports.items() if not one.is_done] == []
        after = dumped.said()
        texts = {name: f"'{row[name]}'" if isinstance(row[name], str) else str(row[name]) for name in names}
        image = [re.compile(f"'{name}': {text}[,}}]") for name, text in texts.items()]
        mine = {at for at, said in before.items() if f".{table}/" in at[0] and all(one.search(said) for one in image)}
        assert mine
        assert {at for at in before if after[at] != before[at]} == mine
        assert {after[at] for at in mine} == {"(None, None)"}
        left[table] = [one for one in rows if one != row]
        assert dumped.rows(table) == left[table]
    assert replay(dumped.settings).taken == []
    replay(dumped.settings_of("other"))
    assert {table: dumped.rows(table, "other") for table in keys} == left


def test_a_text_of_the_row_in_another_record_is_found(tmp_path: Path, avro: tuple[str, Topics, Writer]) -> None:
    """Lines have such a record in base64: the statement that an event of another row quotes."""
    url, topics, writer = avro
    (topic,) = (one for one in topics if one.endswith(".customers"))
    whole, *_ = recordings.topics("shop", "schema")[topic].values()
    frames = [json.loads(value) if value else None for value in whole.values]
    named = [n for n, one in enumerate(frames) if one and one["payload"]["after"] and one["payload"]["after"]["email"]]
    first, last = frames[named[0]], frames[named[-1]]
    assert first is not None
    assert last is not None
    row = first["payload"]["after"]
    assert last["payload"]["after"]["id"] != row["id"]
    last["payload"]["source"]["query"] = f"UPDATE customers SET note = 'like {row['email']}'"
    changed = writer.records(replace(whole, values=[json.dumps(one).encode() if one else None for one in frames]))
    dumped = Dumped(tmp_path, url, {**topics, topic: [changed, *topics[topic][1:]]}, writer)
    report = dumped.erase("customers", str(row["id"]))[DUMPS]
    assert any(row["email"] in said for said in dumped.said().values())
    assert not report.is_done
    assert {trace.text for seen in report.scan.finds.values() for trace in seen} == {row["email"].encode()}


def test_a_record_of_avro_that_cannot_be_read_is_named(tmp_path: Path, avro: tuple[str, Topics, Writer]) -> None:
    """It is in quarantine and in the dump, and may be of any row: neither is said to be clean."""
    url, topics, writer = avro
    (topic,) = (one for one in topics if one.endswith(".coupons"))
    whole, *rest = topics[topic]
    (last, *_) = [n for n in reversed(range(len(whole))) if whole.values[n] is not None]
    values = [(value or b"")[:-9] if n == last else value for n, value in enumerate(whole.values)]
    dumped = Dumped(tmp_path, url, {**topics, topic: [replace(whole, values=values), *rest]}, writer)
    row = dumped.rows("coupons")[0]
    place = catalog_table(dumped.settings, open_storage(dumped.settings.lake.uri), "shop.coupons")
    asked = plan_row_erasure(dumped.settings, place, json.dumps({name: row[name] for name in ("code", "region")}))
    assert asked.unmatched == 1
    report = dict(asked.carry_out(release_savepoints=False))[DUMPS]
    assert not report.is_done
    assert [one.where for seen in report.scan.finds.values() for one in seen] == ["1 record of no known row"]
