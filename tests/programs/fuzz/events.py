"""The event formats as targets: damaged messages among good ones, decoded with all that the product does."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from binlake.decode.changes import DecodedRecords, RawRecords
from binlake.decode.formats.reader import decode
from binlake.decode.options import DecodeOptions, EventFormat
from binlake.decode.schemas.schemas import NoSchemas, SchemaHistory, SchemaSource
from tests.binlake.decode import recordings, ways
from tests.binlake.decode.formats import format_recordings
from tests.binlake.decode.formats.avro_recordings import Writer
from tests.binlake.decode.recordings import records
from tests.binlake.hbase import recordings as hbase
from tests.binlake.hbase.formats.bigtable_changes import CHANGES

MEGABYTE = 1 << 20


@dataclasses.dataclass(frozen=True)
class Schemas:
    """A registry held in memory: id -> the schema's text."""

    texts: dict[int, str]

    def schema(self, schema_id: int, subject: str) -> str | None:
        return self.texts.get(schema_id)

    def describe(self) -> str:
        return "a registry in memory"


@dataclasses.dataclass(frozen=True)
class Events:
    """Messages of one format, what decodes them, whether they are JSON, and whether a row may come of a value."""

    seeds: Sequence[bytes]
    schemas: SchemaSource
    options: DecodeOptions
    topic: str
    json: bool = True
    check: Callable[[RawRecords, SchemaSource, DecodeOptions], DecodedRecords] = decode
    sound: Callable[[bytes], bool] | None = None

    def run(self, values: Sequence[bytes]) -> None:
        """Decode the values between two good messages. Raises AssertionError for a wrong row."""
        good = self.seeds[0]
        whole = records([None] * (len(values) + 2), [good, *values, good], self.topic)
        found = self.check(whole, self.schemas, self.options)
        assert len(_settled(found)) == len(whole), "every record is in exactly one place"
        for batch in found.changes:
            batch.rows.validate(full=True)
        rows = _rows(found)
        assert rows.get(0) == self.expected[0], "the good message before came through as it is"
        assert rows.get(len(values) + 1) == self.expected[1], "the good message behind came through as it is"
        refused = {record.offset for record in found.quarantined}
        for at, value in enumerate(values, start=1):
            assert at not in rows or at not in refused, "a record is not both a row and refused"
            assert not (self.json and at in rows and not (self.sound or _may_be_a_row)(value)), (
                "no row comes of a damaged image"
            )

    @functools.cached_property
    def expected(self) -> tuple[list[str], list[str]]:
        """The rows of the good message at the first and at the second place."""
        found = _rows(decode(records([None] * 2, [self.seeds[0]] * 2, self.topic), self.schemas, self.options))
        return found[0], found[1]

    def extremes(self) -> list[bytes]:
        """Values of 20 MB, deep nesting, long numbers and names, made of the first seed."""
        seed = self.seeds[0]
        if not self.json:
            return [seed + b"x" * (20 * MEGABYTE), seed[:5] + b"\x02" * (20 * MEGABYTE), seed[:5] + b"\xff" * MEGABYTE]
        fills = [b'"' + b"x" * (20 * MEGABYTE) + b'"', b'"' + b"\\\\" * (10 * MEGABYTE) + b'"', b"1" * (20 * MEGABYTE)]
        fills += [b"[" * MEGABYTE, b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 100_000 + b"1" + b"}" * 100_000]
        fills += [b"{" + b",".join(b'"m%d":1' % n for n in range(100_000)) + b"}"]
        fills += [b"0." + b"1" * MEGABYTE, b"1e" + b"9" * 1000]
        colons = [at + 2 for at in range(len(seed)) if seed[at : at + 2] == b'":']
        places = [colons[n % len(colons)] for n in range(len(fills))]
        inside = [seed[:at] + fill + b"," + seed[at:] for at, fill in zip(places, fills, strict=True)]
        return inside + [b'{"extra":' + fill + b"," + seed[1:] for fill in fills]


def _rows(found: DecodedRecords) -> dict[int, list[str]]:
    """offset -> its rows, without their offsets."""
    rows: dict[int, list[str]] = {}
    for batch in found.changes:
        for row in _plain_times(batch.rows).to_pylist():
            offset = row.pop("__offset")
            row.pop("__order")
            rows.setdefault(offset, []).append(repr((str(batch.schema.source), row)))
    return rows


def _plain_times(rows: pa.Table) -> pa.Table:
    """The rows with times as numbers: Python has no year 0."""
    for at, field in enumerate(rows.schema):
        if pa.types.is_temporal(field.type):
            number = pa.int32() if pa.types.is_date32(field.type) else pa.int64()
            rows = rows.set_column(at, field.name, rows.column(at).cast(number))
    return rows


def _settled(found: DecodedRecords) -> list[int]:
    """Offsets of the records that are somewhere: rows, quarantine, controls; and one number for each filtered one."""
    offsets = set(_rows(found)) | {record.offset for record in found.quarantined}
    offsets |= {control.offset for control in found.controls}
    return [*offsets, *[-1] * sum(found.filtered.values())]


