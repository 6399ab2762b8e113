"""What a table's layout is worth to its queries, and which one would be better."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Final

from hudilake.format.definition.kind import TableKind
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.layout.order import Order
from hudilake.policies import ClusteringPolicy, CompactionPolicy, FileSizePolicy, OrderPolicy
from hudilake.read import TableReader
from hudilake.read.slice_files import SliceFiles
from hudilake.services.advice.overlap import ColumnOverlap, overlaps
from hudilake.services.advice.proposal import Search, Tried, assumed_queries, distinct_values, sortable
from hudilake.services.advice.queries import AskedQuery, LeftOut, asked_queries, filtered_columns
from hudilake.services.advice.sample import Sample, draw
from hudilake.services.advice.simulation import Together, clustered, in_buckets
from hudilake.write.form import BaseFileForm

#: So many columns are tried where no query is given.
_ASSUMED_COLUMNS: Final = 6
#: The files of a column hardly overlap if a value meets so many of them, or such a share.
_HARDLY, _HARDLY_SHARE = 2.0, 0.1
#: Row groups are smaller where the rows have an order, whichever.
_SOME_ORDER: Final = Order(OrderPolicy(columns=(RECORD_KEY_FIELD,)))
#: A proposal must read at most this share of what is read now.
_CLEARLY_LESS: Final = 0.9


@dataclass(frozen=True, slots=True)
class Given:
    """What the settings say of a table, and how much is read.

    Args:
        files, clustering, compaction: policies of the table.
        rows: about so many rows are drawn.
        slices: at most so many file slices are read.
        seed: of what is drawn.
    """

    files: FileSizePolicy = field(default_factory=FileSizePolicy)
    clustering: ClusteringPolicy = field(default_factory=ClusteringPolicy)
    compaction: CompactionPolicy = field(default_factory=CompactionPolicy)
    rows: int = 100_000
    slices: int = 64
    seed: int = 0


@dataclass(frozen=True, slots=True)
class ColumnAdvice:
    """One column.

    Args:
        overlap: of its ranges; None where the metadata table has none.
        column: its name.
        distinct: about how many values it has; None where it was not drawn.
        asked: how often the queries filter by it.
    """

    column: str
    overlap: ColumnOverlap | None
    distinct: int | None
    asked: int


@dataclass(frozen=True, slots=True)
class QueryAdvice:
    """One query: what it reads now and what it would read.

    Args:
        text: its SQL, or what it stands for.
        times: how often it is asked.
        condition: what of it selects files.
        files: the files that it reads now, by the metadata table.
        now: the share of the files (in bucket tables: of the row groups) that it reads now, 0 to 1.
        after: the share that it would read; None without a proposal.
    """

    text: str
    times: int
    condition: str
    files: int
    now: float
    after: float | None


@dataclass(frozen=True, slots=True)
class Advice:
    """What there is to say of a table's layout.

    Args:
        table: ``database.table``.
        in_buckets: rows stay in their buckets: compaction orders them inside of the base files, which shows in row
            groups. Else clustering orders them across files.
        files: the files of the table.
        pieces: the files (in bucket tables: row groups) after the change, about.
        drawn: the rows that were drawn.
        columns, queries, left_out: see there. ``assumed``: whether no query was given.
        tried: every order that was tried, the best first.
        order: the proposed one; None if none reads clearly less.
        trouble: why there are no column ranges, or None.
    """

    table: str
    in_buckets: bool
    files: int
    pieces: int
    drawn: int
    columns: tuple[ColumnAdvice, ...]
    queries: tuple[QueryAdvice, ...]
    left_out: tuple[LeftOut, ...]
    assumed: bool
    tried: tuple[Tried, ...]
    order: OrderPolicy | None
    trouble: str | None


def advise(reader: TableReader, statements: Sequence[str], names: Sequence[str], given: Given) -> Advice:
    """Look at a table's ranges, draw rows and try orders on them.

    Args:
        reader: the table.
        statements: SQL queries over it; none to assume queries.
        names: the table's names in the queries.
        given: see there.

    Raises as ``TableReader.plan`` and ``SliceScan.read``.
    """
    config, whole = reader.table.config, reader.plan()
    overlap, trouble = overlaps(reader, SliceFiles(whole.slices))
    asked, left_out = asked_queries(statements, reader.schema, names)
    by_column = filtered_columns(asked)
    overlapping, settled = ([], []) if statements else _by_overlap(reader, overlap)
    candidates = _candidates(reader, [*by_column, *overlapping])
    wanted = list(dict.fromkeys([*candidates, *sortable(reader.schema, [*by_column, *settled])]))
    sample = draw(reader, wanted or [RECORD_KEY_FIELD], given.rows, given.slices, given.seed)
    queries = asked if statements else assumed_queries(sample, candidates, 1) + assumed_queries(sample, settled, 0)
    distinct = _distinct(sample, wanted)
    search = Search(_together(config.kind, sample, given), queries, wanted, given.seed)
    best = search.best([name for name in candidates if distinct[name] > 1]) if queries and search.together else None
    now = _now(reader, search, whole.files)
    if best is not None and best.share > _share(now) * _CLEARLY_LESS:
        best = None
    return Advice(
        table=".".join(filter(None, (config.database, config.name))),
        in_buckets=config.kind.computed,
        files=whole.files,
        pieces=round(sum(one.pieces for one in search.together)),
        drawn=sample.rows.num_rows,
        columns=tuple(_columns(overlap, distinct, by_column)),
        queries=tuple(_with_proposal(now, search, best)),
        left_out=tuple(left_out),
        assumed=not statements,
        tried=tuple(sorted(search.tried, key=lambda one: one.share)),
        order=None if best is None else best.order,
        trouble=trouble,
    )


def _by_overlap(reader: TableReader, overlap: Sequence[ColumnOverlap]) -> tuple[list[str], list[str]]:
    """Where no query is given: the columns with the largest overlap, and those whose files hardly overlap. Queries are
    assumed over both; those over the second ones do not count, but show what an order would cost."""
    own = [one for one in overlap if one.column != reader.table.config.ordering_field]
    apart = {one.column for one in own if one.depth <= max(_HARDLY, _HARDLY_SHARE * one.files)}
    overlapping = [one.column for one in own if one.column not in apart][:_ASSUMED_COLUMNS]
    return overlapping, sortable(reader.schema, [one.column for one in own if one.column in apart])[:_ASSUMED_COLUMNS]


def _candidates(reader: TableReader, named: Sequence[str]) -> list[str]:
    """The columns that an order may have: a column of the partition path has one value in a partition."""
    partitioning = reader.table.config.partition_fields
    return [name for name in sortable(reader.schema, named) if name not in partitioning]


def _distinct(sample: Sample, columns: Sequence[str]) -> dict[str, int]:
    rows = round(sum(one.total for one in sample.drawn) * sample.stands_for)
    return {name: distinct_values(sample.rows.column(name), rows) for name in columns}


def _together(kind: TableKind, sample: Sample, given: Given) -> list[Together]:
    if kind.computed:
        form = BaseFileForm(row_group_rows=given.compaction.row_group_rows, order=_SOME_ORDER)
        return in_buckets(sample, form.at_once[0])
    return clustered(sample, given.files.target_bytes, given.clustering.group_bytes)


@dataclass(frozen=True, slots=True)
class _Now:
    """A query and what it reads now: files, and the share of files or row groups."""

    query: AskedQuery
    files: int
    share: float


def _now(reader: TableReader, search: Search, files: int) -> list[_Now]:
    """What each query reads now: by a plan of it; of row groups, by the rows as they were drawn."""
    stored = search.pieces(None) if reader.table.config.kind.computed and search.together else None
    out = []
    for query in search.queries:
        read = reader.plan(condition=query.condition, columns=[RECORD_KEY_FIELD]).files
        share = read / max(files, 1) if stored is None else stored.read(query.condition) / max(stored.total, 1)
        out.append(_Now(query, read, share))
    return out


def _share(now: Sequence[_Now]) -> float:
    return sum(one.share * one.query.times for one in now) / max(sum(one.query.times for one in now), 1)


def _with_proposal(now: Sequence[_Now], search: Search, best: Tried | None) -> Iterator[QueryAdvice]:
    """The queries with what they would read; those of one text are one, with their mean."""
    pieces = None if best is None else search.pieces(best.order)
    by_text: dict[str, list[_Now]] = {}
    for one in now:
        by_text.setdefault(one.query.text, []).append(one)
    for text, same in by_text.items():
        after = None
        if pieces is not None:
            after = fmean(pieces.read(one.query.condition) / max(pieces.total, 1) for one in same)
        files, share = round(fmean(one.files for one in same)), fmean(one.share for one in same)
        yield QueryAdvice(text, same[0].query.times, str(same[0].query.condition), files, share, after)


def _columns(
    overlap: Sequence[ColumnOverlap], distinct: Mapping[str, int], by_column: Mapping[str, int]
) -> Iterator[ColumnAdvice]:
    """The columns that queries filter by first, then by their overlap."""
    known = {one.column: one for one in overlap}
    for name in dict.fromkeys([*by_column, *known]):
        yield ColumnAdvice(name, known.get(name), distinct.get(name), by_column.get(name, 0))
