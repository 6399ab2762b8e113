"""Whether a lake that a recording was played into equals the server's rows, table by table, through hudi-rs."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from binlake.decode.changes import SourceTable
from binlake.position.record_reader import RecordReader
from binlake.schema.apply.schema_states import SchemaStates
from binlake.schema.rules.undetermined import undetermined_columns
from binlake.settings import Settings
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.stream.monitoring.progress import ProgressEvent
from binlake.tables.names import TableNames
from demo.truth import TruthTable
from demo.verdict import TableVerdict, judge
from hudilake.errors import LakeError
from hudilake.format.definition.column_names import lake_name
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.judges import hudi_rs
from tests.programs.oracle.exceptions import CASCADED, UNDETERMINED, UNMATCHED, Excuses

#: Reads a table at a path.
Reader = Callable[[Path], pa.Table]
_LAST = (1 << 63) - 1
_KIND_LENGTH = 110
_UNMATCHED = re.compile(r"(\d+) deletes or former halves of updates found no row of their content")
_PARTICULARS = (
    (r"o\d+_\d+(_2)?\.\w+", "TABLE"),
    (r"\[table=.*", ""),
    (r"column (\S+) becomes [^,;]*, the lake has [^;]*", "column becomes TYPE"),
    (r"column part (\S+) becomes (\S+)", "column becomes COLUMN"),
    (r"partition column \S+ becomes \S+", "partition column becomes COLUMN"),
    (r"key becomes \(.*?\), the lake has \(.*?\)", "key becomes KEY"),
    (r"key [^,]* and None, TABLE by key .*", "KEYS"),
    (r"column \S+: .* is .* in the lake", "TYPE is TYPE in the lake"),
    (r"incompatible types: .*", "incompatible types"),
    (r"cannot be stored as .*", "cannot be stored"),
    (r"was \S+ and now comes as .*", "comes as another type"),
    (r"(?:column|Field) (?!becomes|COLUMN)\S+", "column COLUMN"),
    (r"\[[^]]*\]|'[^']*'|`[^`]*`|\"[^\"]*\"", "X"),
    (r"\d+", "N"),
)


class StreamLake(Protocol):
    """A lake that a stream has written, and the rows that it should hold."""

    @property
    def place(self) -> Path:
        """The lake's directory."""

    @property
    def truth(self) -> Sequence[TruthTable]:
        """The server's tables."""

    @property
    def told(self) -> Sequence[ProgressEvent]:
        """The progress of all batches."""

    @property
    def schemas(self) -> SchemaRegistry:
        """What the stream knows of the source's tables."""

    def settings(self) -> Settings:
        """Of the stream."""

    def behind(self) -> Iterable[SourceTable]:
        """The tables that could not be brought up to the stream's position."""

    def columns_ever(self) -> frozenset[str]:
        """The names of all columns that the source's tables have had."""


@dataclass(frozen=True)
class Failure:
    """What is wrong after a recording was played. ``kind``: what it has in common with others of its kind."""

    kind: str
    table: str
    detail: str


def crashed(error: LakeError) -> Failure:
    """The failure of a stream that ended with an error."""
    return Failure(f"{type(error).__name__}: {general(error.what)}", "", str(error))


def failures(stream: StreamLake, excuses: Excuses, read: Reader = hudi_rs.snapshot) -> list[Failure]:
    """All that differs between the stream's lake and the source, and what the stream could not apply."""
    return [*_unapplied(stream), *_errors(stream), *_differences(stream, excuses, read)]


def general(text: str) -> str:
    """A message without what belongs to one case: names, types, numbers, quoted texts."""
    for pattern, word in _PARTICULARS:
        text = re.sub(pattern, word, text)
    return text[:_KIND_LENGTH]


def _unapplied(stream: StreamLake) -> Iterator[Failure]:
    path = stream.place / "_quarantine" / stream.settings().name
    if (path / ".hoodie" / "hoodie.properties").exists():
        rows = hudi_rs.snapshot(path).to_pylist()
        for reason, detail in sorted({(str(row["reason"]), str(row["detail"])) for row in rows}):
            yield Failure(f"quarantined: {reason}: {general(detail)}", "", detail)


def _errors(stream: StreamLake) -> Iterator[Failure]:
    """Errors that tables and statements still had in the newest events that name them."""
    for source in stream.behind():
        told = [t.error for event in stream.told for t in event.tables if t.table == str(source) and t.error]
        yield Failure(f"behind: {general(told[-1] if told else '')}", str(source), told[-1] if told else "")
    statements = {(ddl.table, ddl.statement): ddl.error for event in stream.told for ddl in event.ddl}
    for (table, statement), error in statements.items():
        if error is not None:
            yield Failure(f"not carried out: {general(error)}", table, f"{statement}: {error}")


