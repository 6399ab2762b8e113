"""The pages of lineage and quarantine: which records made the rows of a table, and which could not be applied.

Sealed records of the quarantine stay sealed. Both pages read the lake when a person opens them: the records of all
commits of one table, or the quarantine table.
"""

from __future__ import annotations

from binlake.cli.commands.loads.quarantine import readable, reason_groups
from binlake.cli.commands.reads.lineage import commit_words
from binlake.cli.console.page import Asked, Site, rendered
from binlake.cli.table_options import chosen_one
from binlake.load.replay.quarantine_records import QuarantineSelection, held_records
from binlake.proof.history.lineage import commit_lineage, table_lineage
from binlake.tables.seal import Seal
from hudilake.storage import open_storage

#: Records that one page shows, and lines of each.
RECORDS, LINES = 25, 60


def quarantine_page(site: Site, asked: Asked) -> str:
    """The page. ``asked``: ``stream``; ``reason``, ``table`` (- for no table), ``replayed``. Raises ConfigError, and as
    ``held_records``."""
    watch = site.watch(asked)
    settings = watch.settings
    reason, table = asked.get("reason", ""), asked.get("table", "")
    selection = QuarantineSelection(
        reasons=frozenset([reason] if reason else []),
        tables=frozenset([table] if table else []),
        replayed=bool(asked.get("replayed")),
    )
    root = open_storage(settings.lake.uri, settings.lake.storage_options())
    records = held_records(
        root.sub(settings.quarantine_path), selection, Seal(None, opens=False), payload=bool(reason or table)
    )
    shown = records[:RECORDS] if reason or table else []
    return rendered(
        "quarantine.html",
        site,
        "quarantine",
        stream=settings.name,
        conf=watch.conf,
        groups=reason_groups(records),
        reason=reason,
        table=table,
        replayed=bool(asked.get("replayed")),
        total=len(records),
        records=[
            (one, {"key": readable(one.key).split("\n")[:LINES], "value": readable(one.value).split("\n")[:LINES]})
            for one in shown
        ],
    )


#: Commits and files that a page of lineage names.
COMMITS, FILES = 30, 200


def lineage_page(site: Site, asked: Asked) -> str:
    """The page. ``asked``: ``stream``, ``table``; ``commit``, an instant. Raises ConfigError, and as
    ``table_lineage``."""
    watch, looked = site.table(asked)
    settings = watch.settings
    root = open_storage(settings.lake.uri, settings.lake.storage_options())
    place = chosen_one(settings, looked.name)
    lineage = table_lineage(settings, root, place)
    instant = asked.get("commit", "")
    one = commit_lineage(place, lineage, instant) if instant else None
    return rendered(
        "lineage.html",
        site,
        "lake",
        stream=settings.name,
        table=looked.name,
        lineage=lineage,
        chosen=one,
        files=one.files[:FILES] if one is not None else [],
        newest=[(commit, commit_words(commit)) for commit in lineage.newest(COMMITS)],
    )
