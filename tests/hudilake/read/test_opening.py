"""One change of ``hoodie.properties``: every door gives the rows of the untouched table, or names what it refuses."""

from __future__ import annotations

import contextlib
import random
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from hudilake.errors import ConfigError, CorruptDataError, LakeError, UnsupportedError
from hudilake.format.definition.properties import dump_properties, load_properties
from hudilake.metadata.config import MetadataConfig
from hudilake.read import Compare, TableReader
from hudilake.read.filters.expressions import Op, normalised
from hudilake.services.fsck import fsck
from hudilake.services.kept import take_back
from hudilake.services.repair import plan_repair, repair
from hudilake.table.table import HudiTable
from lakemetastore.lake.opened import OpenedTable
from tests.hudilake import lake
from tests.hudilake.golden_kinds import extracted
from tests.hypothesis_profile import scaled
from tests.paths import GOLDEN

Values = dict[str, str]
Files = dict[str, bytes]
PROPERTIES = ".hoodie/hoodie.properties"
#: Of Hudi 1.2.0, with values that its enumerations have, and some that they have not.
DOMAINS: Mapping[str, tuple[str, ...]] = {
    "hoodie.table.version": ("0", "1", "5", "6", "7", "8", "10", "9.0", "NINE"),
    "hoodie.timeline.layout.version": ("0", "1", "3"),
    "hoodie.table.initial.version": ("6", "8", "10"),
    "hoodie.table.type": ("COPY_ON_WRITE", "MERGE_ON_READ", "merge_on_read", "OTHER"),
    "hoodie.table.format": ("native", "iceberg", "NATIVE"),
    "hoodie.table.base.file.format": ("PARQUET", "HFILE", "ORC", "LANCE", "HOODIE_LOG", "parquet"),
    "hoodie.table.log.file.format": ("HOODIE_LOG", "PARQUET", "hoodie_log"),
    "hoodie.table.multiple.base.file.formats.enable": ("true", "false"),
    "hoodie.table.features": ("a", "row.ids,variant"),
    "hoodie.timeline.path": ("timeline", "other", ""),
    "hoodie.timeline.history.path": ("history", "archived"),
    "hoodie.archivelog.folder": ("archived", "history", "x"),
    "hoodie.table.timeline.timezone": ("UTC", "LOCAL", "CET"),
    "hoodie.populate.meta.fields": ("true", "false", "FALSE"),
    "hoodie.bootstrap.base.path": ("file:///x",),
    "hoodie.bootstrap.index.enable": ("true", "false"),
    "hoodie.record.merge.mode": ("COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING", "CUSTOM", "commit_time_ordering"),
    "hoodie.record.merge.strategy.id": (
        "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
        "ce9acb64-bde0-424c-9b91-f6ebba25356d",
        "1897ef5f-18bc-4557-939c-9d6a8afd1519",
        "00000000-0000-0000-0000-000000000000",
    ),
    "hoodie.compaction.payload.class": (
        "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
        "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
        "org.apache.hudi.common.model.PartialUpdateAvroPayload",
    ),
    "hoodie.table.legacy.payload.class": ("org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",),
    "hoodie.table.partial.update.mode": ("IGNORE_DEFAULTS", "FILL_UNAVAILABLE", "KEEP_VALUES"),
    "hoodie.record.merge.property.hoodie.payload.delete.field": ("name",),
    "hoodie.table.cdc.enabled": ("true", "false"),
    "hoodie.table.keygenerator.type": (
        *("SIMPLE", "SIMPLE_AVRO", "COMPLEX", "COMPLEX_AVRO", "TIMESTAMP", "TIMESTAMP_AVRO", "CUSTOM", "CUSTOM_AVRO"),
        *("NON_PARTITION", "GLOBAL_DELETE", "AUTO_RECORD", "HOODIE_TABLE_METADATA", "SPARK_SQL", "USER_PROVIDED", "x"),
    ),
    "hoodie.table.keygenerator.class": ("org.apache.hudi.keygen.SimpleKeyGenerator", "org.example.Own"),
    "hoodie.datasource.write.hive_style_partitioning": ("true", "false", "True"),
    "hoodie.datasource.write.partitionpath.urlencode": ("true", "false", "True"),
    "hoodie.datasource.write.slash.separated.date.partitioning": ("true", "false"),
    "hoodie.datasource.write.drop.partition.columns": ("true", "false"),
    "hoodie.partition.metafile.use.base.format": ("true", "false"),
    "hoodie.index.type": ("BLOOM", "BUCKET", "GLOBAL_SIMPLE", "INMEMORY", "RECORD_LEVEL_INDEX", "bloom", "x"),
    "hoodie.index.bucket.engine": ("SIMPLE", "CONSISTENT_HASHING", "x"),
    "hoodie.bucket.index.num.buckets": ("", "0", "-2", "x", "999999999999"),
    "hoodie.bucket.index.partition.expressions": ("x", "a,1;b,", "[,3", "d.*,0"),
    "hoodie.bucket.index.partition.rule.type": ("regex", "REGEX", "range"),
    "hoodie.bucket.index.hash.field": ("", "nope"),
    "hoodie.table.metadata.partitions": ("", "files", "column_stats", "files,record_index", "later,files"),
    "hoodie.table.metadata.partitions.inflight": ("", "record_index"),
    "hoodie.table.index.defs.path": ("", "x.json"),
    "hoodie.table.recordkey.fields": ("", "nope"),
    "hoodie.table.partition.fields": ("", "nope"),
    "hoodie.table.ordering.fields": ("", "nope", "id,name", "name"),
    "hoodie.table.precombine.field": ("id", "nope"),
    "hoodie.table.create.schema": ("", "no schema"),
    "hoodie.table.name": ("", "other"),
    "hoodie.database.name": ("other",),
    "hoodie.table.checksum": ("", "1", "x"),
    "hoodie.table.secondary.indexes.metadata": ("x",),
    "hoodie.keygen.timebased.timestamp.type": ("DATE_STRING",),
    "binlake.index": ("bucket", "consistent_bucket", "bloom", "none", "later"),
    "binlake.merging": ("", "{}", '{"engine":"later"}'),
    "binlake.buckets.history": ("", "x", "[]", '[["",{"number":"x"}]]'),
    "binlake.recordkey.since": ("20240101000000000",),
    "hoodie.later": ("x",),
    "hoodie.table.later": ("x",),
    "hoodie.metadata.enable": ("false",),
    "binlake.later": ("x",),
}
#: A change of these says that the table is another one: rows are merged in another way.
MERGING = ("hoodie.record.merge.mode", "hoodie.table.ordering.fields", "binlake.merging")


