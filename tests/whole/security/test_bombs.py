"""A few bytes cannot become gigabytes: compressed dumps, answers of a registry, Avro, patterns."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import resource
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest

from binlake.decode.changes import RawRecords, SourceTable
from binlake.settings import Settings
from binlake.source.dump_layout import DumpFile
from binlake.source.dump_read import read_dump
from binlake.source.registry import SchemaRegistryClient
from hudilake.errors import ConfigError, CorruptDataError
from hudilake.storage import open_storage
from tests.binlake.decode.formats.registry_server import Registry, serving
from tests.paths import ROOT

MEGABYTE = 1 << 20
#: The memory a process may take, in bytes, and the size to which its input would grow.
MEMORY, BOMB = 2_500 * MEGABYTE, 1_600 * MEGABYTE
READ = """
import sys
from hudilake.errors import CorruptDataError
from binlake.source.dump_layout import DumpFile
from binlake.source.dump_read import read_dump
from hudilake.storage import open_storage
import pathlib
file = pathlib.Path(sys.argv[1])
try:
    for _ in read_dump(open_storage(str(file.parent)), DumpFile(0, file.name, file.stat().st_size, 0), 10_000):
        pass
except CorruptDataError as error:
    print("refused:", error)
"""


def zeros(compressed: str) -> bytes:
    """A line of zeros without an end, ``BOMB`` bytes long when it is opened."""
    if compressed == "gz":
        block, packer = bytes(16 * MEGABYTE), zlib.compressobj(1, wbits=31)
        parts = [packer.compress(block) for _ in range(BOMB // len(block))]
        return b"".join([*parts, packer.flush()])
    if compressed in ("bz2", "xz"):
        packed = (bz2.compress if compressed == "bz2" else lzma.compress)(bytes(64 * MEGABYTE))
        return packed * (BOMB // (64 * MEGABYTE))
    frame: bytes = pa.Codec("zstd", compression_level=1).compress(bytes(256 * MEGABYTE), asbytes=True)
    return frame * (BOMB // (256 * MEGABYTE))


@pytest.mark.full
@pytest.mark.parametrize("compressed", ["gz", "zst", "bz2", "xz"])
def test_a_compressed_dump_fills_no_memory(tmp_path: Path, compressed: str) -> None:
    file = tmp_path / f"bomb.jsonl.{compressed}"
    file.write_bytes(zeros(compressed))
    assert file.stat().st_size < 10 * MEGABYTE
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))  # noqa: E731
    done = subprocess.run(
        [sys.executable, "-c", READ, str(file)],
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=limit,
        cwd=ROOT,
        env={"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert "refused: a dump file cannot be read: ValueError: a line has more than" in done.stdout, done.stderr[-2000:]


def test_a_long_line_below_the_limit_is_read(tmp_path: Path) -> None:
    value = "x" * (20 * MEGABYTE)
    line = json.dumps({"topic": "t", "partition": 0, "offset": 5, "value": value}).encode()
    (tmp_path / "f.jsonl.gz").write_bytes(gzip.compress(line, 1))
    (chunk,) = read(tmp_path, "f.jsonl.gz")
    assert chunk.values == [value.encode()]


def read(place: Path, name: str) -> list[RawRecords]:
    return list(read_dump(open_storage(str(place)), DumpFile(0, name, (place / name).stat().st_size, 0), 100))


HOSTILE_AVRO = {
    "a record in itself": {"type": "record", "name": "R", "fields": [{"name": "value", "type": ["null", "R"]}]},
    "an array of nulls": {
        "type": "record",
        "name": "R",
        "fields": [{"name": "value", "type": {"type": "array", "items": "null"}}],
    },
}


@pytest.mark.parametrize("name", HOSTILE_AVRO)
def test_an_avro_dump_of_another_shape_is_refused(tmp_path: Path, name: str) -> None:
    """fastavro would read such a value without end, or deeper than the stack."""
    sink = io.BytesIO()
    fastavro.writer(sink, fastavro.parse_schema(HOSTILE_AVRO[name]), [])
    (tmp_path / "a.avro").write_bytes(sink.getvalue())
    with pytest.raises(CorruptDataError, match=r"a record inside itself|items without bytes"):
        read(tmp_path, "a.avro")


@pytest.fixture
def registry() -> Iterator[Registry]:
    with serving(Registry(schemas={1: '"string"'})) as found:
        yield found


def test_an_endless_answer_of_a_registry_is_refused(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("binlake.source.registry._MOST_BYTES", 1000)
    registry.answer = json.dumps({"schema": "x" * 2000}).encode()
    with pytest.raises(ConfigError, match="more than 1000 bytes"):
        SchemaRegistryClient(registry.url).schema(1, "t-value")


@pytest.mark.parametrize("answer", [b"[" * 100_000, b'{"schema":' * 50_000])
def test_a_deep_answer_of_a_registry_is_refused(registry: Registry, answer: bytes) -> None:
    registry.answer = answer
    with pytest.raises(ConfigError, match="not JSON"):
        SchemaRegistryClient(registry.url).schema(1, "t-value")


def test_an_id_of_a_message_asks_this_registry_only(registry: Registry) -> None:
    """The id is four bytes of the message: no id names another path or host."""
    for number in (0, 1, 2**32 - 1):
        SchemaRegistryClient(registry.url).schema(number, "../../x?y#z")
    assert set(registry.asked) == {"/schemas/ids/0", "/schemas/ids/1", "/schemas/ids/4294967295"}


def test_patterns_of_the_settings_end_on_any_name() -> None:
    """Glob patterns take no exponential time. A regular expression is the operator's own; names have 64 characters."""
    base = {"name": "s", "lake": {"uri": "/x"}, "kafka": {"bootstrap_servers": "h:1", "topics": ["t"]}}
    settings = Settings.parse(
        json.dumps({**base, "tables": {"include": ["*a*a*a*a*a*a*a*a*a*a*b"], "exclude": ["*a" * 30 + "c"]}})
    )
    began = time.process_time()
    assert not settings.selects(SourceTable("a" * 64, "a" * 64))
    assert time.process_time() - began < 10
