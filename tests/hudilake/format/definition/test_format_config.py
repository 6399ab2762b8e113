"""The table format's configurations are the policies of the settings, with what only the format knows."""

from __future__ import annotations

import pickle

import pytest

from binlake.settings.table_rules import CompactionSettings, MetadataSettings, RetentionSettings
from hudilake.errors import ConfigError
from hudilake.format.definition.format_config import FormatConfig
from hudilake.metadata.config import MetadataConfig
from hudilake.policies import OrderPolicy
from hudilake.services.cleaning import CleaningConfig
from hudilake.services.compaction import CompactionConfig
from hudilake.validation import Section

PAIRS: list[tuple[Section, Section, type[FormatConfig]]] = [
    (
        MetadataSettings(),
        MetadataSettings(
            columns=("a",),
            column_stats=False,
            bloom_filters=False,
            column_stats_file_groups=3,
            bloom_file_groups=5,
            record_index_file_groups=7,
        ),
        MetadataConfig,
    ),
    (
        CompactionSettings(),
        CompactionSettings(
            mode="inline",
            after_commits=7,
            after_minutes=2.5,
            log_ratio=None,
            tombstone_retention_hours=1,
            row_group_rows=8,
            row_group_bytes=9,
            bloom_filter_fpp=0.5,
            max_file_groups=10,
            max_io_bytes=11,
            order_by=OrderPolicy(columns=("a",)),
        ),
        CompactionConfig,
    ),
    (RetentionSettings(), RetentionSettings(commits=None, hours=4), CleaningConfig),
]
pairs = pytest.mark.parametrize(("default", "given", "kind"), PAIRS, ids=lambda p: getattr(p, "__name__", ""))


@pairs
def test_a_policy_reaches_the_format_whole(default: Section, given: Section, kind: type[FormatConfig]) -> None:
    made = kind.of(given)
    shared = set(type(given).model_fields) - {"mode", "enabled"}
    assert made.model_fields_set == shared
    assert made.model_dump(include=shared) == given.model_dump(include=shared)
    assert all(getattr(given, name) != getattr(default, name) for name in shared)


@pairs
def test_both_have_the_same_defaults(default: Section, given: Section, kind: type[FormatConfig]) -> None:
    assert kind.of(default) == kind()
    assert kind.of(given) != kind()


def test_the_format_adds_what_only_it_knows() -> None:
    made = CompactionConfig.of(CompactionSettings(), compression="snappy", compression_level=None)
    assert (made.compression, made.compression_level) == ("snappy", None)
    assert pickle.loads(pickle.dumps(made)) == made


def test_a_mistake_is_a_config_error_with_its_field() -> None:
    with pytest.raises(ConfigError, match=r"MetadataConfig is not valid: bloom_fpp: .* less than 1"):
        MetadataConfig(bloom_fpp=1)
    with pytest.raises(ConfigError, match="limits contradict each other"):
        MetadataConfig(compact_after=5, compact_at_most=4)
    with pytest.raises(ConfigError, match="limits contradict each other"):
        MetadataConfig(archive_after=4, archive_keep=4)
    with pytest.raises(ConfigError, match="CompactionConfig is not valid: bloom_kind"):
        CompactionConfig.of(CompactionSettings(), bloom_kind="CUCKOO")
    with pytest.raises(ConfigError, match="give commits or hours"):
        CleaningConfig(commits=None)
