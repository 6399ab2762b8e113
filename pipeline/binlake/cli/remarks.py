"""What several commands remark of a table: merge engines and what they cannot know, buckets far from their size."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from binlake.cli.text import size
from binlake.rows.upsert.engines.contributions import FINAL
from binlake.settings import Settings, TableRules
from binlake.tables.bucket_sizes import PLANNED_BYTES, BucketAdvice
from binlake.tables.lake_table import LakeTable
from hudilake.services.rebucket.units import BucketChange
from hudilake.storage import Storage
from hudilake.table.table import HudiTable
from hudilake.wording import counted


def engine_remarks(settings: Settings, lake: Storage, table: str, rules: TableRules) -> Iterator[str]:
    """Warnings about one table, for people. Raises LakeError for a table that cannot be read."""
    if not rules.merge.functions:
        return
    if settings.source.format in ("auto", "canal"):
        yield (
            f"{table}: Canal's messages name no binlog position, so facts that Canal delivers again are counted again; "
            "Debezium's and Maxwell's are counted once"
        )
    if final := sorted({function for _, function in rules.merge.functions if function in FINAL}):
        yield (
            f"{table}: {', '.join(final)} cannot take a value back: deletes, and updates of such columns, are "
            "quarantined (irrevocable)"
        )
    if lake.sub(rules.path).list(".hoodie"):
        known = {name.lower() for name in HudiTable.open(lake.sub(rules.path)).schema.names}
        if absent := [column for column, _ in rules.merge.functions if column.lower() not in known]:
            yield f"{table}: merge.columns names {', '.join(absent)}, which the table does not have"


def bucket_remark(advice: BucketAdvice, conf: str, table: str) -> str:
    """Another number of buckets, with its command. ``conf``: the settings file; ``table``: ``database.table``."""
    return f"a bucket has {size(advice.mean_bytes)} of {size(PLANNED_BYTES)} planned: {advice.command(conf, table)}"


def loading_remark(table: str, rows: int, conf: str) -> str:
    """What a table says whose first load is under way or was interrupted."""
    return f"{table}: its first load is not at its end, after {counted(rows, 'row')}; binlake load {conf} goes on"


def ring_remark(wanted: Sequence[BucketChange], target_bytes: int, conf: str, table: str) -> str:
    """Splits and merges of single buckets, with their command.

    Args:
        wanted: at least one.
        target_bytes: the target size of files.
        conf: the settings file.
        table: ``database.table``.
    """
    splits = sum(len(one.buckets) == 1 for one in wanted)
    merged = sum(len(one.buckets) for one in wanted) - splits
    pieces = [f"{splits} to split"] if splits else []
    pieces += [f"{merged} to merge"] if merged else []
    return f"buckets far from {size(target_bytes)}: {', '.join(pieces)}: binlake rebucket {conf} {table} --auto"


def other_streams(settings: Settings, lake: Storage, rules: TableRules) -> tuple[list[str], bool]:
    """The other streams that wrote a table from topics of these settings, and whether its rows have keys. Raises
    StorageError, CorruptDataError."""
    storage, kafka = lake.sub(rules.path), settings.kafka
    if not HudiTable.exists(storage):
        return [], False

    def mine(topic: str) -> bool:
        pattern = kafka.topic_pattern
        return topic in kafka.topics if pattern is None else re.fullmatch(pattern, topic) is not None

    table = LakeTable.look(storage, rules)
    others = {stream for stream in table.positions if stream != settings.name and "." not in stream}  # a dot: replays
    names = sorted(stream for stream in others if any(map(mine, table.positions[stream])))
    return names, bool(table.hudi.config.record_key_fields)
