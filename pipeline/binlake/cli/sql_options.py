"""How ``query`` and ``explain`` name tables and their moments: tables by their names in the SQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from binlake.cli.tables import table_storage
from binlake.settings import Settings
from hudilake.errors import ConfigError
from hudilake.query.sql.limits import Limits, memory_of
from hudilake.query.sql.planned import TABLE_NAME
from hudilake.query.sql.planned_table import SqlTable
from hudilake.query.sql.text import Name, spelled
from hudilake.read import Incremental, Query, ReadOptimized, Snapshot, TableReader, instant_of
from hudilake.read.query import EARLIEST
from lakemetastore.client.opening import plans_of

Words = Annotated[
    list[str],
    typer.Argument(
        help="One SELECT in DuckDB's SQL. A table given before it is called t: a path or URI; with --conf, "
        "database.table. Other tables: --table; with --conf, database.table in the SQL itself.",
        metavar="[TABLE] SQL",
        show_default=False,
    ),
]
Given = Annotated[
    list[str] | None, typer.Option("--table", help="NAME=TABLE: what the SQL calls a table. Repeat it for several.")
]
AsOf = Annotated[
    list[str] | None,
    typer.Option("--as-of", help="Rows as of an instant, or 2024-02-29 12:34:56 (UTC). NAME=MOMENT: of one table."),
]
After = Annotated[
    list[str] | None,
    typer.Option(
        "--after",
        help=f"Rows that commits completed after this have changed; {EARLIEST}: all. NAME=MOMENT: of one table.",
    ),
]
Until = Annotated[
    list[str] | None, typer.Option("--until", help="With --after: up to this time. NAME=MOMENT: of one table.")
]
BaseOnly = Annotated[bool, typer.Option("--read-optimized", help="Read base files only.")]
UseIndex = Annotated[bool, typer.Option("--index/--no-index", help="Use the metadata table, or read all files.")]
ByBucket = Annotated[
    bool,
    typer.Option("--by-bucket/--at-once", help="Join and group by bucket keys bucket by bucket, or all rows at once."),
]
Memory = Annotated[
    str | None,
    typer.Option("--memory", help="Memory to sort, join and group rows, as 2GB; half of the machine's if not given."),
]
SpillDir = Annotated[
    Path | None, typer.Option("--spill-dir", help="Where rows are spilled; the system's temporary files if not given.")
]


@dataclass(frozen=True)
class Asked:
    """Which rows of each table a query reads. ``own``: by the table's name in lower case; ``others``: of all others."""

    others: Query = field(default_factory=Snapshot)
    own: Mapping[str, Query] = field(default_factory=dict)


def question(as_of: AsOf = None, after: After = None, until: Until = None, read_optimized: BaseOnly = False) -> Asked:
    """Which rows the options ask for. Raises ConfigError for options that contradict each other."""
    at, begin, end = _by_table(as_of), _by_table(after), _by_table(until)
    names = (at.keys() | begin.keys() | end.keys()) - {""}
    own = {name: _query(at.get(name), begin.get(name), end.get(name)) for name in names}
    return Asked(_query(at.get(""), begin.get(""), end.get(""), read_optimized), own)


def limits(memory: Memory = None, spill_dir: SpillDir = None) -> Limits:
    """The limits that the options set. Raises ConfigError."""
    return Limits(None if memory is None else memory_of(memory), spill_dir)


def _by_table(moments: Sequence[str] | None) -> dict[str, str]:
    """Table name, "" for all -> moment."""
    found: dict[str, str] = {}
    for text in moments or ():
        name, _, moment = text.rpartition("=")
        if name.lower() in found:
            raise ConfigError("a moment is given twice", do_next="give one, or NAME=MOMENT for each table", moment=text)
        found[name.lower()] = moment
    return found


def _query(as_of: str | None, after: str | None, until: str | None, base: bool = False) -> Query:
    if sum((as_of is not None, after is not None, base)) > 1 or (until is not None and after is None):
        raise ConfigError(
            "these options cannot be combined", do_next="give --as-of, or --after (with --until), or --read-optimized"
        )
    if base:
        return ReadOptimized()
    if after is not None:
        begin = "" if after == EARLIEST else instant_of(after)
        return Incremental(begin, instant_of(until) if until is not None else None)
    return Snapshot(instant_of(as_of) if as_of is not None else None)


class NamedTables:
    """The tables that a command line gives; each is opened when the SQL names it.

    Args:
        words: the table called t, if there is one, and the SQL.
        given: ``NAME=TABLE``.
        conf: the settings file of the lake, or None.
        asked: the rows of each table.
        index: whether the metadata tables may be used.

    Raises ConfigError for other words, SettingsError.
    """

    def __init__(
        self, words: Sequence[str], given: Iterable[str] | None, conf: Path | None, asked: Asked, index: bool
    ) -> None:
        if len(words) > 2:
            raise ConfigError("there are more words than a table and its SQL", do_next="quote the SQL")
        self.sql = words[-1]
        self._settings = Settings.load(conf) if conf else None
        self._service = plans_of(self._settings.metastore) if self._settings else None
        self._asked, self._index = asked, index
        self._given = dict(map(_named, given or ()))
        self._tables: dict[tuple[str, Query], SqlTable] = {}
        self._readers: dict[str, TableReader] = {}
        self._used: set[str] = set()
        if len(words) == 2:
            config = self._reader(words[0]).table.config
            for name in (f"{config.database}.{config.name}", config.name, TABLE_NAME):
                self._given.setdefault(name.lower(), words[0])

    def find(self, written: Name) -> SqlTable | None:
        """The table of a name in the SQL. Raises as ``table_storage`` and ``TableReader.open``."""
        name = spelled(written)
        place = self._given.get(name.lower())
        if place is None and self._settings is not None and written[0]:
            place = name
        if place is None:
            return None
        asked = self._asked_of(name.lower())
        return self._tables.setdefault((place, asked), SqlTable(self._reader(place), asked))

    def check_used(self) -> None:
        """Raise ConfigError if a moment is given for a table that the SQL does not name."""
        if unused := sorted(set(self._asked.own) - self._used):
            raise ConfigError(
                f"a moment is given for what the query does not name: {', '.join(unused)}",
                do_next="give the table's name in the query",
            )

    def _asked_of(self, name: str) -> Query:
        known = next((n for n in (name, name.rpartition(".")[2]) if n in self._asked.own), None)
        if known is None:
            return self._asked.others
        self._used.add(known)
        return self._asked.own[known]

    def _reader(self, place: str) -> TableReader:
        if place not in self._readers:
            storage = table_storage(place, self._settings)
            self._readers[place] = TableReader.open(storage, use_index=self._index, service=self._service)
        return self._readers[place]


def _named(text: str) -> tuple[str, str]:
    name, given, place = text.partition("=")
    if not (name and given and place):
        raise ConfigError(f"{text!r} does not name a table", do_next="write --table NAME=TABLE")
    return name.lower(), place