def changes_of(values: Values) -> Iterator[tuple[str, Values]]:
    """Every single change, with the name that it concerns."""
    for name in values:
        yield name, {k: v for k, v in values.items() if k != name}
        yield name, {**{k: v for k, v in values.items() if k != name}, name.upper(): values[name]}
        for value in (values[name].swapcase(), f"{values[name]} ", f"{values[name]}x"):
            yield name, {**values, name: value}
    for name, domain in DOMAINS.items():
        for value in domain:
            yield name, {**values, name: value}


def make_ours(path: Path) -> Path:
    table = lake.new_table(path, MetadataConfig())
    lake.commit(table, lake.upserts(range(12), 100) + lake.upserts(range(5), 100, day="d2"))
    lake.commit(table, lake.upserts([1, 2], 90, "late") + lake.deletes([3], 110) + lake.deletes([5], 99))
    return path


TABLES: Mapping[str, tuple[Callable[[Path], Path], str]] = {
    "ours": (make_ours, "day"),
    "hudi": (lambda path: Path(shutil.copytree(GOLDEN / "tbl_hudi120", path)), "region"),
    "bloom": (lambda path: extracted("mor_bloom", path), "region"),
    "ring": (lambda path: extracted("mor_consistent_bucket", path), "region"),
}


def all_rows(path: Path) -> list[dict[str, Any]]:
    reader = TableReader.open(str(path))
    plan = reader.plan()
    return [row for item in plan.slices for batch in plan.scan.read(item) for row in batch.to_pylist()]


def asked(path: Path, parts: Iterable[tuple[str, Any]]) -> list[list[str]]:
    """The rows with a value in a column, through the reader that leaves out files for it."""
    reader, answers = TableReader.open(str(path)), []
    for column, value in parts:
        plan = reader.plan(condition=normalised(Compare(column, Op.EQ, value)))
        found = [row for item in plan.slices for batch in plan.scan.read(item) for row in batch.to_pylist()]
        answers.append(sorted(str(row) for row in found if row[column] == value))
    return answers


def answered(path: Path, parts: Sequence[tuple[str, Any]]) -> list[list[str]] | LakeError:
    """All rows, and those with each value; or the refusal."""
    try:
        return [sorted(map(str, all_rows(path))), *asked(path, parts)]
    except LakeError as error:
        return error


