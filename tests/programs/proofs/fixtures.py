"""Single files that Hudi's own tests read: bloom filters, a delete block, an HFile that HBase wrote.

They are in the test jars of ``hudi-common`` and ``hudi-hadoop-common``; nothing of them is kept here.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import fastavro

from binlake.stream.spark.jars import resolve_archive
from embedded.jars import HUDI_HADOOP_TESTS, HUDI_TESTS
from hudilake.errors import LakeError, UnsupportedError
from hudilake.format.files.bloom import DYNAMIC, SIMPLE, BloomFilter
from hudilake.format.files.delete_block import decode_deletes
from hudilake.format.files.hfile.reader import HFileReader
from hudilake.format.files.log_file import BlockType, Header, encode_block, iter_blocks
from tests.programs.proofs.part import Outcome, Task, Verdict
from tests.programs.proofs.rules import rule_of

_BLOOMS = "format/bloom-filter/hadoop/"
_KEYS = f"{_BLOOMS}all_10000.keys.data"
_DELETES = "format/delete-block-v2-content-10-records.data"
_POSITIONS = "format/record_positions_header_v3.data"
_HFILE = "hfile/hudi_1_0_hbase_2_4_13_avro_simple_schema_fake_first_key.hfile"
_RATE = 1e-6


@dataclass(frozen=True)
class Fixtures:
    """The part ``fixtures``."""

    name: str = "fixtures"
    owner: str = "apache/hudi"
    inputs: str = "files of its tests of formats"
    about: str = (
        "A bloom filter is equal if it has all of 10,000 keys and ours of its size has the same bytes for them;"
        " the HFile of HBase if its 20,000 records are the ones that its test expects, by a scan and one by"
        " one; record positions if a log block that has them in its header is read whole. What is refused has a rule."
    )

    def run(self, task: Task) -> Iterator[Verdict]:
        """Judge what has no verdict yet."""
        common = zipfile.ZipFile(resolve_archive(HUDI_TESTS, "hudi-tests"))
        hadoop = zipfile.ZipFile(resolve_archive(HUDI_HADOOP_TESTS, "hudi-hadoop-tests"))
        keys = _text(common.read(_KEYS)).split(",")
        jobs: dict[str, Callable[[], str | None]] = {
            name: lambda name=name: bloom_differs(name, _text(common.read(name)), keys)  # type: ignore[misc]
            for name in sorted(common.namelist())
            if name.startswith(_BLOOMS) and name.endswith(".bf.data")
        }
        jobs[_DELETES] = lambda: str(decode_deletes(common.read(_DELETES)).num_rows)
        jobs[_POSITIONS] = lambda: positions_differ(_text(common.read(_POSITIONS)))
        jobs[_HFILE] = lambda: hfile_differs(hadoop.read(_HFILE))
        for name in [name for name in jobs if name not in task.judged][task.start :][: task.limit]:
            yield judge(name, jobs[name])


def judge(name: str, differs: Callable[[], str | None]) -> Verdict:
    """The verdict on a file. ``differs``: says what is not as expected, or raises."""
    try:
        difference = differs()
    except UnsupportedError as error:
        outcome = Outcome.REFUSED if rule_of(error.what) is not None else Outcome.WRONG
        return Verdict(name, outcome, error.what)
    except LakeError as error:
        return Verdict(name, Outcome.WRONG, "cannot be read", str(error))
    return Verdict(name, Outcome.WRONG, "differs", difference) if difference else Verdict(name, Outcome.EQUAL)


def bloom_differs(name: str, text: str, keys: list[str]) -> str | None:
    """What is wrong with a filter whose name says its kind, its size, and the most keys of one that grows."""
    kind, entries, *_, last = name.removeprefix(_BLOOMS).removesuffix(".bf.data").split("_")
    theirs = BloomFilter.from_base64(SIMPLE if kind == "simple" else DYNAMIC, text)
    missing = int((~theirs.might_contain(keys)).sum())
    if missing:
        return f"{missing} keys are not inside"
    size = int(entries)
    ours = BloomFilter.simple(size, _RATE) if kind == "simple" else BloomFilter.dynamic(size, _RATE, int(last))
    ours.add(keys)
    return None if ours.to_base64() == text else "other bytes"


def positions_differ(text: str) -> str | None:
    """What is wrong with log blocks of which one has these record positions. Their rows are merged by their keys."""
    headers: list[dict[int, str]] = [
        {Header.INSTANT_TIME: "1", Header.RECORD_POSITIONS: text},
        {Header.INSTANT_TIME: "2"},
    ]
    data = b"".join(encode_block(BlockType.PARQUET_DATA, header, b"rows") for header in headers)
    blocks = [(dict(block.header), bytes(block.content)) for block in iter_blocks(data)]
    return None if blocks == [(header, b"rows") for header in headers] else f"{len(blocks)} other blocks"


def hfile_differs(content: bytes) -> str | None:
    """What is wrong with the file: its test says that record n has the key ``key%06d-abcdefghij``, and n twice."""
    reader = HFileReader.from_bytes(content)
    schema = fastavro.parse_schema(json.loads(reader.schema or "{}"))
    expected = [f"key{number:06}-abcdefghij" for number in range(20_000)]
    rows = list(reader.scan())
    if [key.decode() for key, _ in rows] != expected:
        return f"{len(rows)} other keys"
    for number, (key, value) in enumerate(rows):
        record = fastavro.schemaless_reader(io.BytesIO(value), schema, None)
        if record != {"_row_key": key.decode(), "time": str(number), "number": number}:
            return f"record {number} is {record!r}"
    return None if reader.get_many(key for key, _ in rows) == dict(rows) else "other values one by one"


def _text(content: bytes) -> str:
    """Without the licence before it."""
    return content.decode().partition("*/")[2].strip()
