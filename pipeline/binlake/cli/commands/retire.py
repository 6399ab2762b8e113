"""``binlake clean`` and ``binlake archive``: remove what the retention of the settings no longer needs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from binlake.cli.lake_options import AsJson, LakeConf, Tables, chosen, each, opened
from binlake.cli.text import number, say
from binlake.settings import RetentionSettings, Settings
from binlake.tables.catalog import CatalogTable
from binlake.tables.services.configs import archival_config
from binlake.tables.services.upkeep import archive_if_long
from hudilake.commit.clean import CleanPlan, read_plan
from hudilake.format.files.names import in_partition
from hudilake.services.archival import archivable
from hudilake.services.cleaning import CleaningConfig, clean, plan_clean
from hudilake.table.table import HudiTable

DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be removed and change nothing.")]


def clean_tables(conf: LakeConf, tables: Tables = None, dry_run: DryRun = False, as_json: AsJson = False) -> None:
    """Delete files that neither the retention, a savepoint nor a pending compaction needs."""
    settings = Settings.load(conf)

    def act(place: CatalogTable, rule: RetentionSettings) -> None:
        config = CleaningConfig.of(rule)
        if dry_run:
            plan = plan_clean(HudiTable.open(place.storage), config)
        else:
            plan = _clean(opened(settings, place, "clean").table, config)
        paths = _paths(plan) if plan is not None else []
        since = plan.retained.requested_time if plan is not None and plan.retained is not None else None
        line = f"{number(len(paths))} files {'would be ' * dry_run}deleted"
        if since is not None:
            line += f"; all of {since} and later stays"
        _tell(place, line, as_json, paths if dry_run else (), files=paths, retained=since)

    raise typer.Exit(_for_each(settings, tables, as_json, act))


def archive_tables(conf: LakeConf, tables: Tables = None, dry_run: DryRun = False, as_json: AsJson = False) -> None:
    """Move old instants of the timeline into the table's history, if there are more than the retention needs."""
    settings = Settings.load(conf)

    def act(place: CatalogTable, rule: RetentionSettings) -> None:
        if dry_run:
            table, bounds = HudiTable.open(place.storage), archival_config(place.rules, rule)
            names = [i.file_name for i in archivable(table, bounds.around(table.timeline, CleaningConfig.of(rule)))]
            count = len(names)
        else:
            names, count = [], archive_if_long(opened(settings, place, "archive").table, place.rules)
        line = f"{number(count)} instants {'would be ' * dry_run}archived"
        _tell(place, line, as_json, names, instants=count)

    raise typer.Exit(_for_each(settings, tables, as_json, act))


def _for_each(
    settings: Settings, names: list[str] | None, as_json: bool, act: Callable[[CatalogTable, RetentionSettings], None]
) -> int:
    """An action for every table that the settings give a retention; the exit code."""

    def one(place: CatalogTable) -> None:
        if place.rules.retention is None:
            _tell(place, "the settings give it no retention (retention: null)", as_json)
        else:
            act(place, place.rules.retention)

    return each(chosen(settings, names), one)


def _clean(table: HudiTable, config: CleaningConfig) -> CleanPlan | None:
    done = clean(table, config)
    return read_plan(table.storage, done) if done is not None else None


def _paths(plan: CleanPlan) -> list[str]:
    return [in_partition(path, name) for path, names in plan.files.items() for name in names]


def _tell(place: CatalogTable, line: str, as_json: bool, details: Sequence[str] = (), **fields: object) -> None:
    if as_json:
        sys.stdout.write(json.dumps({"table": place.name, **fields}, ensure_ascii=False) + "\n")
        return
    for text in (f"{place.name}: {line}", *(f"- {detail}" for detail in details)):
        say(text)