def files(path: Path) -> Files:
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def mended(path: Path) -> None:
    """``fsck``, ``repair`` and its way back."""
    storage = lake.storage_at(path)
    list(repair(storage, plan_repair(fsck(storage, grace_ms=0).findings), grace_ms=0))
    if (path / ".hoodie/.repairs").exists():
        take_back(storage)


DOORS: tuple[Callable[[Path], object], ...] = (
    lambda path: OpenedTable.open(lake.storage_at(path)),
    lambda path: HudiTable.open(lake.storage_at(path)).config.check_writable(),
    mended,
)


@pytest.mark.first(1)
@pytest.mark.parametrize("kind", TABLES)
def test_rows_are_right_or_the_property_is_named(tmp_path: Path, kind: str) -> None:
    make, column = TABLES[kind]
    path = make(tmp_path / "t")
    values, rows = load_properties((path / PROPERTIES).read_bytes()), all_rows(path)
    parts = [(name, rows[0][name]) for name in ("id", column)]
    untouched = answered(path, parts)
    cases = list(changes_of(values))
    opened = 0
    for name, changed in random.Random(26).sample(cases, scaled(len(cases), divisor=20)):
        (path / PROPERTIES).write_bytes(dump_properties(changed, "x"))
        before, case = files(path), f"{name} is {changed.get(name)}"
        answer = answered(path, parts)
        if isinstance(answer, LakeError):
            assert is_named(name, answer), case
        else:
            opened += 1
            assert name in MERGING or answer == untouched, case
        for door in DOORS:
            with contextlib.suppress(UnsupportedError, CorruptDataError, ConfigError):
                door(path)
            assert files(path) == before, case
    assert opened


def is_named(name: str, error: LakeError) -> bool:
    """Whether an error names the property that was changed, or says that the file is damaged."""
    return name.lower() in str(error).lower() or isinstance(error, CorruptDataError)


def test_another_merge_mode_gives_the_rows_of_that_mode(tmp_path: Path) -> None:
    """The later commit wins, whatever the ordering column says: a late row is the newest then."""
    path = make_ours(tmp_path)
    values = load_properties((path / PROPERTIES).read_bytes())
    assert {row["id"]: row["name"] for row in lake.ours(path) if row["day"] == "d1"}[1] == "n1"
    values["hoodie.record.merge.mode"] = "COMMIT_TIME_ORDERING"
    (path / PROPERTIES).write_bytes(dump_properties(values, "x"))
    names = {row["id"]: row["name"] for row in lake.ours(path) if row["day"] == "d1"}
    assert (names[1], names[2]) == ("late1", "late2")
    assert not {3, 5} & names.keys()
    assert lake.ours(path) == lake.rs(path)


#: How the file of an instant may be called by another program, by its requested time and its rest.
OTHERWISE: Mapping[str, Callable[[str, str], str]] = {
    "an unknown action": lambda begun, rest: f"{begun}_{rest.partition('.')[0]}.mergecommit",
    "an unknown action that is under way": lambda begun, rest: f"{begun}.mergecommit.inflight",
    "an unknown action that is planned": lambda begun, rest: f"{begun}.mergecommit.requested",
    "an action that never completes": lambda begun, rest: f"{begun}_{rest.partition('.')[0]}.clustering",
    "no completion time": lambda begun, rest: f"{begun}.{rest.partition('.')[2]}",
}


@pytest.mark.first(9)
@pytest.mark.parametrize("kind", ["ours", "hudi"])
@pytest.mark.parametrize("otherwise", OTHERWISE.values(), ids=OTHERWISE)
def test_an_instant_that_is_not_understood_is_named_and_nothing_is_changed(
    tmp_path: Path, kind: str, otherwise: Callable[[str, str], str]
) -> None:
    """Its rows would be missing, and a repair would move its files away."""
    path = TABLES[kind][0](tmp_path / "t")
    for file in sorted((path / ".hoodie/timeline").glob("*_*")):
        begun, _, rest = file.name.partition("_")
        odd = file.rename(file.with_name(otherwise(begun, rest)))
        before, answer = files(path), answered(path, [])
        assert isinstance(answer, UnsupportedError)
        assert odd.name in str(answer)
        for door in DOORS[1:]:
            with pytest.raises(UnsupportedError, match="is not understood"):
                door(path)
        assert files(path) == before
        odd.rename(file)
    assert isinstance(answered(path, []), list)