class _Members(dict[str, Any]):
    """An object of JSON that knows which of its members occur twice."""

    doubled: frozenset[str] = frozenset()

    @classmethod
    def of(cls, pairs: list[tuple[str, Any]]) -> _Members:
        found, names = cls(pairs), [name for name, _ in pairs]
        found.doubled = (
            frozenset(name for name in names if names.count(name) > 1) if len(found) < len(pairs) else frozenset()
        )
        return found


#: Members of which the rows are made. Others are skipped unread, so damage in them changes nothing.
_USED = frozenset(["op", "source", "before", "after", "schema", "payload", "data", "old", "type", "database", "table"])


def _may_be_a_row(value: bytes) -> bool:
    """Whether a row may come of the value: it is JSON, and what the row is made of is there once, and sound."""
    try:
        message = json.loads(
            value.decode("utf-8", "replace"), object_pairs_hook=_Members.of, parse_constant=_Constant, parse_int=str
        )
    except (ValueError, RecursionError):
        return False
    if not isinstance(message, _Members) or message.doubled & _USED:
        return False
    inner = message.get("payload")
    if isinstance(inner, _Members):
        return _is_sound(inner)
    return _is_sound(message)


def _is_sound(message: _Members) -> bool:
    """A member of ``source`` that occurs twice is taken as the last one says, as most readers of JSON do."""
    return not message.doubled & _USED and all(
        _is_sound_image(message.get(name)) for name in ("before", "after", "data", "old")
    )


def _is_sound_image(image: object) -> bool:
    if isinstance(image, _Members):
        return not image.doubled and all(map(_is_sound_image, image.values())) and "\ufffd" not in "".join(image)
    if isinstance(image, list):
        return all(map(_is_sound_image, image))
    return not isinstance(image, _Constant) and not (isinstance(image, str) and "\ufffd" in image)


def _may_be_cells(value: bytes) -> bool:
    """Whether cells may come of the value: it is a JSON object without a second member of those that cells are made of.
    Members that are not read may be of any depth."""
    try:
        message = json.loads(value.decode("utf-8", "replace"), object_pairs_hook=_Members.of, parse_int=str)
    except RecursionError:
        return True
    except ValueError:
        return False
    return isinstance(message, _Members) and not message.doubled & _USED_OF_CELLS


#: Members of which the cells are made.
_USED_OF_CELLS = frozenset(["key", "edit", "rowKey", "modType", "value", "column", "timestamp", "commitTimestamp"])


class _Constant(str):
    """NaN or Infinity."""


def _debezium(variant: str) -> Events:
    found: list[bytes] = []
    for topic, partitions in sorted(recordings.topics("shop", variant).items()):
        if topic.startswith(f"shop_{variant}.shop."):
            values = [value for value in partitions[min(partitions)].values if value is not None]
            found += values[:: max(1, len(values) // 3)][:3]
    schemas = recordings.history_of("shop", "plain") if variant == "plain" else NoSchemas()
    check = ways.equal if variant == "plain" else decode
    return Events(found, schemas, recordings.options_of(variant, before_of="all"), "s.shop.t", check=check)


def _plain() -> Events:
    return _debezium("plain")


def _schema() -> Events:
    return _debezium("schema")


def _avro() -> Events:
    writer = Writer()
    seeds = [writer.encode(value) or b"" for value in _debezium("schema").seeds]
    registry = Schemas({number: text for text, number in writer.ids.items()})
    options = DecodeOptions(registry=registry, format=EventFormat.DEBEZIUM_AVRO, before_of="all")
    return Events(seeds, NoSchemas(), options, "s.shop.t", json=False)


def _tool(form: str) -> Events:
    values = [value for value in format_recordings.messages("shop", form).values if value]
    seeds = [value for value in values[:: len(values) // 60] if b'"data":[' in value or b'"data":{' in value]
    seeds = [value for value in seeds if len(value) < 5_000][:25]
    options = DecodeOptions(before_of="all")
    history = format_recordings.history("shop", options) if form == "maxwell" else SchemaHistory()
    return Events(seeds, history, options, form)


def _wal() -> Events:
    values = [value for value in hbase.topic("shop:orders", "wal")[0].values if value and len(value) < 5_000]
    options = DecodeOptions(format=EventFormat.HBASE_WAL)
    return Events(values[:: len(values) // 25], NoSchemas(), options, "hbase.t.wal", sound=_may_be_cells)


def _proxy() -> Events:
    values = [value for value in hbase.topic("shop:orders", "events")[0].values if value and len(value) < 5_000]
    options = DecodeOptions(format=EventFormat.HBASE_AVRO)
    return Events(values[:: len(values) // 25], NoSchemas(), options, "hbase.t.events", json=False)


def _bigtable() -> Events:
    options = DecodeOptions(format=EventFormat.BIGTABLE)
    return Events([json.dumps(one).encode() for one in CHANGES], NoSchemas(), options, "bt", sound=_may_be_cells)


TARGETS: dict[str, Callable[[], Events]] = {
    "debezium_plain": _plain,
    "debezium_schema": _schema,
    "debezium_avro": _avro,
    "canal": functools.partial(_tool, "canal"),
    "maxwell": functools.partial(_tool, "maxwell"),
    "hbase_wal": _wal,
    "hbase_avro": _proxy,
    "bigtable": _bigtable,
}
