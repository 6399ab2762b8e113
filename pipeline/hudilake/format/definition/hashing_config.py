"""Bucket counts by partition as Hudi's writers find them: ``.hashing_config`` files (Hudi 1.2.0,
``PartitionBucketIndexHashingConfig``).

Of the files whose instants are completed the newest counts. Each has the instant that made it, zeros for a new table.
It stands alone: tables, rollbacks, restores and resizes all need such files.
"""

from __future__ import annotations

import json

from hudilake.format.definition.bucketing import Bucketing, PartitionBuckets, expressions_of

_FOLDER = ".hoodie/.bucket_index/partition_bucket_index_meta/configs"


def hashing_config_path(instant: str) -> str:
    """The file of an instant, relative to the table's root."""
    return f"{_FOLDER}/{instant}.hashing_config"


def hashing_config(bucketing: Bucketing, instant: str) -> bytes:
    """The file's content. One number for all partitions is the default number without expressions."""
    rules = bucketing.rules if isinstance(bucketing, PartitionBuckets) else ()
    default = bucketing.default if isinstance(bucketing, PartitionBuckets) else bucketing.count("")
    said = {
        "expressions": expressions_of(rules),
        "defaultBucketNumber": default,
        "rule": "regex",
        "version": 1,
        "instant": instant,
    }
    return json.dumps(said, indent=2).encode()
