"""The commit record: what is written is read again, records of before are read as they were, later ones are refused."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import binlake
from binlake.decode.changes import SourceTable
from binlake.position.commit_record import CommitNotes, CommitRecord
from binlake.position.derived_position import CellsMoment, DerivedPosition
from binlake.position.record_reader import VERSION, RecordKey, RecordReader
from binlake.position.recorded import (
    PassedTransactions,
    RecordedBackfill,
    RecordedLoad,
    RecordedPortion,
    RecordedTransactions,
    Revert,
)
from binlake.rows.upsert.keyless import KeylessState
from binlake.rows.upsert.route import Counts
from binlake.rows.upsert.truncates import Truncates
from binlake.schema.rules.entries import DdlEntry
from binlake.schema.rules.judged import ClauseVerdict, Ruling
from binlake.schema.rules.row_places import SnapshotPlaces
from binlake.source.database.snapshot import SourcePosition
from binlake.source.dump_layout import DumpFile
from binlake.source.offsets import OffsetRange, Offsets, Ranges
from hudilake.errors import UnsupportedError
from hudilake.locking.process_identity import ProcessIdentity
from hudilake.storage import open_storage

CUSTOMERS = SourceTable("shöp", "kunden")

#: What the code of before there was a type for it wrote, every key, in its order.
WRITTEN_BEFORE = {
    "binlake.stream": "shop",
    "binlake.batch": "17",
    "binlake.counts": '{"read":9,"applied":5,"superseded":1,"filtered":1,"quarantined":2,"already_applied":3}',
    "binlake.truncated": '{"whole":7,"shards":[["shard","größe",8]]}',
    "binlake.skipped": '{"s.shop.kunden":{"0":[[9,10],[10,12]]}}',
    "binlake.transactions": '{"last":"t-9","split":false,"torn":["t-3"],"ms":1760000000123,"ended":["t-9"],'
    '"offsets":{"0":81,"1":3}}',
    "binlake.dump": '{"from":"file:///dumps","portion":"8ac4075fad1151cd","tables":[["shop","a"],["shöp","kunden"]],'
    '"files":[[488888,"shop/größe.jsonl",10,1760000000000],[488889,"b.jsonl.gz",0,1]],"settled":[["shop","none"]]}',
    "binlake.dump_table": '["sh\\u00f6p", "kunden"]',
    "binlake.dump_hours": '{"s3://b/x":[[1,5],[9,10]],"file:///dumps":[[488888,488890]]}',
    "binlake.ddl": '[{"source":["shöp","kunden"],"order":4294967300,"seconds":1760000000,'
    '"place":"mysql-bin.000001:4","digest":"ab12","statement":"ALTER TABLE kunden DROP COLUMN größe",'
    '"verdicts":[["apply","dropped"]],"gone":["größe"],"renamed":[["shöp","a"],["shöp","b"]],"deleted":[5,null]}]',
    "binlake.replayed": '{"s.shop.kunden/0:5":8812345678901234567}',
    "binlake.source_times": "[1760000000000,1760000000999]",
    "binlake.offsets": '{"s.shop.kunden":{"0":[5,12],"11":[0,1099511627776]}}',
    "binlake.positions": '{"shop":{"s.shop.kunden":{"0":12,"1":4,"11":1099511627776},"alt":{"3":1}},'
    '"other":{"u":{"0":70}}}',
    "binlake.source": '["shöp", "kunden", "shöp_01", "kunden"]',
    "binlake.keyless": '{"applied":"eJxjZYAARgZUwIhG/4cCACVMCAE=","debts":[["aa",7,0]]}',
}
#: The same as a value.
RECORD = CommitRecord(
    stream="shop",
    batch=17,
    counts=Counts(9, 5, 1, 1, 2, 3),
    source=CUSTOMERS,
    origin=SourceTable("shöp_01", "kunden"),
    ranges=Ranges([OffsetRange("s.shop.kunden", 0, 5, 12), OffsetRange("s.shop.kunden", 11, 0, 2**40)]),
    positions={
        "shop": Offsets({"s.shop.kunden": {0: 12, 1: 4, 11: 2**40}, "alt": {3: 1}}),
        "other": Offsets({"u": {0: 70}}),
    },
    truncates=Truncates(7, {("shard", "größe"): 8}),
    keyless=KeylessState({(5, 0, 1), (6, 1, 0)}, [("aa", 7, 0)]),
    notes=CommitNotes(
        skipped=Ranges([OffsetRange("s.shop.kunden", 0, 9, 10), OffsetRange("s.shop.kunden", 0, 10, 12)]),
        transactions=RecordedTransactions(
            "t-9", False, PassedTransactions(1_760_000_000_123, ("t-9",), ("t-3",)), {0: 81, 1: 3}
        ),
        portion=RecordedPortion(
            "file:///dumps",
            "8ac4075fad1151cd",
            (SourceTable("shop", "a"), CUSTOMERS),
            (DumpFile(488888, "shop/größe.jsonl", 10, 1_760_000_000_000), DumpFile(488889, "b.jsonl.gz", 0, 1)),
            (SourceTable("shop", "none"),),
        ),
        portion_table=CUSTOMERS,
        hours={"s3://b/x": [(1, 5), (9, 10)], "file:///dumps": [(488888, 488890)]},
        ddl=(
            DdlEntry(
                CUSTOMERS,
                4294967300,
                1_760_000_000,
                "mysql-bin.000001:4",
                "ab12",
                "ALTER TABLE kunden DROP COLUMN größe",
                (Ruling(ClauseVerdict.APPLY, "dropped"),),
                gone=("größe",),
                deleted=(5, None),
                renamed=(SourceTable("shöp", "a"), SourceTable("shöp", "b")),
            ),
        ),
        replayed={"s.shop.kunden/0:5": 8812345678901234567},
        source_times=(1_760_000_000_000, 1_760_000_000_999),
    ),
)


def inflated(extra: dict[str, str]) -> dict[str, str]:
    """The metadata with the compressed part of one value unpacked: how zlib packs is its own affair."""
    state = json.loads(extra["binlake.keyless"])
    state["applied"] = zlib.decompress(base64.b64decode(state["applied"])).hex()
    return {**extra, "binlake.keyless": json.dumps(state)}


def test_a_record_of_before_is_read_to_the_same_value_and_written_to_the_same_text() -> None:
    new = {
        "binlake.version",
        "binlake.snapshots",
        "binlake.reverts",
        "binlake.repaired",
        "binlake.key",
        "binlake.backfill",
        "binlake.derived",
        "binlake.heights",
        "binlake.repeated",
        "binlake.load",
        "binlake.brought",
        "binlake.dumped",
    }
    assert {key.value for key in RecordKey} - WRITTEN_BEFORE.keys() == new
    assert CommitRecord.from_extra(WRITTEN_BEFORE) == RECORD
    written = RECORD.to_extra()
    assert list(written) == list(WRITTEN_BEFORE)
    assert inflated(written) == inflated(WRITTEN_BEFORE)


# -- any record -------------------------------------------------------------------------------------------------------

NAMES = st.text('aö"\\,/.', min_size=1, max_size=3)
TABLES = st.builds(SourceTable, NAMES, NAMES)
SMALL = st.integers(0, 2**40)
OFFSETS = st.dictionaries(NAMES, st.dictionaries(st.integers(0, 9), SMALL, max_size=2), max_size=2).map(Offsets)


def ranges_of(places: Iterable[tuple[str, int]]) -> Ranges:
    """A range of each partition, those of a topic together as commits write them."""
    return Ranges(OffsetRange(topic, partition, 3, 5 + partition) for topic, partition in sorted(places))


RANGES = st.sets(st.tuples(NAMES, st.integers(0, 9)), max_size=4).map(ranges_of)
PASSED = st.builds(PassedTransactions, SMALL, st.lists(NAMES).map(tuple), st.lists(NAMES).map(tuple))
WORKERS = st.none() | st.builds(ProcessIdentity, NAMES, SMALL, SMALL, NAMES)
MOMENTS = st.builds(CellsMoment, NAMES, NAMES, st.lists(NAMES, max_size=2).map(tuple))
NOTES = st.builds(
    CommitNotes,
    skipped=RANGES,
    transactions=st.none()
    | st.builds(
        RecordedTransactions, st.none() | NAMES, st.booleans(), PASSED, st.dictionaries(st.integers(0, 3), SMALL)
    ),
    portion=st.none()
    | st.builds(
        RecordedPortion,
        NAMES,
        NAMES,
        st.lists(TABLES, max_size=2).map(tuple),
        st.lists(st.builds(DumpFile, SMALL, NAMES, SMALL, SMALL), max_size=2).map(tuple),
        st.lists(TABLES, max_size=2).map(tuple),
    ),
    portion_table=st.none() | TABLES,
    backfill=st.none()
    | st.builds(RecordedBackfill, NAMES, NAMES, NAMES, SMALL, SMALL, NAMES, st.lists(NAMES, max_size=2).map(tuple)),
    load=st.none()
    | st.builds(
        RecordedLoad,
        st.builds(SourcePosition, NAMES, SMALL, SMALL, st.none() | NAMES),
        NAMES,
        SMALL,
        st.none() | st.lists(NAMES, max_size=3).map(tuple),
        st.booleans(),
    ),
    derived=st.none()
    | st.builds(DerivedPosition, st.none() | MOMENTS, NAMES, SMALL, SMALL, st.none() | SMALL, SMALL, WORKERS),
    reverts=st.lists(st.builds(Revert, NAMES, NAMES, st.lists(NAMES).map(tuple), SMALL, SMALL, NAMES)).map(tuple),
    hours=st.none() | st.dictionaries(NAMES, st.lists(st.tuples(SMALL, SMALL), max_size=2), max_size=2),
    ddl=st.none() | st.just(RECORD.notes.ddl) | st.just(()),
    replayed=st.none() | st.dictionaries(NAMES, SMALL),
    source_times=st.none() | st.tuples(SMALL, SMALL),
    key=st.none() | st.tuples(st.lists(NAMES).map(tuple), NAMES),
)
RECORDS = st.builds(
    CommitRecord,
    NAMES,
    SMALL,
    st.builds(Counts, SMALL, SMALL, SMALL, SMALL, SMALL, SMALL),
    TABLES,
    st.none() | st.just(SourceTable("another", "name")),
    RANGES,
    st.none() | st.dictionaries(NAMES, OFFSETS, max_size=2),
    st.builds(Truncates, st.integers(-1, 9), st.dictionaries(st.tuples(NAMES, NAMES), st.integers(0, 9), max_size=2)),
    st.none()
    | st.builds(
        KeylessState,
        st.sets(st.tuples(SMALL, st.integers(0, 9), st.integers(0, 1)), max_size=3),
        st.lists(st.tuples(NAMES, SMALL, st.integers(0, 9)), max_size=2),
    ),
    NOTES,
    st.lists(st.tuples(SMALL, SMALL, SMALL, SMALL), max_size=2).map(tuple).map(SnapshotPlaces),
)


@given(RECORDS)
def test_a_record_survives_its_metadata(record: CommitRecord) -> None:
    extra = record.to_extra()
    assert all(type(key) is str and type(text) is str for key, text in extra.items())
    assert CommitRecord.from_extra(json.loads(json.dumps(extra))) == record


def test_a_commit_of_another_writer_has_no_record() -> None:
    assert CommitRecord.from_extra({"schema": "{}"}) is None


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (RecordKey.COUNTS, '{"eaten":1}'),
        (RecordKey.OFFSETS, '{"t":{"0":5}}'),
        (RecordKey.POSITIONS, '{"t":5}'),
        (RecordKey.TRANSACTIONS, "{}"),
        (RecordKey.BATCH, "x"),
        (RecordKey.HOURS, "{"),
    ],
)
def test_a_value_that_cannot_be_read_is_no_value(key: RecordKey, text: str) -> None:
    with pytest.raises((ValueError, KeyError, TypeError, AttributeError)):
        CommitRecord.from_extra({**WRITTEN_BEFORE, key: text})
    with pytest.raises(ValueError, match="no counts"):
        CommitRecord.from_extra({"binlake.stream": "shop"})


# -- the version ------------------------------------------------------------------------------------------------------


class Values:
    """Newest values as a table gives them, all of one commit."""

    def __init__(self, extra: dict[str, str]) -> None:
        self.extra, self.storage = extra, open_storage("file:///lake/shop/a")

    def extra_values(self, key: str, *beside: str) -> dict[str, str]:
        """See NewestValues."""
        return {k: self.extra[k] for k in (key, *beside) if k in self.extra} if key in self.extra else {}


def test_a_record_of_a_later_version_is_refused() -> None:
    later = {**WRITTEN_BEFORE, "binlake.version": str(VERSION + 1)}
    with pytest.raises(UnsupportedError, match="version 2, and this binlake knows versions up to 1") as raised:
        CommitRecord.from_extra(later)
    assert "a later version" in str(raised.value)
    with pytest.raises(UnsupportedError, match="version 2") as raised:
        _ = RecordReader.newest_of(Values(later)).positions
    assert raised.value.where["table"] == "file:///lake/shop/a"


def test_a_record_without_a_version_is_of_the_first() -> None:
    assert CommitRecord.from_extra({**WRITTEN_BEFORE, "binlake.version": "1"}) == RECORD
    assert RecordReader.newest_of(Values(WRITTEN_BEFORE)).positions == RECORD.positions
    assert "binlake.version" not in RECORD.to_extra()


# -- upon a table -----------------------------------------------------------------------------------------------------


def test_positions_never_go_back_and_other_streams_keep_theirs() -> None:
    before = {"shop": Offsets({"t": {0: 9, 1: 9}}), "other": Offsets({"u": {0: 70}})}
    batch = CommitRecord("shop", 1, Counts(), ranges=Ranges([OffsetRange("t", 0, 0, 5), OffsetRange("t", 1, 0, 20)]))
    record = batch.upon(before, Truncates(4))
    assert record.positions == {"shop": Offsets({"t": {0: 9, 1: 20}}), "other": Offsets({"u": {0: 70}})}
    assert record.repeated == Ranges([OffsetRange("t", 0, 0, 5), OffsetRange("t", 1, 0, 9)])
    assert record.truncates == Truncates(4)
    assert before["shop"] == {"t": {0: 9, 1: 9}}


def test_a_commit_that_covers_no_offsets_moves_no_position() -> None:
    record = CommitRecord("shop.ddl", 0, Counts(), truncates=Truncates(3)).upon(
        {"shop": Offsets({"t": {0: 9}})}, Truncates()
    )
    assert (record.positions, record.truncates) == (None, Truncates(3))
    assert record.to_extra().keys() == {"binlake.stream", "binlake.batch", "binlake.counts", "binlake.truncated"}


# -- one home ---------------------------------------------------------------------------------------------------------


def spelled_in(text: str) -> set[str]:
    """The keys that a text spells."""
    return {key.value for key in RecordKey if re.search(rf"(?<!from )(?<![\w.]){re.escape(key.value)}(?![\w.])", text)}


def test_keys_are_spelled_in_one_module() -> None:
    root = Path(binlake.__file__).parents[1]
    packages = [root, *(root.parent / name for name in ("jobs", "demo", "embedded", "bench"))]
    modules = [module for package in packages for module in package.rglob("*.py")]
    found = {module: spelled_in(module.read_text()) for module in modules}
    home = root / "binlake" / "position" / "record_reader.py"
    assert found.pop(home) == {key.value for key in RecordKey}  # the control: what is looked for is found
    metastore = root / "lakemetastore" / "lake" / "naming.py"
    assert found.pop(metastore) == {RecordKey.STREAM.value}  # it tells a stream's table without importing binlake
    assert {str(module.relative_to(root.parent)): keys for module, keys in found.items() if keys} == {}


def test_the_search_for_keys_tells_them_from_other_names() -> None:
    assert spelled_in('x.get("binlake.ddl")') == {"binlake.ddl"}
    assert spelled_in("the names (``binlake.dump_hours``)") == {"binlake.dump_hours"}
    assert spelled_in("spark.binlake.ddl, binlake.extra, binlake.stream_of") == set()
