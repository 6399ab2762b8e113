"""``binlake query``: SQL over tables that are named in it."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from enum import StrEnum
from itertools import count, islice
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer
from rich.console import Console

from binlake.cli.table_options import Conf, table_storage
from binlake.cli.text import json_line, number, print_rows, terminal
from binlake.cli.typer_extras import options_of
from binlake.position.cuts import Cut
from binlake.proof.history.moments import StreamLake
from binlake.settings import Settings
from binlake.tables.catalog import no_such_table
from hudilake.errors import ConfigError
from hudilake.query.sql import Limits, SqlQuery, plan_sql, run_sql
from hudilake.query.sql.limits import memory_of
from hudilake.query.sql.planned import TABLE_NAME
from hudilake.query.sql.planned_table import SqlTable
from hudilake.query.sql.text import Name, QueryText, spelled, written
from hudilake.read import Incremental, Query, ReadOptimized, Snapshot, TableReader, instant_of
from hudilake.read.inside.tally import ReadTally
from hudilake.read.query import EARLIEST
from hudilake.storage import open_storage
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
AtCut = Annotated[
    str | None,
    typer.Option(
        "--at",
        help="All tables of --conf at one place between two source transactions: at a tag, behind this transaction "
        "(GTID), at a place of the binlog (mariadb-bin.000003:4711), or at the newest place that was complete at a "
        "time. binlake cuts and binlake tag list them.",
    ),
]
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
class TableQueries:
    """Which rows of each table a query reads. ``own``: by the table's name in lower case; ``others``: of all others."""

    others: Query = field(default_factory=Snapshot)
    own: Mapping[str, Query] = field(default_factory=dict)


def question(
    as_of: AsOf = None, after: After = None, until: Until = None, read_optimized: BaseOnly = False
) -> TableQueries:
    """Which rows the options ask for. Raises ConfigError for options that contradict each other."""
    moments, begin, end = _by_table(as_of), _by_table(after), _by_table(until)
    names = (moments.keys() | begin.keys() | end.keys()) - {""}
    own = {name: _query(moments.get(name), begin.get(name), end.get(name)) for name in names}
    return TableQueries(_query(moments.get(""), begin.get(""), end.get(""), read_optimized), own)


def limits(memory: Memory = None, spill_dir: SpillDir = None) -> Limits:
    """The limits that the options set. Raises ConfigError."""
    return Limits(None if memory is None else memory_of(memory), spill_dir)


def _by_table(moments: Sequence[str] | None) -> dict[str, str]:
    """Table name, "" for all -> moment."""
    by_name: dict[str, str] = {}
    for text in moments or ():
        name, _, moment = text.rpartition("=")
        if name.lower() in by_name:
            raise ConfigError("a moment is given twice", do_next="give one, or NAME=MOMENT for each table", moment=text)
        by_name[name.lower()] = moment
    return by_name


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
        self,
        words: Sequence[str],
        given: Iterable[str] | None,
        conf: Path | None,
        asked: TableQueries,
        index: bool,
    ) -> None:
        if len(words) > 2:
            raise ConfigError("there are more words than a table and its SQL", do_next="quote the SQL")
        self.sql = words[-1]
        if len(words) == 1 and self.sql and not any(map(str.isspace, self.sql)):
            raise ConfigError("the SQL is missing", do_next='write it behind the table: "SELECT ..."', table=words[0])
        self._settings = Settings.load(conf) if conf else None
        self._service = plans_of(self._settings.metastore) if self._settings else None
        self._asked, self._index = asked, index
        self._cut: Mapping[str, str] | None = None
        self._given = dict(map(_named, given or ()))
        self._tables: dict[tuple[str, Query], SqlTable] = {}
        self._readers: dict[str, TableReader] = {}
        self._used: dict[str, set[str]] = {}
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
        if place is None and self._settings is not None:
            lake = self._settings.lake
            raise no_such_table(self._settings, open_storage(lake.uri, lake.storage_options()), name)
        if place is None:
            return None
        commit = None if self._cut is None else self._cut[self._reader(place).table.storage.uri]
        asked = self._asked_of(name.lower()) if commit is None else Snapshot(commit)
        return self._tables.setdefault((place, asked), SqlTable(self._reader(place), asked))

    def read_at(self, at: str) -> Cut:
        """From now on give the tables that the SQL names as of a moment of all of them; the cut. Raises as
        ``StreamLake.at``."""
        assert self._settings is not None
        named = [self.find(written(reference)) for reference in QueryText.parse(self.sql).references]
        uris = dict.fromkeys(table.reader.table.storage.uri for table in named if table is not None)
        cut = StreamLake(self._settings).cut_at(at, list(uris))
        self._cut = cut.commits
        self._tables.clear()  # they may have been opened before a commit of the cut
        self._readers.clear()
        return cut

    def check_used(self) -> None:
        """Raise ConfigError if a moment is given for a table that the SQL does not name, or for two of one name."""
        if unused := sorted(set(self._asked.own) - set(self._used)):
            raise ConfigError(
                f"a moment is given for what the query does not name: {', '.join(unused)}",
                do_next="give the table's name in the query",
            )
        for name, meant in self._used.items():
            if len(meant) > 1:
                raise ConfigError(
                    f"a moment is given for {name}, and the query names {' and '.join(sorted(meant))}",
                    do_next="give the database too: DATABASE.NAME=MOMENT",
                )

    def _asked_of(self, name: str) -> Query:
        known = next((n for n in (name, name.rpartition(".")[2]) if n in self._asked.own), None)
        if known is None:
            return self._asked.others
        self._used.setdefault(known, set()).add(name)
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


