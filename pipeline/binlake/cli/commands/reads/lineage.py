"""``binlake lineage``: where the rows of a table, of a commit and of a key come from, and where a source table goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from binlake.cli.options import AsJson, LakeConf, Table
from binlake.cli.table_options import chosen_one
from binlake.cli.text import moment, number, say, say_json
from binlake.proof.history.commits import Commit
from binlake.proof.history.keys import row_key
from binlake.proof.history.lineage import CommitLineage, TableLineage, commit_lineage, fed_tables, table_lineage
from binlake.proof.history.why import row_histories
from binlake.settings import Settings
from binlake.source.offsets import describe
from hudilake.clock import parse_instant
from hudilake.errors import ConfigError
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from hudilake.wording import counted

#: Files and commits that a line for people names.
NAMED = 10


def lineage(
    conf: LakeConf,
    table: Table,
    commit: Annotated[str | None, typer.Option("--commit", help="A commit of the table, by its instant.")] = None,
    key: Annotated[str | None, typer.Option("--key", help="A row of the table, as for binlake why.")] = None,
    of_source: Annotated[
        bool, typer.Option("--source", help="TABLE is a table of the source: which lake tables does it feed?")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print where the rows of a table, a commit or a key come from, or which tables a source table feeds. Changes
    nothing."""
    if sum((commit is not None, key is not None, of_source)) > 1:
        raise ConfigError("these options cannot be combined", do_next="give one of --commit, --key and --source")
    settings = Settings.load(conf)
    root = open_storage(settings.lake.uri, settings.lake.storage_options())
    if of_source:
        _print_fed(table, fed_tables(settings, root, table), as_json=as_json)
        return
    place = chosen_one(settings, table)
    whole = table_lineage(settings, root, place)
    if commit is not None:
        commits = [commit_lineage(place, whole, commit)]
    elif key is not None:
        opened = HudiTable.open(place.storage)
        histories = row_histories(opened, row_key(key, opened), whole.log)
        instants = dict.fromkeys(line.commit.instant for one in histories for line in one.lines if line.commit)
        commits = [commit_lineage(place, whole, instant) for instant in instants]
    else:
        commits = [CommitLineage(one) for one in whole.newest(NAMED)]
    if as_json:
        say_json({**table_fields(whole), "commits": [commit_fields(one) for one in commits]})
        return
    _print_table(whole)
    for one in commits:
        _print_commit(one)
    if key is not None and not commits:
        say(f"{whole.table}: no commit wrote such a row; binlake why tells more")


def table_fields(lineage: TableLineage) -> dict[str, Any]:
    """A table's lineage as JSON types."""
    return {
        "table": lineage.table,
        "path": lineage.path,
        "sources": [{"table": one.name, "part": _part(one.part), "missing": one.missing} for one in lineage.sources],
        "cells": lineage.cells,
        "engine": lineage.engine,
        "derives": list(lineage.derives),
        "positions": lineage.positions.to_json(),
    }


def commit_fields(one: CommitLineage) -> dict[str, Any]:
    """A commit's lineage as JSON types."""
    commit = one.commit
    return {
        "instant": commit.instant,
        "completed_ms": parse_instant(commit.completed),
        "by": commit.kind.value,
        "archived": commit.archived,
        "batch": one.batch,
        "transaction": one.transaction or None,
        "split": one.split,
        "offsets": commit.ranges.to_json(),
        "source_ms": list(commit.source_times) if commit.source_times is not None else None,
        "files": one.files,
    }


def _part(part: object) -> str:
    return "" if part is None else type(part).__name__.removesuffix("Rule").lower()


def _print_table(one: TableLineage) -> None:
    say(f"{one.table} at {one.path}; rows of one key: {one.engine}")
    for source in one.sources:
        part = f", as {_part(source.part)} of several" if source.part is not None else ""
        say(f"  from {source.name}{part}{f': {source.missing}' if source.missing else ''}")
    if one.cells:
        say(f"  derived from {one.cells}")
    for topic, partition, offset in sorted(one.positions.places()):
        say(f"  {topic}/{partition}: everything below offset {number(offset)} is in the table")
    for wide in one.derives:
        say(f"  to {wide}, which is derived from it")


def _print_commit(one: CommitLineage) -> None:
    say(f"commit {commit_words(one.commit)}")
    batch = [f"batch {number(one.batch)}"] if one.batch is not None else []
    ends = "may end within" if one.split else "ends with"
    transaction = [f"{ends} transaction {one.transaction}"] if one.transaction else []
    if batch or transaction:
        say(f"  {', '.join([*batch, *transaction])}")
    for path in one.files[:NAMED]:
        say(f"  file {path}")
    if len(one.files) > NAMED:
        say(f"  and {counted(len(one.files) - NAMED, 'file')} more")


def commit_words(commit: Commit) -> str:
    """A commit for people: instant, what made it, its offsets, the source's time of its changes."""
    words = [f"{commit.instant}{' (archived)' if commit.archived else ''} by {commit.kind.value}"]
    if commit.ranges:
        words.append(describe(commit.ranges))
    if commit.source_times is not None:
        words.append(f"changes of {moment(commit.source_times[0])} to {moment(commit.source_times[1])}")
    return ": ".join([words[0], "; ".join(words[1:])]) if words[1:] else words[0]


def _print_fed(source: str, fed: Mapping[str, str], *, as_json: bool) -> None:
    if as_json:
        say_json({"source": source, "feeds": dict(fed)})
        return
    if not fed:
        say(f"{source} feeds no table: the settings leave it out, or another table has its name now")
    for table, how in fed.items():
        say(f"{source} feeds {table}: {how}")
