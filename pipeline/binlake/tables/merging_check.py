"""Compares how a table of the lake merges with what is wanted of it."""

from __future__ import annotations

from collections.abc import Iterable

from binlake.rows.merging.engines.joined import DifferingError, joined
from binlake.rows.upsert.target import key_columns, merging_of
from binlake.settings import TableRules
from hudilake.errors import ConfigError, TableStoppedError
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.merging import Merging


def compare_merging(config: TableConfig, rules: TableRules) -> None:
    """Raise ConfigError if the table has another engine, other functions or other column groups than the settings
    name. Groups may be missing at the end of either."""
    joined_merging(config, merging_of(rules), rules.path)


def joined_merging(config: TableConfig, wanted: Merging, path: str) -> Merging:
    """The merging with the groups of the table and of ``wanted``.

    ``path``: of the table, for errors. Raises ConfigError if the two cannot be one, CorruptDataError.
    """
    try:
        merging = joined(config.merging, wanted)
        if not key_columns(config) and (why := merging.refusal("it has no key")) is not None:
            raise DifferingError(why)
    except DifferingError as error:
        raise ConfigError(
            f"the table does not merge as the settings say: {error}",
            do_next="keep the engine, the functions, the tracked columns and the groups that the table has; new groups "
            "come at the end. A history that tracks other columns is another table (tables.history.to)",
            table=path,
        ) from error
    return merging


def check_tracked(wanted: Merging, columns: Iterable[str], path: str) -> None:
    """Raise ConfigError if a new table of versions tracks, or leaves out, a column that its source does not have.

    Args:
        wanted: the merging that the settings ask for.
        columns: lake names of the columns that the source's rows bring.
        path: of the table, for errors.
    """
    have = {name.lower() for name in columns}
    if absent := [name for name in (*(wanted.tracked or ()), *(wanted.untracked or ())) if name not in have]:
        setting = "track" if wanted.tracked is not None else "track_except"
        raise ConfigError(
            f"{setting} names {', '.join(absent)}, which the source table does not have",
            do_next=f"correct {setting} of the history table (tables.history, or merge in tables.overrides)",
            table=path,
        )


def lost_columns(table: Merging, columns: Iterable[str]) -> frozenset[str]:
    """The columns that a history names as tracked, and that rows of the source have no more."""
    return frozenset(table.tracked or ()) - {name.lower() for name in columns}


def lost_words(lost: Iterable[str]) -> str:
    """What it means that rows of the source lack tracked columns."""
    names = ", ".join(sorted(lost))
    return (
        f"the history tracks {names}, and the rows that come do not have it any more: it was dropped or renamed. Its "
        "change to null makes a version of each row with its next event, and no change of it comes after that. To "
        "track another column begin another history table (tables.history)"
    )


def check_fed(config: TableConfig, wanted: Merging, columns: Iterable[str], path: str) -> None:
    """Raise TableStoppedError if the stream brings a column that a backfill has added: its values would be dropped.

    Args:
        config: the table's.
        wanted: the merging that the stream's settings ask for. A column that it names is meant for its group.
        columns: lake names of the columns that the source's rows bring.
        path: of the table, for errors.
    """
    named = {name.lower() for group in wanted.groups for name in group.columns or ()}
    added = {name.lower(): (name, group) for group in config.merging.groups for name in group.columns or ()}
    clashing = [added[name] for name in map(str.lower, columns) if name in added and name not in named]
    if not clashing:
        return
    column, group = clashing[0]
    raise TableStoppedError(
        f"the source has a column {column!r} now, and a backfill has added one of that name: only one of the two can "
        "be in the table",
        do_next=f"leave the source's out (columns.exclude: [{column}]), or also keep its values under another name "
        f"(columns.computed: {{source_{column}: {column}}}); then start the stream again",
        table=path,
        column=column,
        group=group.name,
    )
