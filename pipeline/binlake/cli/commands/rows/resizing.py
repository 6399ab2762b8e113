"""``binlake rebucket --split | --merge | --auto``: single buckets of a table with consistent hashing."""

from __future__ import annotations

from typing import Annotated

import typer

from binlake.cli.text import say
from binlake.tables.buckets.bucket_sizes import Wanted, proposed
from binlake.tables.buckets.resize import rings_of
from binlake.tables.lake_table import LakeTable
from hudilake.errors import ConfigError

Split = Annotated[int | None, typer.Option("--split", help="With consistent hashing: the bucket to split.", min=0)]
Merge = Annotated[str | None, typer.Option("--merge", help="With consistent hashing: neighbouring buckets, as 2,3.")]
Auto = Annotated[bool, typer.Option("--auto", help="With consistent hashing: split and merge by the buckets' sizes.")]


def wanted_resizes(
    table: LakeTable, partition: str | None, split: int | None, merge: str | None, *, auto: bool
) -> list[Wanted]:
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
    rings_of(table)
    if auto:
        found = proposed(table.table, table.rules.files.target_bytes)
        return [one for one in found if partition in (None, one.partition_path)]
    path = partition or ""
    paths = {piece.partition_path for piece in table.table.file_slices()}
    if path not in paths:
        raise ConfigError(
            f"the table has no partition {path!r}",
            do_next="give the path of one partition with --partition, as binlake inspect prints it",
            table=table.rules.path,
        )
    if split is not None:
        return [Wanted(path, (split,))]
    try:
        return [Wanted(path, tuple(int(number) for number in (merge or "").split(",")))]
    except ValueError as error:
        raise ConfigError(
            f"--merge {merge} is no list of bucket numbers", do_next="give it as 2,3", table=table.rules.path
        ) from error


def print_resizes(name: str, wanted: list[Wanted]) -> None:
    """One line a resize."""
    for one in wanted:
        place = f"{name} {one.partition_path or '(no partition)'}"
        numbers = ", ".join(map(str, one.buckets))
        say(f"{place}: bucket {numbers} to split" if len(one.buckets) == 1 else f"{place}: buckets {numbers} to merge")
    if not wanted:
        say(f"{name}: nothing to split or to merge")
