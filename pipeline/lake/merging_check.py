"""Compares how a table of the lake merges with what is wanted of it."""

from __future__ import annotations

from pipeline.errors import ConfigError
from pipeline.hudi.definition.config import TableConfig
from pipeline.hudi.definition.merging import Merging
from pipeline.merging.joined import DifferingError, joined
from pipeline.settings import TableRules
from pipeline.upsert.keyless import ROW_FIELD
from pipeline.upsert.merging_rules import merging_of


def compare_merging(config: TableConfig, rules: TableRules) -> None:
    """Raise ConfigError if the table has another engine, other functions or other column groups than the settings
    name. Groups may be missing at the end of either."""
    joined_merging(config, merging_of(rules), rules.path)


def joined_merging(config: TableConfig, wanted: Merging, path: str) -> Merging:
    """The merging with the groups of the table and of ``wanted``.

    ``path``: of the table, for errors. Raises ConfigError if the two cannot be one, CorruptDataError.
    """
    try:
        merging = joined(Merging.of(config), wanted)
        if merging.by_writer and config.record_key_fields == (ROW_FIELD,):
            raise DifferingError("it has no key")
    except DifferingError as error:
        raise ConfigError(
            f"the table does not merge as the settings say: {error}",
            do_next="keep the engine, the functions and the groups that the table has; new groups come at the end",
            table=path,
        ) from error
    return merging
