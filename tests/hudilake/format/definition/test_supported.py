"""Which properties a table may have: everything else is refused with its name and value."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudilake.errors import CorruptDataError, UnsupportedError
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.properties import dump_properties, load_properties
from tests.hudilake.golden_kinds import extracted
from tests.hudilake.lake import config
from tests.paths import GOLDEN

OURS = config().properties()
MODEL = "org.apache.hudi.common.model."
REFUSED = {
    "hoodie.table.version": ["5", "7", "10", "09", "9 ", "", "nine"],
    "hoodie.timeline.layout.version": ["1", "3"],
    "hoodie.table.type": ["merge_on_read", "LOG_ONLY"],
    "hoodie.table.format": ["iceberg"],
    "hoodie.table.base.file.format": ["ORC", "HFILE", "parquet"],
    "hoodie.table.ro.file.format": ["ORC"],
    "hoodie.table.log.file.format": ["AVRO"],
    "hoodie.table.multiple.base.file.formats.enable": ["true"],
    "hoodie.table.features": ["row-ids", "x,y"],
    "hoodie.timeline.path": ["elsewhere"],
    "hoodie.timeline.history.path": ["archived"],
    "hoodie.populate.meta.fields": ["no", "TRUE"],
    "hoodie.bootstrap.base.path": ["file:///old"],
    "hoodie.record.merge.mode": ["CUSTOM", "event_time_ordering"],
    "hoodie.record.merge.strategy.id": ["1897ef5f-18bc-4557-939c-9d6a8afd1519", "ce9acb64-bde0-424c-9b91-f6ebba25356d"],
    "hoodie.compaction.payload.class": ["org.example.Own", f"{MODEL}OverwriteWithLatestAvroPayload"],
    "hoodie.record.merge.property.hoodie.payload.delete.field": ["op"],
    "hoodie.table.partial.update.mode": ["IGNORE_DEFAULTS", "FILL_UNAVAILABLE"],
    "hoodie.table.ordering.fields": ["id,qty", "", " id"],
    "hoodie.table.precombine.field": ["qty"],
    "hoodie.table.keygenerator.type": ["USER_PROVIDED", "GLOBAL_DELETE", "simple", "AUTO_RECORD"],
    "hoodie.table.keygenerator.class": ["org.example.Own", "org.apache.hudi.keygen.ComplexKeyGenerator"],
    "hoodie.datasource.write.recordkey.field": ["name"],
    "hoodie.datasource.write.hive_style_partitioning": ["yes", "True"],
    "hoodie.datasource.write.drop.partition.columns": ["true"],
    "hoodie.partition.metafile.use.base.format": ["true"],
    "hoodie.index.type": ["HBASE", "bucket"],
    "hoodie.index.bucket.engine": ["OTHER"],
    "hoodie.bucket.index.num.buckets": ["two", "-1", "0", "1e3", "123456789"],
    "hoodie.bucket.index.partition.expressions": ["a", "a,b", "(,2", "a,0", "a,2;"],
    "hoodie.bucket.index.partition.rule.type": ["glob"],
    "hoodie.table.index.defs.path": ["elsewhere.json"],
    "hoodie.table.later.feature": ["on"],
    "Hoodie.Table.Version": ["9"],
    "hoodie.timeline.later": ["1"],
    "binlake.index": ["later", "bloom"],
    "binlake.later": ["1"],
}
#: Tables with them are read, and neither written nor repaired.
READ_ONLY = {
    "hoodie.table.keygenerator.type": ["TIMESTAMP", "CUSTOM_AVRO"],
    "hoodie.table.version": ["8"],
    "hoodie.populate.meta.fields": ["false"],
    "hoodie.table.cdc.enabled": ["true"],
    "hoodie.table.base.file.format": ["LANCE"],
    "hoodie.datasource.write.slash.separated.date.partitioning": ["true"],
    "hoodie.keygen.timebased.timestamp.type": ["DATE_STRING"],
    "hoodie.table.metadata.partitions.inflight": ["record_index"],
    "hoodie.later.feature": ["on"],
    "HOODIE.metadata.enable": ["true"],
}
ACCEPTED = {
    "hoodie.table.initial.version": "6",
    "hoodie.table.legacy.payload.class": f"{MODEL}OverwriteWithLatestAvroPayload",
    "hoodie.record.merge.strategy.id": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
    "hoodie.compaction.payload.class": f"{MODEL}DefaultHoodieRecordPayload",
    "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
    "hoodie.table.timeline.timezone": "LOCAL",
    "hoodie.table.metadata.partitions.inflight": "",
    "a user's own": "note",
}


def read(changes: dict[str, str]) -> TableConfig:
    return TableConfig.from_properties(dump_properties({**OURS, **changes}, "x"))


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_name_and_value(name: str) -> None:
    for value in REFUSED[name]:
        with pytest.raises(UnsupportedError) as raised:
            read({name: value})
        assert name in raised.value.what, value
        assert value.strip() in raised.value.what


@pytest.mark.parametrize("name", READ_ONLY)
def test_read_and_not_changed(name: str) -> None:
    for value in READ_ONLY[name]:
        found = read({name: value})
        for check in (found.check_writable, found.check_changeable):
            with pytest.raises(UnsupportedError, match=f"{name} is {value}"):
                check()


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name: str) -> None:
    read({name: ACCEPTED[name]}).check_writable()


@pytest.mark.parametrize(
    "name",
    [
        "hoodie.table.version",
        "hoodie.timeline.layout.version",
        "hoodie.table.type",
        "hoodie.record.merge.mode",
        "hoodie.table.keygenerator.type",
        "hoodie.table.name",
    ],
)
def test_a_property_that_every_table_has_is_missing(name: str) -> None:
    values = {key: value for key, value in OURS.items() if key != name}
    with pytest.raises(CorruptDataError, match=name if name != "hoodie.table.name" else "names no table"):
        TableConfig.from_properties(dump_properties(values, "x"))


def test_a_copy_on_write_table_has_no_hash_ring() -> None:
    ring = {"hoodie.index.bucket.engine": "CONSISTENT_HASHING", "binlake.index": "consistent_bucket"}
    assert read(ring).kind.hashes
    with pytest.raises(UnsupportedError, match=r"hoodie.index.bucket.engine is CONSISTENT_HASHING"):
        read({**ring, "hoodie.table.type": "COPY_ON_WRITE"})


def test_another_merge_mode_is_read_and_not_written() -> None:
    found = read({"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"})
    assert found.ordering_field == "", "the later commit wins, whatever column is named"
    assert found.properties()["hoodie.table.ordering.fields"] == OURS["hoodie.table.ordering.fields"]
    with pytest.raises(UnsupportedError, match=r"hoodie.record.merge.mode is COMMIT_TIME_ORDERING"):
        found.check_writable()


def test_another_spelling_of_keys_is_not_written() -> None:
    found = read({"hoodie.table.keygenerator.type": "COMPLEX"})
    with pytest.raises(UnsupportedError, match=r"hoodie.table.keygenerator.type is COMPLEX"):
        found.check_writable()


@pytest.mark.full
def test_what_hudi_writes_is_opened(tmp_path: Path) -> None:
    kinds = sorted(path.name[: -len(".tar.gz")] for path in (GOLDEN / "kinds").glob("*.tar.gz"))
    roots = [GOLDEN / "tbl_hudi120", *(extracted(kind, tmp_path) for kind in kinds)]
    for root in roots:
        data = (root / ".hoodie/hoodie.properties").read_bytes()
        found = TableConfig.from_properties(data)
        found.check_changeable()
        stated = {name: value for name, value in load_properties(data).items() if value}
        assert load_properties(found.to_properties()).items() >= stated.items()
    assert len(roots) > 10
