"""Compares how a table of the lake merges with the settings."""

from __future__ import annotations

from pipeline.errors import ConfigError
from pipeline.hudi.definition.config import TableConfig
from pipeline.hudi.definition.merging import Merging
from pipeline.merging.joined import DifferingError, joined
from pipeline.settings import TableRules
from pipeline.upsert.merging_rules import merging_of


def compare_merging(config: TableConfig, rules: TableRules) -> None:
    """Raise ConfigError if the table has another engine, other functions or other column groups than the settings
    name. Groups may be missing at the end of either."""
    try:
        joined(Merging.of(config), merging_of(rules))
    except DifferingError as error:
        raise ConfigError(
            f"the table does not merge as the settings say: {error}",
            do_next="keep the engine, the functions and the groups that the table has; new groups come at the end",
            path=rules.path,
        ) from error
