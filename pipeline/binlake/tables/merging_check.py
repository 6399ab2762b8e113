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
            do_next="keep the engine, the functions and the groups that the table has; new groups come at the end",
            table=path,
        ) from error
    return merging


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