def _differences(stream: StreamLake, excuses: Excuses, read: Reader) -> Iterator[Failure]:
    ever = stream.columns_ever()
    homes: dict[Path, str] = {}
    for truth in stream.truth:
        home = home_of(stream, SourceTable(truth.database, truth.table))
        if home is not None and home in homes:
            yield Failure("two tables in one place", str(truth), f"{truth} and {homes[home]} are both at {home.name}")
        if home is None or not (home / ".hoodie" / "hoodie.properties").exists():
            if truth.rows:
                yield Failure("table missing", str(truth), f"{len(truth.rows)} rows, and no lake table")
            continue
        homes[home] = str(truth)
        rows = read(home)
        if not rows.num_rows:  # a reader gives no columns then
            if truth.rows:
                yield Failure("rows missing", str(truth), f"all {len(truth.rows)} rows")
            continue
        named, cascaded = undetermined(stream, home)
        excuses.look_at(truth, named, cascaded)
        whole, (truth, rows) = truth, by_determined_columns(truth, rows, named)
        excuses.used[UNDETERMINED.name] += len(whole.rows) * (len(whole.columns) - len(truth.columns))
        verdict = judge(truth, rows, gone=ever, lake_name=lake_name, excused=excuses.excused)
        if excuses.rows_may_stay and truth.key:
            excuses.used[CASCADED.name] += verdict.extra_rows
            verdict.extra_rows = 0
        if not truth.key and (excused := min(verdict.extra_rows, unmatched(stream, str(truth)))):
            excuses.used[UNMATCHED.name] += excused
            verdict.extra_rows -= excused
        yield from _told(truth, verdict)


def unmatched(stream: StreamLake, table: str) -> int:
    """How many deletes and former halves of updates found no row, as the stream warned of a table without a key."""
    told = [one.warning or "" for event in stream.told for one in event.tables if one.table == table]
    return max((int(found[1]) for one in told if (found := _UNMATCHED.match(one))), default=0)


def undetermined(stream: StreamLake, home: Path) -> tuple[set[str], set[str]]:
    """The columns that the commits of a lake table, or the definitions of its source table, name as not determined: by
    statements, and by foreign keys."""
    recorded = RecordReader.newest_of(HudiTable.open(open_storage(str(home))))
    source, states = recorded.source or SourceTable("", ""), SchemaStates(stream.settings(), stream.schemas)
    told = [(one.column, one.why) for one in undetermined_columns(recorded.ddl or ())]
    told += [(one.column, one.why) for one in states.cascades(source, recorded.ddl or ())]
    columns: tuple[set[str], set[str]] = set(), set()
    for column, why in told:
        columns["foreign key" in why].update(column.split(", "))
    return columns


def by_determined_columns(truth: TruthTable, rows: pa.Table, named: Collection[str]) -> tuple[TruthTable, pa.Table]:
    """Both sides without the columns that the lake names as not determined, where rows are told apart by them: by a key
    of theirs, or by all columns."""
    kept = [at for at, column in enumerate(truth.columns) if lake_name(column.name) not in named]
    by_key = truth.key and all(lake_name(name) not in named for name in truth.key)
    if by_key or len(kept) == len(truth.columns):
        return truth, rows
    columns = tuple(truth.columns[at] for at in kept)
    floats = {column.name: truth.exact_floats[column.name] for column in columns if column.name in truth.exact_floats}
    left = replace(
        truth, columns=columns, key=(), rows=[tuple(row[at] for at in kept) for row in truth.rows], exact_floats=floats
    )
    return left, rows.drop_columns([name for name in rows.column_names if name in named])


def home_of(stream: StreamLake, source: SourceTable) -> Path | None:
    """Where the lake keeps a table that the source calls so now, by the names that the stream has written; None if the
    place by its name is another table's: one that had the name before, while this one never had a row."""
    names = TableNames.load(open_storage(str(stream.place)), stream.settings().name)
    found, path = names.called(source), stream.settings().table_rules(source).path
    if found is not None and not found.dropped:
        return stream.place / found.path
    there = names.at(path)
    return stream.place / path if there is None or (there.now == source and not there.dropped) else None


def _is_null(truth: TruthTable, column: str) -> bool:
    places = [at for at, known in enumerate(truth.columns) if lake_name(known.name) == column]
    return all(row[at] is None for at in places for row in truth.rows)


def _told(truth: TruthTable, verdict: TableVerdict) -> Iterator[Failure]:
    types = {c.name: c.data_type for c in truth.columns}
    for mistake in verdict.mistakes:
        absent = re.fullmatch(r"column (.*) is 0 times in the lake", mistake)
        if absent and _is_null(truth, absent[1]):
            yield Failure("column missing, null in all rows of the source", str(truth), mistake)
        else:
            yield Failure(f"column: {general(mistake)}", str(truth), mistake)
    if verdict.missing_rows or verdict.extra_rows or verdict.duplicate_rows:
        counts = {"missing": verdict.missing_rows, "extra": verdict.extra_rows, "duplicate": verdict.duplicate_rows}
        what = " and ".join(name for name, count in counts.items() if count)
        detail = f"{counts} of {verdict.truth_rows} rows, for example {verdict.row_examples}"
        yield Failure(f"rows {what}", str(truth), detail)
    for column, difference in verdict.differences.items():
        examples = "; ".join(
            f"key {key}: source {source!r}, lake {lake!r}" for key, source, lake in difference.examples
        )
        yield Failure(f"values of {types[column]}", str(truth), f"{column}: {difference.count} differ: {examples}")
