"""``binlake rebucket``: other buckets for a table while its stream goes on: another number, or single ones split and
merged where hashing is consistent.
"""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from binlake.cli.options import AsJson, LakeConf, Table
from binlake.cli.table_options import chosen_one, opened
from binlake.cli.text import duration, number, say, say_json, size
from binlake.cli.workers import CORES, OnSpark, Threads, workers
from binlake.settings import CompactionSettings, Settings
from binlake.tables.bucket_sizes import proposed
from binlake.tables.catalog import CatalogTable
from binlake.tables.lake_table import LakeTable
from binlake.tables.rebucket import rebucket, resize
from binlake.tables.services.policy import compaction_config
from hudilake.errors import ConfigError
from hudilake.format.definition.bucketing import Bucketing
from hudilake.services.compaction import CompactionConfig
from hudilake.services.rebucket.steps import RebucketResult, plan_rebucket, rings_of
from hudilake.services.rebucket.units import BucketChange, RebucketUnit, wanted_buckets
from hudilake.wording import counted

Buckets = Annotated[int | None, typer.Option("--buckets", help="The new number of buckets of a partition.", min=1)]
Partition = Annotated[
    str | None,
    typer.Option("--partition", help="Only partitions whose path matches, as day=2026-*; all if not given."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be moved and change nothing.")]


def rebucket_table(
    conf: LakeConf,
    table: Table,
    buckets: Buckets = None,
    partition: Partition = None,
    split: Split = None,
    merge: Merge = None,
    auto: Auto = False,
    dry_run: DryRun = False,
    spark: OnSpark = False,
    threads: Threads = CORES,
    as_json: AsJson = False,
) -> None:
    """Move the rows of a table to another number of buckets, in one commit. The stream may run at the same time."""
    if sum((buckets is not None, split is not None, merge is not None, auto)) != 1:
        raise ConfigError(
            "one of --buckets, --split, --merge and --auto is needed",
            do_next="see binlake rebucket --help",
        )
    settings = Settings.load(conf)
    place = chosen_one(settings, table)
    if buckets is None:
        resizes = wanted_resizes(LakeTable.look(place.storage, place.rules), partition, split, merge, auto=auto)
        print_resizes(place.name, resizes, as_json=as_json)
        if resizes and not dry_run:
            held, config = opened(settings, place, "rebucket"), _form(place)
            with workers(settings, spark, threads) as map_tasks:
                _print_done(place.name, resize(held, resizes, settings.name, config, map_tasks), as_json=as_json)
        return
    if dry_run:
        looked = LakeTable.look(place.storage, place.rules)
        _print_plan(place.name, looked, wanted_buckets(looked.hudi.config.bucketing, buckets, partition), as_json)
        return
    held, config = opened(settings, place, "rebucket"), _form(place)
    wanted = wanted_buckets(held.hudi.config.bucketing, buckets, partition)
    with workers(settings, spark, threads) as map_tasks:
        done = rebucket(held, wanted, settings.name, config, map_tasks)
    _print_done(place.name, done, as_json=as_json)


def _form(place: CatalogTable) -> CompactionConfig:
    """How base files are written."""
    return compaction_config(place.rules, place.rules.compaction or CompactionSettings())


def _print_done(name: str, done: RebucketResult, *, as_json: bool) -> None:
    if as_json:
        say_json({"table": name, **dataclasses.asdict(done)})
        return
    if done.instant is None:
        say(f"{name}: nothing to move, its partitions have these buckets")
        return
    say(
        f"{name}: {counted(done.rows, 'row')} moved, {counted(done.replaced, 'file group')} became "
        f"{number(done.made)}, {size(done.bytes_written)} written by the replacecommit {done.instant}"
    )
    say(f"  other writers waited {duration(done.locked_s * 1000)}; {done.again} parts moved again for their commits")


def _print_plan(name: str, table: LakeTable, wanted: Bucketing, as_json: bool) -> None:
    """One line a partition."""
    planned = plan_rebucket(table.hudi, wanted, table.rules.path)
    by_path: dict[str, list[RebucketUnit]] = {}
    for unit in planned:
        by_path.setdefault(unit.partition_path, []).append(unit)
    for path, mine in sorted(by_path.items()):
        groups, moved = sum(len(unit.sources) for unit in mine), sum(unit.size for unit in mine)
        before, after = table.hudi.config.bucketing.count(path), wanted.count(path)
        if as_json:
            fields = {"buckets": before, "wanted": after, "file_groups": groups, "bytes": moved}
            say_json({"table": name, "partition": path, **fields})
            continue
        counts = f"{before} to {after} buckets"
        say(f"{name} {path or '(no partition)'}: {counts}, {counted(groups, 'file group')} with {size(moved)} to move")
    if not planned and not as_json:
        say(f"{name}: nothing to move")


Split = Annotated[int | None, typer.Option("--split", help="With consistent hashing: the bucket to split.", min=0)]
Merge = Annotated[str | None, typer.Option("--merge", help="With consistent hashing: neighbouring buckets, as 2,3.")]
Auto = Annotated[bool, typer.Option("--auto", help="With consistent hashing: split and merge by the buckets' sizes.")]


def wanted_resizes(
    table: LakeTable, partition: str | None, split: int | None, merge: str | None, *, auto: bool
) -> list[BucketChange]:
    """What the options ask for.

    Args:
        table: open.
        partition: the path of one partition; None for a table without partitions, and with ``auto`` for all.
        split: the bucket to split.
        merge: the buckets to merge, with commas between them.
        auto: what the sizes call for.

    Raises ConfigError for options that do not go together or text that is no list of numbers, UnsupportedError for a
    table without hash rings.
    """
    rings_of(table.hudi, table.rules.path)
    if auto:
        resizes = proposed(table.hudi, table.rules.files.target_bytes)
        return [one for one in resizes if partition in (None, one.partition_path)]
    path = partition or ""
    paths = {piece.partition_path for piece in table.hudi.file_slices()}
    if path not in paths:
        raise ConfigError(
            f"the table has no partition {path!r}",
            do_next="give the path of one partition with --partition, as binlake inspect prints it",
            table=table.rules.path,
        )
    if split is not None:
        return [BucketChange(path, (split,))]
    try:
        return [BucketChange(path, tuple(int(number) for number in (merge or "").split(",")))]
    except ValueError as error:
        raise ConfigError(
            f"--merge {merge} is no list of bucket numbers", do_next="give it as 2,3", table=table.rules.path
        ) from error


def print_resizes(name: str, wanted: list[BucketChange], *, as_json: bool = False) -> None:
    """One line a resize."""
    for one in wanted:
        if as_json:
            what = "split" if len(one.buckets) == 1 else "merge"
            say_json({"table": name, "partition": one.partition_path, what: list(one.buckets)})
            continue
        place = f"{name} {one.partition_path or '(no partition)'}"
        numbers = ", ".join(map(str, one.buckets))
        say(f"{place}: bucket {numbers} to split" if len(one.buckets) == 1 else f"{place}: buckets {numbers} to merge")
    if not wanted and not as_json:
        say(f"{name}: nothing to split or to merge")
