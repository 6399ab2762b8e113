"""Properties of tables of versions 6 and 8, in the words of version 9."""

from __future__ import annotations

import pytest

from hudilake.errors import LakeError, UnsupportedError
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.older import in_words_of_9
from hudilake.format.definition.properties import dump_properties

MODEL = "org.apache.hudi.common.model."
SIX = {
    "hoodie.table.name": "t1",
    "hoodie.table.version": "6",
    "hoodie.timeline.layout.version": "1",
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.table.recordkey.fields": "id",
    "hoodie.table.precombine.field": "ts",
    "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "hoodie.compaction.payload.class": f"{MODEL}DefaultHoodieRecordPayload",
    "hoodie.table.metadata.partitions": "files",
}


def opened(values: dict[str, str]) -> TableConfig:
    return TableConfig.from_properties(dump_properties(values, "by a test"))


@pytest.mark.parametrize(
    ("payload", "ordering"),
    [
        ("DefaultHoodieRecordPayload", "ts"),
        ("EventTimeAvroPayload", "ts"),
        ("OverwriteWithLatestAvroPayload", ""),
    ],
)
def test_the_payload_says_how_rows_are_merged(payload: str, ordering: str) -> None:
    strategy = {"hoodie.compaction.record.merger.strategy": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"}
    config = opened(SIX | strategy | {"hoodie.compaction.payload.class": f"{MODEL}{payload}"})
    assert config.ordering_field == ordering


def test_without_a_payload_the_ordering_column_says_it() -> None:
    without = {key: value for key, value in SIX.items() if key != "hoodie.compaction.payload.class"}
    assert opened(without).ordering_field == "ts"
    assert opened({k: v for k, v in without.items() if k != "hoodie.table.precombine.field"}).ordering_field == ""


def test_event_time_without_a_column_is_commit_time() -> None:
    assert opened({k: v for k, v in SIX.items() if k != "hoodie.table.precombine.field"}).ordering_field == ""


def test_another_payload_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"hoodie\.compaction\.payload\.class is com\.shop\.Payload"):
        opened(SIX | {"hoodie.compaction.payload.class": "com.shop.Payload"})


def test_what_it_is_opened_as() -> None:
    config = opened(SIX)
    assert (config.timeline_layout, config.has_meta_fields, config.metadata_partitions) == (1, True, ())
    assert config.properties()["hoodie.table.version"] == "6"
    with pytest.raises(UnsupportedError, match=r"hoodie\.table\.version is 6.*it changes only tables where this is 9"):
        config.check_writable()
    with pytest.raises(UnsupportedError, match="an incremental read needs a table where it is 2"):
        config.refuse_older("an incremental read")


@pytest.mark.parametrize(
    "values",
    [
        {"hoodie.table.version": "7"},
        {"hoodie.table.version": "5"},
        {"hoodie.timeline.layout.version": "2"},
        {"hoodie.table.version": "8"},
        {"hoodie.table.keygenerator.class": "com.shop.Keys"},
        {"hoodie.bootstrap.base.path": "/somewhere"},
    ],
)
def test_what_is_not_known_is_refused(values: dict[str, str]) -> None:
    with pytest.raises(LakeError):
        opened(SIX | values)


def test_version_9_stays_as_it_is() -> None:
    nine = SIX | {"hoodie.table.version": "9", "hoodie.timeline.layout.version": "2"}
    assert in_words_of_9(nine) == nine


def test_a_key_generator_that_is_not_stated_says_nothing_of_paths() -> None:
    without = {key: value for key, value in SIX.items() if key != "hoodie.table.keygenerator.class"}
    assert in_words_of_9(without)["hoodie.table.keygenerator.type"] == "CUSTOM"