class PrintFormat(StrEnum):
    """How rows are printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


@options_of(asked=question, limited=limits)
def query(
    words: Words,
    tables: Given = None,
    conf: Conf = None,
    *,
    asked: TableQueries,
    limited: Limits,
    at: AtCut = None,
    index: UseIndex = True,
    by_bucket: ByBucket = True,
    form: Annotated[
        PrintFormat, typer.Option("--format", help="Print a table, CSV, or JSON lines.")
    ] = PrintFormat.TABLE,
    rows: Annotated[int, typer.Option("--rows", help="The most rows that a table shows.", min=1)] = 1000,
    counts: Annotated[bool, typer.Option("--counts", help="Print on stderr what was read of base files.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Run an SQL query over one or several tables."""
    form = PrintFormat.JSON if as_json else form
    if at is not None and (conf is None or asked != TableQueries()):
        raise ConfigError(
            "--at is for all tables of a stream at once"
            if conf is None
            else "--at and other moments exclude each other",
            do_next="give --conf" if conf is None else "give --at alone",
        )
    named = NamedTables(words, tables, conf, asked, index)
    if at is not None:
        cut = named.read_at(at)
        behind = f" behind transaction {cut.transaction}" if cut.transaction else ""
        terminal(stderr=True).print(f"as of {cut.completed}{behind}", markup=False, highlight=False, soft_wrap=True)
    planned = plan_named(named, by_bucket=by_bucket)
    for table in planned.tables:
        for warning in table.plan.warnings:
            of_table = f"{table.plan.table}: " if len(planned.tables) > 1 else ""
            terminal(stderr=True).print(f"warning: {of_table}{warning}", markup=False, highlight=False, soft_wrap=True)
    tally = ReadTally()
    with run_sql(planned, limited, tally) as result:
        if form is PrintFormat.TABLE:
            _print_table(result, terminal(), rows)
        elif form is PrintFormat.CSV:
            print_csv(result)
        else:
            _print_json(result)
    if counts:
        _print_counts(tally, form)


def _print_counts(tally: ReadTally, form: PrintFormat) -> None:
    """What was read, as JSON where the rows are."""
    if form is PrintFormat.JSON:
        sys.stderr.write(json.dumps(asdict(tally)) + "\n")
    else:
        fetched = f"fetched {number(tally.fetched)} bytes in {number(tally.requests)} requests"
        sys.stderr.write(f"read of {number(tally.files)} base files: {tally}; {fetched}\n")


def plan_named(named: NamedTables, count_all: bool = False, by_bucket: bool = True) -> SqlQuery:
    """The plan of the query of a command line. Raises ConfigError for a moment of no table, and as ``plan_sql``."""
    planned = plan_sql(named.sql, named.find, count_all, by_bucket)
    named.check_used()
    return planned


def _rows(batches: pa.RecordBatchReader) -> Iterator[list[Any]]:
    for batch in batches:
        yield from rows_of(batch)


def rows_of(batch: pa.RecordBatch) -> Iterator[list[Any]]:
    """The rows with their values as Python has them. Raises ConfigError for one that it does not have: a year after
    9999."""
    columns = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            columns.append(column.to_pylist())
        except (OverflowError, ValueError) as error:
            raise ConfigError(
                f"a value of the type {column.type} cannot be printed: {error}",
                do_next="leave the column out, or cast it to VARCHAR in a query",
                column=name,
            ) from error
    return (list(row) for row in zip(*columns, strict=True))


def objects_of(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """The rows by the names of their columns. Raises as ``rows_of``."""
    return (dict(zip(batch.schema.names, row, strict=True)) for row in rows_of(batch))


def _print_table(result: pa.RecordBatchReader, console: Console, most: int) -> None:
    first = list(islice(_rows(result), most + 1))
    rows = [["" if value is None else text(value) for value in row] for row in first[:most]]
    print_rows(result.schema.names, rows, console)
    shown = number(len(rows))
    console.print(f"the first {shown} rows; more with --rows or --format" if len(first) > most else f"{shown} rows")


#: What a field of CSV is quoted for.
_QUOTED = re.compile(r'[",\r\n]')


def print_csv(result: pa.RecordBatchReader) -> None:
    """Rows as lines of CSV, on standard output."""
    csv.writer(sys.stdout, lineterminator="\n").writerow(result.schema.names)
    for row in _rows(result):
        line = ",".join(map(_csv_field, row))
        sys.stdout.write((line or '""') + "\n")  # one null alone: many readers pass over an empty line


def _csv_field(value: object) -> str:
    """A null is nothing, an empty text is quoted, bytes begin with ``\\x``: ``binlake backfill`` reads them so, and so
    does PostgreSQL."""
    if value is None:
        return ""
    if isinstance(value, bytes):
        return f"\\x{value.hex()}"
    words = text(value)
    return words if words and not _QUOTED.search(words) else '"' + words.replace('"', '""') + '"'


def _print_json(result: pa.RecordBatchReader) -> None:
    names = _distinct(result.schema.names)
    for row in _rows(result):
        fields = dict(zip(names, row, strict=True))
        sys.stdout.write(json_line(fields, text))


def _distinct(names: Sequence[str]) -> list[str]:
    """The names, where one that came before gets a number as DuckDB gives it: an object has each name once."""
    distinct: dict[str, None] = {}
    for name in names:
        numbered = (f"{name}_{number}" for number in count(1))
        distinct[name if name not in distinct else next(one for one in numbered if one not in distinct)] = None
    return list(distinct)


def text(value: object) -> str:
    """A value as it is printed: bytes in hexadecimal, times as ISO 8601, lists and the like as JSON."""
    if isinstance(value, list | tuple | dict):
        return json_line(value, text).rstrip("\n")
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:f}" if isinstance(value, Decimal) else str(value)
