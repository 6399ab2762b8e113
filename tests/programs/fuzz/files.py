"""The files that binlake reads as targets: damaged ones are read, or refused by an error of the project's own."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import fastavro
import pyarrow as pa

from binlake.position.ledger import Ledger
from binlake.source.dump_layout import DumpFile
from binlake.source.dump_read import read_dump
from hudilake.errors import LakeError
from hudilake.format.definition.config import TableConfig
from hudilake.format.files.bloom import DYNAMIC, SIMPLE, BloomFilter
from hudilake.format.files.data_block import decode_data_block
from hudilake.format.files.delete_block import decode_deletes
from hudilake.format.files.hfile.reader import HFileReader
from hudilake.format.files.log_file import BlockType, iter_blocks
from hudilake.format.files.parquet_file import decode_parquet, footer_of
from hudilake.format.timeline.commit_metadata import CommitMetadata
from hudilake.metadata.records.record_reader import decode_record
from hudilake.storage import open_storage
from tests.binlake.load.replay.dumped import FORMS, Record
from tests.hudilake.format.files.test_hfile import VECTORS, _java_file
from tests.paths import GOLDEN

TABLE = GOLDEN / "tbl_hudi120"
_LARGEST = 60_000


@dataclass(frozen=True)
class Files:
    """Sound files of one kind, and their reader. The reader gives what it read, as text."""

    seeds: Sequence[bytes]
    read: Callable[[bytes], object]
    text: bool = False

    def run(self, data: bytes) -> None:
        """Read the bytes. Raises everything but the errors that the project raises on purpose."""
        with contextlib.suppress(LakeError):
            self.read(data)


def _found(pattern: str) -> list[bytes]:
    files = [path.read_bytes() for path in sorted(TABLE.rglob(pattern)) if path.is_file()]
    return [data for data in files if 0 < len(data) <= _LARGEST][:12]


def _log(data: bytes) -> object:
    rows: list[object] = []
    for block in iter_blocks(data, "f"):
        if block.block_type is BlockType.DELETE:
            rows.append(decode_deletes(block.content, "f").to_pydict())
        elif block.block_type is BlockType.HFILE_DATA:
            content = bytes(block.content)
            schema = HFileReader.from_bytes(content).schema
            rows += [decode_record(value, schema) for _, value in _hfile(content)]
        elif block.block_type in (BlockType.PARQUET_DATA, BlockType.AVRO_DATA):
            rows.append(decode_data_block(block, None, "f").to_pydict())
    return rows


def _hfile(data: bytes) -> list[tuple[bytes, bytes]]:
    reader = HFileReader.from_bytes(data, "f")
    found = list(reader.scan())
    reader.get_many([b"", b"a", *(key for key, _ in found[:3])])
    reader.meta_block("bloom")
    return found


def _bloom(data: bytes) -> object:
    for kind in (SIMPLE, DYNAMIC):
        try:
            BloomFilter.from_bytes(kind, data).might_contain(["a", "b"])
        except LakeError:
            continue
    return None


def _parquet(data: bytes) -> object:
    return footer_of(data, "f"), decode_parquet(data, None, "f").to_pydict()


@lru_cache(maxsize=1)
def _place() -> Path:
    return Path(tempfile.mkdtemp(prefix="fuzz-"))


def _ledger(data: bytes) -> object:
    storage = open_storage(str(_place()), {"fsync": "false"})
    storage.write("ledger.json", data)
    return Ledger.load(storage, "shop")


def _dump(data: bytes) -> object:
    (_place() / "dump").write_bytes(data)
    return list(read_dump(open_storage(str(_place())), DumpFile(0, "dump", len(data), 0), 100))


def _logs() -> Files:
    return Files(_found(".*.log.*"), _log)


def _hfiles() -> Files:
    return Files([_java_file(vector) for vector in VECTORS if vector["total_len"] <= _LARGEST], _hfile)


def _instants() -> Files:
    seeds = _found("*.deltacommit") + _found("*.commit")
    return Files(seeds, lambda data: CommitMetadata.from_bytes(data, "f"))


def _properties() -> Files:
    return Files([(TABLE / ".hoodie/hoodie.properties").read_bytes()], TableConfig.from_properties, text=True)


def _base_files() -> Files:
    return Files(_found("*.parquet"), _parquet)


def _blooms() -> Files:
    made = [BloomFilter.simple(10, 0.01), BloomFilter.dynamic(10, 0.01, 40)]
    for one in made:
        one.add([f"k{n}" for n in range(30)])
    return Files([one.to_bytes() for one in made], _bloom)


def _ledgers() -> Files:
    storage = open_storage(str(_place()), {"fsync": "false"})
    ledger = Ledger("shop", batch=3, positions={"t": {0: 5, 1: 7}})
    ledger.save(storage)
    return Files([storage.read("ledger.json")], _ledger, text=True)


def _records() -> list[Record]:
    return [
        ("s.shop.t", n % 2, n, 1_760_000_000_000 + n, b'{"id":1}', json.dumps({"n": n}).encode()) for n in range(20)
    ]


def _dumps() -> Files:
    seeds = [form(_records()) for name, form in FORMS.items() if not name.endswith(".br")]  # only names tell brotli
    lines = b"\n".join(json.dumps({"value": "x" * n}).encode() for n in range(30))
    sink = io.BytesIO()
    schema = fastavro.parse_schema({"type": "record", "name": "r", "fields": [{"name": "value", "type": "bytes"}]})
    fastavro.writer(sink, schema, [{"value": b"{}"}] * 20)
    zstd: bytes = pa.Codec("zstd").compress(lines, asbytes=True)
    return Files([*seeds, lines, gzip.compress(lines), zstd, sink.getvalue()], _dump)


TARGETS: dict[str, Callable[[], Files]] = {
    "log": _logs,
    "hfile": _hfiles,
    "instant": _instants,
    "properties": _properties,
    "parquet": _base_files,
    "bloom": _blooms,
    "ledger": _ledgers,
    "dump": _dumps,
}
