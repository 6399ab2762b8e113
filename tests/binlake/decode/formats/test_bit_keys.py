"""BIT(1) to BIT(64) in a key and beside it, as Debezium's MariaDB connector 3.4.0 sent them: a row is one row, whether
a snapshot, an incremental snapshot or the binlog brought it.

The recording: a table ``b<n>`` with ``k BIT(n), id INT, v BIT(n), PRIMARY KEY (k, id)`` for each width. A snapshot of
rows (value, i, value); then each value again under the id 100 + i, v of each row i becomes the next value, k of row 0
the last one, row 1 is deleted; then an incremental snapshot of some tables.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from binlake.decode.changes import DecodedRecords, RawRecords, SourceTable
from binlake.decode.formats.reader import decode
from binlake.decode.options import DecodeOptions, EventFormat
from binlake.decode.schemas.schemas import DeclaredSchemas, NoSchemas, SchemaSource, declared_table
from binlake.source.registry import SchemaRegistryClient
from tests.binlake.decode.events import reasons
from tests.binlake.decode.formats.avro_recordings import Writer
from tests.binlake.decode.formats.registry_server import Registry, serving
from tests.paths import DATA

Row = tuple[object, int, object]
_SAID: dict[str, Any] = json.loads(gzip.decompress((DATA / "golden" / "bit_keys.json.gz").read_bytes()))
WIDTHS = range(1, 65)


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with serving(Registry()) as found:
        yield found


def lake_value(width: int, value: int) -> object:
    return bool(value) if width == 1 else value.to_bytes((width + 7) // 8, "big")


def expected_rows(width: int) -> set[Row]:
    """The rows of a table after all statements."""
    values = _SAID["values"][f"b{width:02}"]
    rows = {100 + at: (value, value) for at, value in enumerate(values)}
    rows |= {at: (value, values[(at + 1) % len(values)]) for at, value in enumerate(values)}
    rows[0] = (values[-1], rows[0][1])
    del rows[1]
    return {(lake_value(width, k), at, lake_value(width, v)) for at, (k, v) in rows.items()}


def records_of(width: int) -> list[tuple[Any, Any]]:
    table = f"b{width:02}"
    return [(key, value) for key, value in _SAID["records"] if value["source"]["table"] == table]


def raw(keys: list[bytes | None], values: list[bytes | None]) -> RawRecords:
    count = len(values)
    return RawRecords("s.d.b", 0, np.arange(count), np.zeros(count, dtype=np.int64), keys, values)


def framed(width: int) -> RawRecords:
    """With the schemas of key and value."""
    table = f"b{width:02}"
    text = json.dumps(_SAID["schemas"]).replace('"12"', f'"{width}"').replace("b12", table)
    if width == 1:
        bits = '"type": "bytes", "optional": %s, "name": "io.debezium.data.Bits", "version": 1, '
        bits += '"parameters": {"length": "1"}'
        for optional in ("false", "true"):
            text = text.replace(bits % optional, f'"type": "boolean", "optional": {optional}')
    schemas = json.loads(text)
    both = [
        [json.dumps({"schema": schema, "payload": said}).encode() for said, schema in zip(one, schemas, strict=True)]
        for one in records_of(width)
    ]
    return raw([key for key, _ in both], [value for _, value in both])


def plain(width: int) -> RawRecords:
    """Without schemas."""
    both = [[json.dumps(payload).encode() for payload in one] for one in records_of(width)]
    return raw([key for key, _ in both], [value for _, value in both])


def declared_bits(width: int) -> SchemaSource:
    kinds = {"k": f"bit({width})", "id": "int", "v": f"bit({width})"}
    return DeclaredSchemas({SourceTable("d", f"b{width:02}"): declared_table(kinds, ("k", "id"))})


def table_of(found: DecodedRecords) -> set[Row]:
    """The newest row of each key, as the lake has it."""
    newest: dict[tuple[object, int], tuple[tuple[int, ...], object]] = {}
    for batch in found.changes:
        assert batch.schema.key in (("k", "id"), ())
        for row in batch.rows.to_pylist():
            place = (row["__order"], row["__row"], row["__offset"])
            value = None if row["__op"] else (row["k"], row["id"], row["v"])
            if (row["k"], row["id"]) not in newest or newest[row["k"], row["id"]][0] <= place:
                newest[row["k"], row["id"]] = (place, value)
    # An update of the key is a delete and an insert at Debezium.
    return {value for _, value in newest.values() if value is not None}  # type: ignore[misc]


@pytest.mark.first(2)
@pytest.mark.parametrize("form", ["schemas", "no schemas", "avro"])
def test_a_row_is_one_row_whoever_brought_it(form: str, registry: Registry) -> None:
    writer = Writer()
    for width in WIDTHS:
        if form == "no schemas":
            found = decode(plain(width), declared_bits(width), DecodeOptions())
        elif form == "schemas":
            found = decode(framed(width), NoSchemas(), DecodeOptions())
        else:
            encoded = writer.records(framed(width))
            registry.register(writer.ids)
            client = SchemaRegistryClient(registry.url, retry_s=0)
            options = DecodeOptions(registry=client, format=EventFormat.DEBEZIUM_AVRO)
            found = decode(encoded, NoSchemas(), options)
        assert reasons(found) == {}
        assert table_of(found) == expected_rows(width), width


def flat_record(payload: dict[str, Any], **added: object) -> bytes:
    source = payload["source"]
    place = {"__source_file": source["file"], "__source_pos": source["pos"], "__deleted": "false"}
    named = {"__db": source["db"], "__table": source["table"]}
    return json.dumps(payload["after"] | place | named | added).encode()


def test_a_flat_row_that_does_not_say_its_snapshot_is_refused_where_that_matters() -> None:
    width = 16
    rows = [(key, value) for key, value in records_of(width) if value["op"] == "r"]
    keys: list[bytes | None] = [json.dumps(key).encode() for key, _ in rows]
    said: list[bytes | None] = [
        flat_record(value, __op="r", __source_snapshot=value["source"]["snapshot"]) for _, value in rows
    ]
    told = decode(raw(keys, said), declared_bits(width), DecodeOptions())
    values = {lake_value(width, value) for value in _SAID["values"]["b16"]}
    assert reasons(told) == {}
    assert {row["k"] for batch in told.changes for row in batch.rows.to_pylist()} == values
    silent: list[bytes | None] = [flat_record(value) for _, value in rows]
    found = decode(raw(keys, silent), declared_bits(width), DecodeOptions())
    kept = {row["k"] for batch in found.changes for row in batch.rows.to_pylist()}
    assert kept == {value for value in values if value == value[::-1]}  # type: ignore[index]
    assert set(reasons(found).values()) == {"bad_value"}
